"""The two predictors of costs, self-attention over values of parameters and a plain network, and their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from bbo_suite.files.arrays import ArrayFile
from bbo_suite.nets import EncoderLayer, jit, linear_layers, parameters, with_parameters

from .groups import NUMBERS, Group

Architecture = Literal["attention", "plain"]

_BATCH = 1024
_FAR = 4.0
"""Features further from the mean than this many standard deviations count as that far."""
FAILED = 3.0
"""The label of a candidate that failed: it costs e^3 times the median of its task; those of others are no larger."""
_PLAIN, _ATTENTION, _LAYERS = 128, 64, 3
_MEMBERS = 3
_MANY = 1000
FILE = ArrayFile(
    "model of one-shot", 1, "make one with `python -m bbo_suite pretrain --strategy one-shot`", old_key="one-shot"
)
"""The version is raised whenever a network, or the meaning of its inputs, changes."""


class Plain(eqx.Module):
    """A perceptron with three hidden layers over all numbers of the task and of the values."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, width: int, places: int, key: Array, hidden: int = _PLAIN) -> None:
        self.layers = linear_layers((width + places * (NUMBERS + 1), hidden, hidden, hidden, 2), key)

    def __call__(self, features: Array, values: Array) -> Array:
        """Return `(2,)` outputs from `(f,)` features of the task and `(places, NUMBERS + 1)` of the values."""
        h = jnp.concatenate([features, values.reshape(-1)])
        for layer in self.layers[:-1]:
            h = jax.nn.gelu(layer(h))
        return self.layers[-1](h)


class Attention(eqx.Module):
    """A Transformer encoder with a token for the task and one for the value of each parameter."""

    task: eqx.nn.Linear
    value: Array
    place: Array
    layers: tuple[EncoderLayer, ...]
    out: eqx.nn.Linear

    def __init__(self, width: int, places: int, key: Array) -> None:
        k = jax.random.split(key, 4 + _LAYERS)
        self.task = eqx.nn.Linear(width, _ATTENTION, key=k[0])
        self.value = jax.random.normal(k[1], (places, NUMBERS + 1, _ATTENTION)) / np.sqrt(NUMBERS)
        self.place = jax.random.normal(k[2], (places, _ATTENTION)) / 4
        self.layers = tuple(EncoderLayer(_ATTENTION, key) for key in k[4:])
        self.out = eqx.nn.Linear(_ATTENTION, 2, key=k[3])

    def __call__(self, features: Array, values: Array) -> Array:
        """Return `(2,)` outputs, as `Plain` does."""
        own = self.task(features)
        h = jnp.concatenate([own[None], self.place + jnp.einsum("pn,pnw->pw", values, self.value) + own])
        for layer in self.layers:
            h = layer(h)
        return self.out(h.mean(axis=0))


NETWORKS = {"attention": Attention, "plain": Plain}


class Predictor(eqx.Module):
    """Networks that differ only in their first weights, with the scale of their inputs.

    The outputs of a network are the log cost relative to other candidates of the task, if the candidate works, and the
    log odds that it fails.

    Attributes:
      networks: stacked, each one of `NETWORKS`.
      feature_scale, value_scale: `(2, f)` and `(2, places, NUMBERS)`, mean and deviation in the training data.
    """

    networks: Plain | Attention
    feature_scale: Array
    value_scale: Array

    @classmethod
    def random(cls, architecture: Architecture, width: int, places: int, key: Array) -> Self:
        """Return an untrained predictor for `width` features and groups of up to `places` parameters."""
        scales = [jnp.stack([jnp.zeros(shape), jnp.ones(shape)]) for shape in ((width,), (places, NUMBERS))]
        made = eqx.filter_vmap(lambda key: NETWORKS[architecture](width, places, key))(jax.random.split(key, _MEMBERS))
        return cls(made, *scales)

    @property
    def places(self) -> int:
        """The most parameters of a group that it takes."""
        return self.value_scale.shape[1]

    def __call__(self, features: Array, values: Array) -> Array:
        """Return the `(members, 2)` outputs for a candidate.

        Args:
          features: `(f,)`.
          values: `(places, NUMBERS + 1)`; the last number is 1 where there is a parameter, and 0 elsewhere.
        """
        real = values[:, -1:]
        scaled = (values[:, :-1] - self.value_scale[0]) / self.value_scale[1]
        features = jnp.clip((features - self.feature_scale[0]) / self.feature_scale[1], -_FAR, _FAR)
        known = jnp.concatenate([scaled * real, real], axis=1)
        return eqx.filter_vmap(lambda network: network(features, known))(self.networks)


