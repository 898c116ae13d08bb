"""The acquisition functions of Bayesian optimization, and the evolutionary search that maximises one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

NAMES = ("mean", "ucb", "ei", "thompson")
_PARENTS = 5


def acquisition(
    name: str, predictions: NDArray[np.float64], noise: float, no_gain: float, exploration: float, rng: Generator
) -> NDArray[np.float64]:
    """Return the `(n,)` acquisition values of candidates; the largest is the best.

    Args:
      name: `mean` (of the predicted gains: an expected improvement that assumes no distribution), `ucb` (Srinivas et
        al. 2010), `ei` (Mockus 1975: expected improvement of a normal distribution) or `thompson` (1933: one draw for
        each candidate).
      predictions: `(members, n)` predicted targets, small is good.
      noise: standard deviation that no member explains.
      no_gain: the target of a change that gains nothing.
      exploration: weight of the standard deviation in `ucb`.
      rng: draws for `thompson`.
    """
    mean = predictions.mean(axis=0)
    spread = np.sqrt(predictions.var(axis=0) + noise**2)
    if name == "ucb":
        return exploration * spread - mean
    if name == "ei":
        return _expected_improvement(no_gain - mean, spread)
    return -(rng.normal(mean, spread) if name == "thompson" else mean)


def _expected_improvement(better: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of normal distributions cut off at zero (Jones et al. 1998, equation 15)."""
    from scipy.special import ndtr

    scaled = better / np.maximum(spread, 1e-12)
    return better * ndtr(scaled) + spread * np.exp(-(scaled**2) / 2) / np.sqrt(2 * np.pi)


def maximise(
    acquisition: Callable[[NDArray], NDArray[np.float64]],
    base: NDArray,
    change: Callable[[NDArray], NDArray],
    population: int,
    generations: int,
    rng: Generator,
) -> NDArray:
    """Return the `(n, d)` changes of a base that an evolutionary search visits, best first, without the base itself.

    It starts from changes of the base. Each generation consists of children of the best fifth of all visited so far:
    half of them join the changes of two parents, half change one parent further.

    Args:
      acquisition: returns the `(n,)` values of `(n, d)` candidates; the largest is the best.
      base: `(d,)`.
      change: returns `(n, d)` candidates, each changed.
      population: children in a generation.
      generations: number of generations.
      rng: draws parents.
    """
    visited = _different(change(np.repeat(base[None], population, axis=0)), base)
    values = acquisition(visited) if len(visited) else np.zeros(0)
    for _ in range(generations if len(visited) else 0):
        best = visited[np.argsort(-values, kind="stable")[: max(2, population // _PARENTS)]]
        children = _different(_children(base, best, change, population, rng), base)
        if len(children):
            visited, values = np.concatenate([visited, children]), np.append(values, acquisition(children))
    return visited[np.argsort(-values, kind="stable")]


def _children(base: NDArray, parents: NDArray, change: Callable[[NDArray], NDArray], n: int, rng: Generator) -> NDArray:
    first, second = parents[rng.integers(0, len(parents), (2, n))]
    joined = np.where(first != base, first, second)
    return np.concatenate([joined[: n // 2], change(first[n // 2 :])])


def _different(children: NDArray, base: NDArray) -> NDArray:
    return children[(children != base).any(axis=1)]
