"""Training of a predictor: to rank the candidates of each task, above all the fast ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import UserError

from .description import NUMBERS
from .predictor import FAILED, ONE_THREAD, Architecture, Predictor, costs, table
from .samples import Samples

_TASKS, _ROWS = 16, 32  # of a batch
_RATE = 2e-3
_SHARPNESS = 4.0  # a pair counts exp(-4) times as much if its faster one is e times as slow as the batch's best
_SCALE = 10.0  # a difference of 10 % in cost counts as 1 in the logistic loss of a pair
_SQUARED = 0.1  # weight of the squared error

Data = tuple[NDArray, NDArray, NDArray]


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


@partial(jax.jit, static_argnums=(0, 4), compiler_options=ONE_THREAD)
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
