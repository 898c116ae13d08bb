"""The two predictors: self-attention over the task and the values of its parameters, and a plain network."""

from __future__ import annotations

from functools import partial
from typing import Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from .description import NUMBERS, Group

Architecture = Literal["attention", "plain"]

ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}  # with one thread a run repeats exactly
_BATCH = 1024
_FAR = 4.0
"""Features further from the mean than this many standard deviations count as that far."""
FAILED = 3.0
"""The label of a candidate that failed: it costs e^3 times the median of its task; those of others are no larger."""
_PLAIN, _ATTENTION, _HEADS, _LAYERS = 128, 64, 4, 3
_MEMBERS = 3


class Plain(eqx.Module):
    """A perceptron with three hidden layers over all numbers of the task and of the values."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, width: int, places: int, key: Array, hidden: int = _PLAIN) -> None:
        sizes = (width + places * (NUMBERS + 1), hidden, hidden, hidden, 2)
        keys = jax.random.split(key, len(sizes) - 1)
        ends = zip(sizes, sizes[1:], keys, strict=False)
        self.layers = tuple(eqx.nn.Linear(before, after, key=k) for before, after, k in ends)

    def __call__(self, features: Array, values: Array) -> Array:
        """Return `(2,)` outputs from `(f,)` features of the task and `(places, NUMBERS + 1)` of the values."""
        h = jnp.concatenate([features, values.reshape(-1)])
        for layer in self.layers[:-1]:
            h = jax.nn.gelu(layer(h))
        return self.layers[-1](h)


class AttentionLayer(eqx.Module):
    """A layer of a Transformer encoder, normalised before each part."""

    mixed: eqx.nn.Linear
    merge: eqx.nn.Linear
    inner: eqx.nn.Linear
    outer: eqx.nn.Linear
    norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]

    def __init__(self, width: int, key: Array) -> None:
        k = jax.random.split(key, 4)
        self.mixed, self.merge = eqx.nn.Linear(width, 3 * width, key=k[0]), eqx.nn.Linear(width, width, key=k[1])
        self.inner, self.outer = eqx.nn.Linear(width, 2 * width, key=k[2]), eqx.nn.Linear(2 * width, width, key=k[3])
        self.norms = (eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width))

    def __call__(self, h: Array) -> Array:
        """Return `(tokens, width)` embeddings."""
        h = h + self._attend(jax.vmap(self.norms[0])(h))
        return h + jax.vmap(lambda row: self.outer(jax.nn.gelu(self.inner(self.norms[1](row)))))(h)

    def _attend(self, h: Array) -> Array:
        queries, keys, values = jnp.split(jax.vmap(self.mixed)(h).reshape(len(h), _HEADS, -1), 3, axis=2)
        scores = jnp.einsum("qhc,khc->hqk", queries, keys) / jnp.sqrt(queries.shape[2])
        attended = jnp.einsum("hqk,khc->qhc", jax.nn.softmax(scores, axis=2), values)
        return jax.vmap(self.merge)(attended.reshape(len(h), -1))


class Attention(eqx.Module):
    """A Transformer encoder with a token for the task and one for the value of each parameter."""

    task: eqx.nn.Linear
    value: Array
    place: Array
    layers: tuple[AttentionLayer, ...]
    out: eqx.nn.Linear

    def __init__(self, width: int, places: int, key: Array) -> None:
        k = jax.random.split(key, 4 + _LAYERS)
        self.task = eqx.nn.Linear(width, _ATTENTION, key=k[0])
        self.value = jax.random.normal(k[1], (places, NUMBERS + 1, _ATTENTION)) / np.sqrt(NUMBERS)
        self.place = jax.random.normal(k[2], (places, _ATTENTION)) / 4
        self.layers = tuple(AttentionLayer(_ATTENTION, key) for key in k[4:])
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
        given = jnp.concatenate([scaled * real, real], axis=1)
        return eqx.filter_vmap(lambda network: network(features, given))(self.networks)


def costs(outputs: Array, groups: Array | float = 1.0) -> Array:
    """Return the costs that `(..., 2)` outputs predict: a failure costs `FAILED` more, weighted by its probability.

    A candidate fails if any of its groups does, so the odds of failing count as often as it has groups. For 0 groups
    the cost is that of a candidate that works.
    """
    return outputs[..., 0] + FAILED * jax.nn.sigmoid(outputs[..., 1] + jnp.log(groups))


def table(group: Group, places: int) -> NDArray[np.float32]:
    """Return the `(places, v, NUMBERS + 1)` numbers of a group's values, padded to shapes that groups share."""
    p, widest, _ = group.values.shape
    padded = np.zeros((places, max(16, 1 << (widest - 1).bit_length()), NUMBERS + 1), np.float32)
    padded[:p, :widest, :-1], padded[:p, :, -1] = group.values, 1.0
    return padded


def predict(predictor: Predictor, group: Group, rows: NDArray, groups: int = 1) -> NDArray[np.float32]:
    """Return the `(n,)` predicted costs of `(n, p)` settings of one of some groups.

    Of the networks, the one that expects the worst counts: a search finds what one of them takes for fast by mistake.
    """
    values, n = table(group, predictor.places), len(rows)
    padded = np.zeros((-(-n // _BATCH) * _BATCH, len(values)), np.int32)
    padded[:n, : rows.shape[1]] = rows
    batches = padded.reshape(-1, _BATCH, len(values))
    return np.concatenate([_predict(predictor, group.features, values, batch, float(groups)) for batch in batches])[:n]


@partial(jax.jit, compiler_options=ONE_THREAD)
def _predict(predictor: Predictor, features: Array, values: Array, rows: Array, groups: float) -> Array:
    chosen = values[jnp.arange(len(values)), rows]
    return costs(jax.vmap(predictor, (None, 0))(features, chosen).max(axis=1), groups)
