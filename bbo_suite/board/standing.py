"""Who stands where: mean shares of the best known gains, ranks, and how sure both are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..core.level import LEVEL, Level
from .reference import ReferenceList, Task

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = Path(__file__).with_name("published.csv.gz")
"""The runs of all strategies on the board: strategy, level, problem, budget, seed, best."""
KEPT = ["strategy", LEVEL, "problem", "budget", "seed", "best"]
_SAMPLES = 2000


@dataclass(frozen=True)
class Standing:
    """A strategy's place after a number of evaluations; intervals of 95 % are of the bootstrap over its runs.

    Attributes:
      share: of the best known gain, the mean over runs, then tasks, then families; with its interval.
      rank: among all strategies, with its interval; 1 is best.
      among: its rank among those that know no more than it does, and their number.
      simulated, real: the shares on the two halves of the list; nan for a half without a task.
    """

    strategy: str
    level: Level
    budget: int
    share: tuple[float, float, float]
    rank: tuple[int, int, int]
    strategies: int
    among: tuple[int, int]
    simulated: float
    real: float


@cache
def published() -> pd.DataFrame:
    """Return the runs of all strategies on the board (see `PUBLISHED`)."""
    import pandas as pd

    return pd.read_csv(PUBLISHED)


def standings(runs: pd.DataFrame, listed: ReferenceList) -> list[Standing]:
    """Return the standing of each strategy that ran all tasks with a budget, by budget, the best first.

    Args:
      runs: with the columns `KEPT`; those that are not on the list are passed over.
    """
    return [each for budget in listed.budgets for each in _after(budget, runs, listed)]


def _after(budget: int, runs: pd.DataFrame, listed: ReferenceList) -> list[Standing]:
    tasks = [task for task in listed.tasks if budget in task.budgets]
    own = runs[(runs["budget"] == budget) & (runs["seed"] < listed.seeds)]
    shares = {
        (str(name), Level.named(level)): own_shares
        for (name, level), group in own.groupby(["strategy", LEVEL])
        if (own_shares := _shares(group, tasks, listed.seeds)) is not None
    }
    if not shares:
        return []
    weights, rng = _weights(tasks), np.random.default_rng(0)
    means = np.array([weights @ each.mean(axis=1) for each in shares.values()])
    drawn = np.array([_resampled(each, weights, rng) for each in shares.values()])
    ranks = 1 + (drawn[None] > drawn[:, None]).sum(axis=1)
    real = np.array([task.real for task in tasks])
    found = []
    for place, ((name, level), each) in enumerate(shares.items()):
        peers = np.array([other <= level for _, other in shares])
        low, high = np.quantile(drawn[place], (0.025, 0.975)).tolist()
        first, last = np.quantile(ranks[place], (0.025, 0.975), method="nearest").astype(int).tolist()
        rank = 1 + int((means > means[place]).sum())
        half = [_half(each, tasks, real == kind) for kind in (False, True)]
        among = 1 + int((means[peers] > means[place]).sum()), int(peers.sum())
        spread = (min(first, rank), max(last, rank))
        found.append(
            Standing(name, level, budget, (means[place], low, high), (rank, *spread), len(means), among, *half)
        )
    return sorted(found, key=lambda standing: -standing.share[0])


def _shares(runs: pd.DataFrame, tasks: Sequence[Task], seeds: int) -> NDArray[np.float64] | None:
    """Return the `(tasks, seeds)` shares of a strategy; None if a run is missing."""
    keys = zip(runs["problem"], runs["seed"], strict=True)
    best = dict(zip(keys, runs["best"].to_numpy(np.float64).tolist(), strict=True))
    if not all((task.problem, seed) in best for task in tasks for seed in range(seeds)):
        return None
    return np.array([[task.share(best[task.problem, seed]) for seed in range(seeds)] for task in tasks])


def _weights(tasks: Sequence[Task]) -> NDArray[np.float64]:
    """Return the weight of each task in the mean: families count alike."""
    families = [task.family for task in tasks]
    return np.array([1 / families.count(family) for family in families]) / len(set(families))


def _half(shares: NDArray[np.float64], tasks: Sequence[Task], chosen: NDArray[np.bool_]) -> float:
    if not chosen.any():
        return np.nan
    return float(_weights([task for task, own in zip(tasks, chosen, strict=True) if own]) @ shares[chosen].mean(axis=1))


def _resampled(shares: NDArray[np.float64], weights: NDArray[np.float64], rng: Generator) -> NDArray[np.float64]:
    """Return the `(samples,)` means over runs that are drawn again within each task."""
    tasks, seeds = shares.shape
    drawn = rng.integers(0, seeds, (_SAMPLES, tasks, seeds))
    return np.asarray(shares[np.arange(tasks)[:, None], drawn].mean(axis=2) @ weights)
