"""The two predictors of costs, self-attention over values of parameters and a plain network, and their files.

A predictor is trained on candidates of many tasks to rank those of each task, above all the fast ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Evaluations, Strategy, UserError
from bbo_suite.files.arrays import ArrayFile
from bbo_suite.loop import drive
from bbo_suite.nets import EncoderLayer, jit, linear_layers, parameters, with_parameters
from bbo_suite.pretraining import Lesson

from ..evolution import Evolution
from .groups import NUMBERS, Group, feature_names, groups, ranked

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


Tell = Callable[[int, str], None]
"""Receives the number of evaluations so far and a message."""

_QUERIES = 6144  # predictions for the picks of a task
_RANDOM = 0.25  # share of the candidates that is drawn at random, where the others explore
_TASKS, _ROWS = 16, 32  # of a batch
_RATE = 2e-3
_SHARPNESS = 4.0  # a pair counts exp(-4) times as much if its faster one is e times as slow as the batch's best
_SCALE = 10.0  # a difference of 10 % in cost counts as 1 in the logistic loss of a pair
_SQUARED = 0.1  # weight of the squared error

Data = tuple[NDArray, NDArray, NDArray]


@dataclass(frozen=True)
class Samples:
    """Samples of t tasks, r candidates each.

    Attributes:
      groups: t groups, the only one of each task.
      lessons: the t tasks.
      rows: t arrays `(r, p)` of indices.
      labels: `(t, r)` log of the cost over the median cost of the task's candidates; `FAILED` for a failure.
    """

    lessons: list[Lesson]
    groups: list[Group]
    rows: list[NDArray]
    labels: NDArray[np.float32]


def collect(lessons: Sequence[Lesson], each: int, explore: bool, rng: Generator, tell: Tell) -> Samples:
    """Evaluate candidates of all tasks, `each` of every one.

    Args:
      explore: most candidates are those of an evolutionary search; else all are random.

    Raises:
      UserError: a task has several groups, or no task teaches anything.
    """
    found = []
    for number, lesson in enumerate(lessons, 1):
        group, rows = _only_group(lesson), lesson.task.space.sample(each, rng)
        found.append((lesson, group, _explored(lesson, each, rng) if explore else rows))
        if number % 50 == 0:
            tell(each * number, f"{number} of {len(lessons)} tasks explored")
    return _labelled(found)


def extended(samples: Samples, predictor: Predictor, each: int, rng: Generator, tell: Tell) -> Samples:
    """Return samples with `each` more candidates of every task: those that a predictor takes for fast.

    A search on the predictor finds its errors. These candidates tell it about them.
    """
    found, before = [], len(samples.lessons) * samples.labels.shape[1]
    for number, (lesson, group, rows) in enumerate(zip(samples.lessons, samples.groups, samples.rows, strict=True), 1):
        order = ranked(lesson.task.space, lesson.task.default, partial(predict, predictor, group), _QUERIES, rng)
        best = np.arange(each // 2) if len(order) > each else np.arange(0)
        further = rng.integers(0, min(len(order), 5 * each), each - len(best))
        found.append((lesson, group, np.vstack([rows, order[best], order[further]])))
        if number % 50 == 0:
            tell(before + each * number, f"picks of {number} of {len(samples.lessons)} tasks")
    return _labelled(found)


def _labelled(found: list[tuple[Lesson, Group, NDArray]]) -> Samples:
    """Evaluate the candidates; tasks that teach nothing are left out."""
    labelled = [(*each, labels(each[0].evaluate(each[2]))) for each in found]
    useful = [(lesson, group, rows, label) for lesson, group, rows, label in labelled if label is not None]
    if not useful:
        raise UserError("no training task has two candidates that work and differ in cost; train on other tasks")
    lessons, groups, rows, label = map(list, zip(*useful, strict=True))
    return Samples(lessons, groups, rows, np.stack(label))


def labels(values: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return the `(r,)` labels of the costs of one task; None if they teach nothing.

    That is so if all failed or cost the same, or if the median is no positive number: a cost of 0 marks a kernel that
    was not timed.
    """
    works = np.isfinite(values)
    if not works.any() or (values[works] <= 0).any() or np.ptp(values[works]) == 0:
        return None
    logs = np.log(np.where(works, values, 1.0))
    return np.where(works, np.minimum(logs - np.median(logs[works]), FAILED), FAILED).astype(np.float32)


def _explored(lesson: Lesson, n: int, rng: Generator) -> NDArray:
    """Return `(n, p)` candidates: a quarter at random, the others those of an evolutionary search."""
    drawn = lesson.task.space.sample(max(1, round(_RANDOM * n)), rng)
    search: Strategy = Evolution(lesson.task, n - len(drawn), rng.spawn(1)[0], Evolution.Options())
    batches = drive(search, lambda configs, _: Evaluations.of(lesson.evaluate(configs)), 20)
    drawn = np.vstack([drawn, *(batch.configs for batch in batches)])
    # where the search has tried all, some come twice
    return np.vstack([drawn, drawn[rng.integers(0, len(drawn), n - len(drawn))]]) if len(drawn) < n else drawn


def common_names(lessons: Sequence[Lesson]) -> tuple[str, ...]:
    """Return the names of what describes all tasks.

    Raises:
      UserError: two tasks are described by different features.
    """
    first = lessons[0].task
    for task in (lesson.task for lesson in lessons):
        if feature_names(task) != feature_names(first):
            raise UserError(
                f"{first.problem} and {task.problem} declare different features; train on one family, or on recorded"
                " spaces with the same parameters"
            )
    return feature_names(first)


