"""Training of the networks by gradient descent, in batches of similar kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import UserError

from . import losses
from .batches import Batch, batched, filled, pad
from .dataset import Kernels, Settings
from .features import features
from .network import RANKED, Network, Standard

_RATE = 2e-3
_HIDDEN_OPCODES = 0.02
"""Share of the operations that are shown as unknown, so that the network knows what to do with those it never saw."""
_HIDE = 1e30
"""The deviation of a feature that is to be the same for all kernels."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes:
      kinds: what it predicts: `("graph",)` or `("tiles", "flags")`.
      loss: of `losses.LOSSES`.
      reduction: of `layers.REDUCTIONS`.
      epochs: times that each kernel is seen.
      see_graph, see_features: False hides the operations, or the features of whole kernels, for ablations.
    """

    kinds: tuple[str, ...]
    loss: str
    reduction: str = "mean"
    epochs: int = 30
    see_graph: bool = True
    see_features: bool = True


GRAPH = Recipe(("graph",), "log_mse")
RELATIVE = Recipe(("tiles", "flags"), "rank")


class Lesson(NamedTuple):
    """A batch with its labels: c settings of each of b kernels.

    Attributes:
      batch: the kernels.
      features: `(b, c, f)`.
      estimates: `(b, c)` logs of the analytical model's seconds.
      logs: `(b, c)` of the seconds.
      real: `(b, c)` False for padding.
    """

    batch: Batch
    features: NDArray[np.float32]
    estimates: NDArray[np.float32]
    logs: NDArray[np.float32]
    real: NDArray[np.bool_]


def train(data: Kernels, recipe: Recipe, rng: Generator, shown: Callable[[int, float], None]) -> Network:
    """Return a network that is trained on a data set.

    Args:
      shown: called with each epoch and its mean loss.

    Raises:
      UserError: there is nothing to learn from, or the loss is no longer a number.
    """
    lessons = [(kind, lesson) for kind in recipe.kinds for lesson in _lessons(data, kind, recipe, rng)]
    if not lessons:
        raise UserError("the data has no kernel with two settings that fit; make data with more programs")
    network = _new(data, recipe, jax.random.key(int(rng.integers(2**31))))
    rate = optax.cosine_decay_schedule(_RATE, recipe.epochs * len(lessons))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
    state = optimizer.init(eqx.filter(network, eqx.is_inexact_array))
    step = eqx.filter_jit(_step)
    for epoch in range(1, recipe.epochs + 1):
        total = 0.0
        for i in rng.permutation(len(lessons)).tolist():
            kind, lesson = lessons[i]
            network, state, loss = step(network, state, lesson, kind, recipe.loss, optimizer)
            total += float(loss)
        if not np.isfinite(total):
            raise UserError(f"the loss is not a number in epoch {epoch}; train with another seed, or look at the data")
        shown(epoch, total / len(lessons))
    return network


def _step(
    network: Network,
    state: optax.OptState,
    lesson: Lesson,
    kind: str,
    loss: str,
    optimizer: optax.GradientTransformation,
) -> tuple[Network, optax.OptState, Array]:
    def error(network: Network) -> Array:
        scores = network.score(
            kind, network.embed(lesson.batch), jnp.asarray(lesson.features), jnp.asarray(lesson.estimates)
        )
        return getattr(losses, loss)(scores, lesson.logs, lesson.real)

    value, gradient = eqx.filter_value_and_grad(error)(network)
    updates, state = optimizer.update(gradient, state)
    return eqx.apply_updates(network, updates), state, value


def _new(data: Kernels, recipe: Recipe, key: Array) -> Network:
    nodes, kernels = Standard.of(data.graphs.nodes), Standard.of(_features(data, recipe.kinds[0]))
    shown = kernels if recipe.see_features else Standard(kernels.mean, jnp.full_like(kernels.mean, _HIDE))
    scale = RANKED if recipe.loss == "rank" else 1.0
    return Network(nodes, shown, recipe.kinds, recipe.reduction, key, scale)


def _features(data: Kernels, kind: str) -> NDArray[np.float32]:
    """Return `(s, f)` features of all settings of a kind."""
    own = settings(data, kind)
    return features(np.repeat(data.rows, np.diff(own.starts), axis=0), own.values, own.estimates, data.machine)


def settings(data: Kernels, kind: str) -> Settings:
    """Return the settings of a kind: `tiles`, `flags`, or for `graph` the compiler's own of each kernel."""
    if kind == "graph":
        return Settings(np.arange(len(data) + 1), data.chosen, data.estimates, data.seconds)
    return data.tiles if kind == "tiles" else data.flags


def _lessons(data: Kernels, kind: str, recipe: Recipe, rng: Generator) -> list[Lesson]:
    own, every = settings(data, kind), _features(data, kind)
    counts = np.diff(own.starts)
    useful = rng.permutation(np.flatnonzero(counts > (kind != "graph")))
    widest = int(counts.max(initial=0))
    lessons = []
    for kernels in batched(data.graphs, useful):
        batch = hidden(pad(data.graphs, kernels), recipe, rng)
        place = own.starts[kernels][:, None] + np.arange(widest)
        real = np.arange(widest) < counts[kernels][:, None]
        place = np.where(real, place, own.starts[kernels][:, None])
        b = len(batch.opcodes)
        arrays = (every[place], np.log(own.estimates)[place], np.log(own.seconds)[place], real)
        rows, estimates, logs, mask = (filled(array, b) for array in arrays)
        lessons.append(Lesson(batch, rows, estimates.astype(np.float32), logs.astype(np.float32), mask))
    return lessons


def hidden(batch: Batch, recipe: Recipe, rng: Generator) -> Batch:
    """Return a batch as the network is shown it while it learns."""
    if not recipe.see_graph:
        return batch._replace(opcodes=0 * batch.opcodes, nodes=0 * batch.nodes)
    unknown = rng.random(batch.opcodes.shape) < _HIDDEN_OPCODES
    return batch._replace(opcodes=np.where(unknown, 0, batch.opcodes).astype(np.int16))
