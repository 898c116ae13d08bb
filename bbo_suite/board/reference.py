"""The reference list: tasks, budgets and seeds on which every strategy of the board ran. Another list is a version.

And who stands where on it: mean shares of the best known gains, ranks, and how sure both are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..core.level import LEVEL, Level
from ..core.problem import family_of
from ..errors import UserError
from ..plan import Plan
from ..registry import Registry
from ..scores import normalised_gain

if TYPE_CHECKING:
    import pandas as pd


FILE = Path(__file__).with_name("reference.json")


@dataclass(frozen=True)
class Task:
    """A task of the list.

    Attributes:
      fingerprint: of the problem's content.
      real: a compiler or hardware set its costs, not a model.
      budgets: evaluations of a run.
      default, best: the costs of the compiler's default, and the best that was known when the list was made.
    """

    problem: str
    fingerprint: str
    real: bool
    budgets: tuple[int, ...]
    default: float
    best: float

    @property
    def family(self) -> str:
        """The family of the problem."""
        return family_of(self.problem)

    def share(self, cost: float) -> float:
        """Return the gain of a cost over the default as a share of the best known gain; 0 if nothing succeeded."""
        return normalised_gain(self.default / cost, self.default / self.best) if np.isfinite(cost) else 0.0


@dataclass(frozen=True)
class ReferenceList:
    """A version of the list.

    Attributes:
      seeds: runs of each strategy on each task with each budget.
      batch: candidates of one `ask`.
      made_with: versions of packages whose tasks depend on them.
      digest: of all that the list says.
    """

    version: int
    seeds: int
    batch: int
    made_with: Mapping[str, str]
    tasks: tuple[Task, ...]
    digest: str

    @property
    def name(self) -> str:
        """The version with the digest, as score files hold it."""
        return f"{self.version}-{self.digest}"

    @property
    def budgets(self) -> list[int]:
        """All budgets, in their order."""
        return sorted({budget for task in self.tasks for budget in task.budgets})

    def task(self, problem: str, fingerprint: str) -> Task | None:
        """Return the task of a problem; None if it is not on the list."""
        found = (task for task in self.tasks if (task.problem, task.fingerprint) == (problem, fingerprint))
        return next(found, None)

    def plans(self, strategies: Sequence[str]) -> Iterator[Plan]:
        """Yield the runs of some strategies: a plan for each group of tasks with equal budgets."""
        for budgets in dict.fromkeys(task.budgets for task in self.tasks):
            problems = [task.problem for task in self.tasks if task.budgets == budgets]
            yield Plan(problems, strategies, budgets, self.seeds, self.batch, plain_seeds=True)

    def check_here(self, registry: Registry) -> None:
        """Check that the tasks are here what they were when the list was made.

        Raises:
          UserError: one is not, or cannot be loaded.
        """
        for task in self.tasks:
            if registry.problem(task.problem).fingerprint() != task.fingerprint:
                versions = " ".join(f"{name}=={version}" for name, version in self.made_with.items())
                what = (
                    f"{task.problem} is not the task of reference list {self.version}: the compiler's version differs"
                )
                raise UserError(f"{what}; `pip install {versions}` gets what the list was made with")


@cache
def reference_list(file: Path = FILE) -> ReferenceList:
    """Return the reference list of this version."""
    content = json.loads(file.read_text(encoding="utf-8"))
    tasks = tuple(Task(**{**task, "budgets": tuple(task["budgets"])}) for task in content["tasks"])
    return ReferenceList(**{**content, "tasks": tasks}, digest=digest(content))


def digest(content: Mapping[str, Any]) -> str:
    """Return 8 hexadecimal digits of all that a list says."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=4).hexdigest()


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

    return pd.read_csv(PUBLISHED, keep_default_na=False)  # a strategy may be named null


def with_published(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs (see `KEPT`) with the published ones of all other strategies."""
    import pandas as pd

    others = published()
    return pd.concat([others[~others["strategy"].isin(runs["strategy"])], runs])


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
