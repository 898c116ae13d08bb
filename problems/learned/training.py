"""Training of the networks, in batches of similar kernels; the three models that ship; and how good a model is.

A model is judged on programs that it was not trained on, beside the compiler's analytical model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
from bbo_suite.nets import filter_jit, padded

from .dataset import Kernels
from .kernels import Batch, batched, features, pad
from .model import GRAPH_KINDS, RANKED, SETTING_KINDS, CostModel, Network, Standard, embeddings, scores

_RATE = 2e-3
_HIDDEN_OPCODES = 0.02
"""Share of the operations that are shown as unknown, so that the network knows what to do with those it never saw."""
_MOST = 4000
"""Kernels from which the meaning of a score is found."""
_NEAR = 1.5
"""Only settings that take at most this many times as long as the fastest matter for it: a search stays near these."""


Loss = Callable[[Array, Array, Array], Array]
"""Takes `(b, c)` scores of c settings of each of b kernels, logs of their seconds, and which are real."""


def log_mse(scores: Array, logs: Array, real: Array) -> Array:
    """Return the mean squared error of scores as logs of seconds."""
    return jnp.where(real, (scores - logs) ** 2, 0.0).sum() / jnp.maximum(real.sum(), 1)


def pairwise(penalty: Callable[[Array], Array]) -> Loss:
    """Return the mean penalty of all pairs of settings of a kernel with different times (Kaufman et al. 2021).

    A pair counts as often as any other; those that differ by less than a thousandth are not ordered.

    Args:
      penalty: takes by how much the scores of the slower settings exceed those of the faster ones.
    """

    def loss(scores: Array, logs: Array, real: Array) -> Array:
        slower = (logs[:, :, None] - logs[:, None, :] > 1e-3) & real[:, :, None] & real[:, None, :]
        margins = scores[:, :, None] - scores[:, None, :]
        return jnp.where(slower, penalty(margins), 0.0).sum() / jnp.maximum(slower.sum(), 1)

    return loss


rank = pairwise(lambda margins: jax.nn.softplus(-margins))
"""The logistic loss of pairs."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes:
      kinds: what it predicts: `GRAPH_KINDS` or `SETTING_KINDS`.
      loss: `log_mse` for absolute times, `rank` for an order within each kernel.
      reduction: of `model.REDUCTIONS`.
      epochs: times that each kernel is seen.
    """

    kinds: tuple[str, ...]
    loss: Loss
    reduction: str = "mean"
    epochs: int = 30


GRAPH = Recipe(GRAPH_KINDS, log_mse)
RELATIVE = Recipe(SETTING_KINDS, rank)


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


def new_network(data: Kernels, recipe: Recipe, key: Array) -> Network:
    """Return a network that is not yet trained, for features as they are distributed in a data set."""
    nodes, kernels = Standard.of(data.graphs.nodes), Standard.of(_features(data, recipe.kinds[0]))
    scale = 1.0 if recipe.loss is log_mse else RANKED
    return Network(nodes, kernels, recipe.kinds, recipe.reduction, key, scale)


def train(
    data: Kernels,
    recipe: Recipe,
    rng: Generator,
    shown: Callable[[int, float], None],
    start: Callable[[Kernels, Recipe, Array], Network] = new_network,
) -> Network:
    """Return a network that is trained on a data set.

    Args:
      shown: called with each epoch and its mean loss.
      start: makes the network, as `new_network` does.

    Raises:
      UserError: there is nothing to learn from, or the loss is no longer a number.
    """
    lessons = [(kind, lesson) for kind in recipe.kinds for lesson in _lessons(data, kind, rng)]
    if not lessons:
        raise UserError("the data has no kernel with two settings that fit; make data with more programs")
    network = start(data, recipe, jax.random.key(int(rng.integers(2**31))))
    rate = optax.cosine_decay_schedule(_RATE, recipe.epochs * len(lessons))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
    state = optimizer.init(eqx.filter(network, eqx.is_inexact_array))
    step = filter_jit(_step)
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
    loss: Loss,
    optimizer: optax.GradientTransformation,
) -> tuple[Network, optax.OptState, Array]:
    def error(network: Network) -> Array:
        scores = network.score(
            kind, network.embed(lesson.batch), jnp.asarray(lesson.features), jnp.asarray(lesson.estimates)
        )
        return loss(scores, jnp.asarray(lesson.logs), jnp.asarray(lesson.real))

    value, gradient = eqx.filter_value_and_grad(error)(network)
    updates, state = optimizer.update(gradient, state)
    return eqx.apply_updates(network, updates), state, value


def _features(data: Kernels, kind: str) -> NDArray[np.float32]:
    """Return `(s, f)` features of all settings of a kind."""
    own = data.settings(kind)
    return features(np.repeat(data.rows, np.diff(own.starts), axis=0), own.values, own.estimates, data.machine)


def _lessons(data: Kernels, kind: str, rng: Generator) -> list[Lesson]:
    own, every = data.settings(kind), _features(data, kind)
    counts = np.diff(own.starts)
    useful = rng.permutation(np.flatnonzero(counts > (kind != "graph")))
    widest = int(counts.max(initial=0))
    lessons = []
    for kernels in batched(data.graphs, useful):
        batch = _hidden(pad(data.graphs, kernels), rng)
        place = own.starts[kernels][:, None] + np.arange(widest)
        real = np.arange(widest) < counts[kernels][:, None]
        place = np.where(real, place, own.starts[kernels][:, None])
        b = len(batch.opcodes)
        arrays = (every[place], np.log(own.estimates)[place], np.log(own.seconds)[place], real)
        rows, estimates, logs, mask = (padded(array, b) for array in arrays)
        lessons.append(Lesson(batch, rows, estimates.astype(np.float32), logs.astype(np.float32), mask))
    return lessons


def _hidden(batch: Batch, rng: Generator) -> Batch:
    """Return a batch as the network is shown it while it learns."""
    unknown = rng.random(batch.opcodes.shape) < _HIDDEN_OPCODES
    return batch._replace(opcodes=np.where(unknown, 0, batch.opcodes).astype(np.int16))


def fit(
    data: Kernels, epochs: int, reduction: str, rng: Generator, shown: Callable[[str, int, float], None]
) -> CostModel:
    """Return the models.

    Args:
      shown: called with what is trained, the epoch, and its mean loss.

    Raises:
      UserError: there is nothing to learn from, or a loss is no longer a number.
    """

    def fitted(name: str, recipe: Recipe) -> Network:
        own = replace(recipe, epochs=epochs, reduction=reduction)
        return train(data, own, rng, lambda epoch, loss: shown(name, epoch, loss))

    absolute, relative = fitted("fusions and layouts", GRAPH), fitted("tiles and flags", RELATIVE)
    few = data.take(np.sort(rng.permutation(len(data))[:_MOST]))
    slopes = np.array([_slope(relative, kind, few) for kind in RELATIVE.kinds])
    return CostModel(data.machine, data.programs, reduction, absolute, relative, slopes)


def scored(network: Network, kind: str, data: Kernels) -> NDArray[np.float64]:
    """Return the scores of all settings of a kind (see `Kernels.settings`)."""
    own = data.settings(kind)
    kernel = np.repeat(np.arange(len(data)), np.diff(own.starts))
    rows = features(data.rows[kernel], own.values, own.estimates, data.machine)
    return scores(network, kind, embeddings(network, data.graphs)[kernel], rows, own.estimates)


def _slope(network: Network, kind: str, data: Kernels) -> float:
    """Return how the log of the time grows with the score among good settings of a kernel, by least squares."""
    own = data.settings(kind)
    kernel = np.repeat(np.arange(len(data)), np.diff(own.starts))
    fastest = np.full(len(data), np.inf)
    np.minimum.at(fastest, kernel, own.seconds)
    near = np.flatnonzero(own.seconds <= _NEAR * fastest[kernel])
    values = (scored(network, kind, data), np.log(own.seconds))
    score, logs = (_centred(array[near], kernel[near]) for array in values)
    square = float(score @ score)
    return float(score @ logs) / square if square > 0 else 0.0


def _centred(values: NDArray[np.float64], kernel: NDArray[np.int64]) -> NDArray[np.float64]:
    means = np.bincount(kernel, values) / np.maximum(np.bincount(kernel), 1)
    return values - means[kernel]


KINDS = {"graph": "kernel times, MAPE %", "tiles": "chosen tiles, APE %", "flags": "chosen flags, APE %"}
"""What is predicted, and what its errors are called."""


def errors(scores: NDArray[np.float64], kind: str, data: Kernels) -> dict[str, float]:
    """Return the error for each program with something to choose: MAPE of logs of times, or APE of what they choose.

    Args:
      scores: `(s,)` of all settings of a kind (see `Kernels.settings`).
    """
    own, found = data.settings(kind), {}
    counts = np.diff(own.starts)
    for number, name in enumerate(data.programs):
        kernels = np.flatnonzero((data.program == number) & (counts > (kind != "graph")))
        mine = np.repeat(data.program == number, counts) & np.repeat(counts > (kind != "graph"), counts)
        if len(kernels):
            starts = np.concatenate([[0], np.cumsum(counts[kernels])])
            predicted, seconds = scores[mine], own.seconds[mine]
            found[name] = (
                mape(np.exp(predicted), seconds) if kind == "graph" else chosen_ape(predicted, seconds, starts)
            )
    return found


def check_unseen(model: CostModel, data: Kernels) -> None:
    """Check that a model can be judged on a data set.

    Raises:
      UserError: it was trained on one of the programs, or for another machine.
    """
    if model.machine != data.machine:
        raise UserError(f"the model is for {model.machine}, the data for {data.machine}; give data of the same machine")
    if both := sorted(set(model.programs) & set(data.programs)):
        raise UserError(f"the model was trained on {', '.join(both)}; give data of other programs")


def network_of(model: CostModel, kind: str) -> Network:
    """Return the network that predicts a kind."""
    return model.absolute if kind == "graph" else model.relative


def lines(model: CostModel, data: Kernels) -> Iterator[str]:
    """Yield a table for each of `KINDS`: the errors of the learned and of the analytical model, by program.

    Raises:
      UserError: as `check_unseen` does.
    """
    check_unseen(model, data)
    for kind, title in KINDS.items():
        learned = errors(scored(network_of(model, kind), kind, data), kind, data)
        analytical = errors(np.log(data.settings(kind).estimates), kind, data)
        yield f"{title:40} {'learned':>8} {'analytical':>10}"
        for name, error in learned.items():
            yield f"{name:40} {error:8.2f} {analytical[name]:10.2f}"
        yield f"{'mean':40} {np.mean([*learned.values()]):8.2f} {np.mean([*analytical.values()]):10.2f}"


def mape(predicted: NDArray[np.float64], seconds: NDArray[np.float64]) -> float:
    """Return the mean absolute percentage error of `(k,)` predicted seconds."""
    return float(100 * np.mean(np.abs(predicted / seconds - 1)))


def chosen_ape(scores: NDArray[np.float64], seconds: NDArray[np.float64], starts: NDArray[np.int64]) -> float:
    """Return the absolute percentage error of the settings that scores choose (Kaufman et al. 2021, tile size).

    The sum over kernels of what the setting with the lowest score takes more than the fastest, over the sum of the
    fastest.

    Args:
      scores, seconds: `(s,)` of all settings.
      starts: `(k + 1,)`; the settings of kernel i are `starts[i]:starts[i + 1]`.
    """
    lost = fastest = 0.0
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end > first:
            least = float(seconds[first:end].min())
            lost += float(seconds[first + int(np.argmin(scores[first:end]))]) - least
            fastest += least
    return 100 * lost / fastest
