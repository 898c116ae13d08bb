"""Losses: squared errors of logs for absolute times, and pairwise ranking within a kernel for relative ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

LOSSES = ("log_mse", "log_mae", "rank")


def log_mse(scores: Array, logs: Array, real: Array) -> Array:
    """Return the mean squared error of `(b, c)` scores as logs of seconds."""
    return jnp.where(real, (scores - logs) ** 2, 0.0).sum() / jnp.maximum(real.sum(), 1)


def log_mae(scores: Array, logs: Array, real: Array) -> Array:
    """Return the mean absolute error of `(b, c)` scores as logs of seconds: estimates that are exact may stay so."""
    return jnp.where(real, jnp.abs(scores - logs), 0.0).sum() / jnp.maximum(real.sum(), 1)


def rank(scores: Array, logs: Array, real: Array) -> Array:
    """Return the logistic loss of all pairs of settings of a kernel with different times (Kaufman et al. 2021).

    A pair counts as often as any other; those that differ by less than a thousandth are not ordered.
    """
    slower = (logs[:, :, None] - logs[:, None, :] > 1e-3) & real[:, :, None] & real[:, None, :]
    margins = scores[:, :, None] - scores[:, None, :]
    return jnp.where(slower, jax.nn.softplus(-margins), 0.0).sum() / jnp.maximum(slower.sum(), 1)