def costs(outputs: Array, groups: Array | float = 1.0) -> Array:
    """Return the costs that `(..., 2)` outputs predict: a failure costs `FAILED` more, weighted by its probability.

    A candidate fails if any of its groups does, so the odds of failing count as often as it has groups. For 0 groups
    the cost is that of a candidate that works.
    """
    return outputs[..., 0] + FAILED * jax.nn.sigmoid(outputs[..., 1] + jnp.log(groups))


def table(group: Group, places: int) -> NDArray[np.float32]:
    """Return the `(places, v, NUMBERS + 1)` numbers of a group's values, padded to shapes that groups share."""
    p, widest, _ = group.values.shape
    numbers = np.zeros((places, max(16, 1 << (widest - 1).bit_length()), NUMBERS + 1), np.float32)
    numbers[:p, :widest, :-1], numbers[:p, :, -1] = group.values, 1.0
    return numbers


def predict(predictor: Predictor, group: Group, rows: NDArray, groups: int = 1) -> NDArray[np.float32]:
    """Return the `(n,)` predicted costs of `(n, p)` settings of one of some groups.

    Of the networks, the one that expects the worst counts: a search finds what one of them takes for fast by mistake.
    """
    values, n = table(group, predictor.places), len(rows)
    settings = np.zeros((-(-n // _BATCH) * _BATCH, len(values)), np.int32)
    settings[:n, : rows.shape[1]] = rows
    batches = settings.reshape(-1, _BATCH, len(values))
    return np.concatenate([_predict(predictor, group.features, values, batch, float(groups)) for batch in batches])[:n]


@jit
def _predict(predictor: Predictor, features: Array, values: Array, rows: Array, groups: float) -> Array:
    chosen = values[jnp.arange(len(values)), rows]
    return costs(jax.vmap(predictor, (None, 0))(features, chosen).max(axis=1), groups)


@dataclass(frozen=True)
class Model:
    """A predictor and what it was trained on.

    Attributes:
      names: the features that a task must declare.
      places: the most parameters of a group.
    """

    predictor: Predictor
    names: tuple[str, ...]
    places: int


def save(predictor: Predictor, architecture: str, names: tuple[str, ...], path: Path) -> None:
    """Write a predictor, with weights of 16 bits.

    Raises:
      UserError: the file cannot be written.
    """
    header = {"architecture": architecture, "features": names, "places": predictor.places}
    FILE.save(path, header, parameters(predictor, _stored_type))


def _stored_type(leaf: Any) -> type:  # noqa: ANN401 - an array of JAX
    """Return 16 bits for matrices of weights; scales of inputs may need more range."""
    return np.float16 if leaf.ndim > 1 and leaf.shape[0] > 2 else np.float32


def load(content: bytes, path: str) -> Model:
    """Return the model that a file holds, after checking its header and all arrays.

    Raises:
      UserError: the file is no model, is of another version, or is damaged.
    """
    header, arrays = FILE.load(content, path)
    names: Any = header.get("features")
    places, architecture = header.get("places"), header.get("architecture")
    named = isinstance(names, list) and all(isinstance(name, str) for name in names) and 0 < len(names) < _MANY
    if not named or not isinstance(places, int) or not 0 < places < _MANY or architecture not in NETWORKS:
        raise FILE.damaged(path, "its header")
    shape = eqx.filter_eval_shape(Predictor.random, architecture, len(names), places, jax.random.key(0))
    try:
        return Model(with_parameters(shape, arrays, _stored_type), tuple(names), places)
    except ValueError as error:
        raise FILE.damaged(path, error) from None