def _only_group(lesson: Lesson) -> Group:
    task = lesson.task
    found = groups(task)
    if len(found) > 1:
        raise UserError(
            f"{task.problem} has {len(found)} groups of parameters that do not interact, so their costs cannot be told"
            " apart; train on tasks of one kernel each, such as tile/rnn#0, or on a family of tasks"
        )
    return found[0]


def train(
    samples: Samples, architecture: Architecture, steps: int, rank: bool, rng: Generator, tell: Callable[[str], None]
) -> Predictor:
    """Return a predictor that has learned from samples.

    Args:
      rank: learn the order by pairs; else only the labels by squared error.
      tell: receives messages.

    Raises:
      UserError: the loss is no longer a number.
    """
    predictor, (features, values, labels) = _fresh(samples, architecture, rng)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(_RATE, steps)))
    state, losses = optimizer.init(predictor.networks), []
    for step in range(1, steps + 1):
        tasks = rng.integers(0, len(labels), _TASKS)
        rows = tasks[:, None], rng.integers(0, labels.shape[1], (_TASKS, _ROWS))
        batch = features[tasks], values[rows].astype(np.float32), labels[rows]
        predictor, state, loss = _step(optimizer, predictor, state, batch, rank)
        losses.append(loss)
        if step % 100 == 0 or step == steps:
            _report(float(np.mean(losses[-100:])), f"{step:,} of {steps:,}", tell)
    return predictor


def _report(loss: float, step: str, tell: Callable[[str], None]) -> None:
    if not np.isfinite(loss):
        raise UserError(f"the loss is {loss} at step {step}; pretrain with another seed or on other tasks")
    tell(f"step {step}, loss {loss:.4f}")


def _fresh(samples: Samples, architecture: Architecture, rng: Generator) -> tuple[Predictor, Data]:
    """Return an untrained predictor for samples, and the samples as arrays: features, values and labels."""
    places = max(len(group.columns) for group in samples.groups)
    features = np.stack([group.features for group in samples.groups])
    values = np.zeros((*samples.labels.shape, places, NUMBERS + 1), np.float16)
    for task, (group, rows) in enumerate(zip(samples.groups, samples.rows, strict=True)):
        values[task, :, : rows.shape[1]] = table(group, places)[np.arange(rows.shape[1]), rows]
    key = jax.random.key(int(rng.integers(2**31)))
    untrained = Predictor.random(architecture, features.shape[1], places, key)
    return Predictor(untrained.networks, _scale(features), _value_scale(values)), (features, values, samples.labels)


def _scale(numbers: NDArray) -> Array:
    """Return the `(2, m)` mean and standard deviation of the columns, 1 where a column does not vary."""
    deviation = numbers.std(axis=0, dtype=np.float64)
    scale = [numbers.mean(axis=0, dtype=np.float64), np.where(deviation > 1e-6, deviation, 1.0)]
    return jnp.asarray(np.stack(scale), jnp.float32)


def _value_scale(values: NDArray) -> Array:
    """Return the `(2, places, NUMBERS)` scale of the numbers of values, of each place where there is a parameter."""
    each = (values[:, :, place] for place in range(values.shape[2]))
    return jnp.stack([_scale(numbers[numbers[..., -1] > 0][:, :-1]) for numbers in each], axis=1)


def _loss(outputs: Array, labels: Array, rank: bool) -> Array:
    """Return the loss of one network: `(tasks, rows, 2)` outputs for `(tasks, rows)` labels."""
    predicted = costs(outputs)
    squared = jnp.mean((predicted - labels) ** 2)
    failures = jnp.mean(optax.sigmoid_binary_cross_entropy(outputs[..., 1], labels >= FAILED))
    return failures + (_pairs(predicted, labels) + _SQUARED * squared if rank else squared)


def _pairs(predicted: Array, labels: Array) -> Array:
    """Return the logistic loss of the pairs of each task; those with a fast candidate count most."""
    best = labels.min(axis=1)[:, None, None]
    slower = labels[:, None, :] > labels[:, :, None] + 1e-4
    weights = jnp.exp(-_SHARPNESS * (labels[:, :, None] - best)) * slower
    losses = jax.nn.softplus(-_SCALE * (predicted[:, None, :] - predicted[:, :, None]))
    return (weights * losses).sum() / jnp.maximum(weights.sum(), 1e-6)


@partial(jit, static_argnums=(0, 4))
def _step(
    optimizer: optax.GradientTransformation, predictor: Predictor, state: optax.OptState, batch: Data, rank: bool
) -> tuple[Predictor, optax.OptState, Array]:
    features, values, labels = map(jnp.asarray, batch)

    def loss(networks: Any) -> Array:  # noqa: ANN401 - arrays in the shape of a network
        whole = Predictor(networks, predictor.feature_scale, predictor.value_scale)
        outputs = jax.vmap(jax.vmap(whole, (None, 0)))(features, values)
        return jax.vmap(lambda own: _loss(own, labels, rank), 2)(outputs).mean()

    value, gradient = eqx.filter_value_and_grad(loss)(predictor.networks)
    updates, state = optimizer.update(gradient, state)
    networks = eqx.apply_updates(predictor.networks, updates)
    return Predictor(networks, predictor.feature_scale, predictor.value_scale), state, value
