"""Scores: what each strategy found on each problem, and whether two of them differ by more than chance.

The two measures are the speedup over the default, and the gain over the default as a share of the best known gain.
Reports, figures, sites and published studies all take them from here.
"""

from __future__ import annotations

import itertools
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .core.level import LEVEL, Level
from .core.quantities import ratio_name
from .stats import (
    SMALLEST_GAIN,
    complete_block,
    difference_interval,
    expected_best,
    holm,
    mean_interval,
    over_random,
    probability_of_improvement,
    random_needs,
    rank_sum_p_values,
    resampled_interval,
    signed_rank_p,
    signed_rank_sum,
)
from .store.frames import REMEASURED
from .store.results import RunResult

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
"""Corrected p-values up to this are significant."""
RUN = ["problem", "strategy", "seed"]
"""The columns that distinguish the runs of a study."""
_LARGEST = 1e300  # replaces an infinite speedup, so that differences are defined


def normalised_gain(speedup: float, best: float, least: float = SMALLEST_GAIN) -> float:
    """Return the gain over the default as a share of the best known gain; nan if that is too small or infinite."""
    return (speedup - 1) / (best - 1) if least <= best - 1 < np.inf else np.nan


@dataclass(frozen=True)
class Mean:
    """The mean speedup of a strategy on a problem over its runs, with its 95 % interval, and the best run's."""

    problem: str
    strategy: str
    runs: int
    mean: float
    low: float
    high: float
    best: float


@dataclass(frozen=True)
class Values:
    """The final speedups of some runs, and what follows for problems and strategies.

    Attributes:
      frame: a row for each run, sorted: problem, strategy, seed, level, budget, evaluation,
        default, speedup.
    """

    frame: pd.DataFrame

    @cached_property
    def levels(self) -> dict[str, Level]:
        """What each strategy knows."""
        return {name: Level.named(word) for name, word in zip(self.frame["strategy"], self.frame[LEVEL], strict=True)}

    def comparable(self, first: str, second: str) -> bool:
        """Return False if just one of two strategies sees the costs of parts: such strategies are ranked apart."""
        return (self.levels[first] is Level.PARTS) == (self.levels[second] is Level.PARTS)

    @cached_property
    def speedups(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """The `(runs,)` speedups of each problem and strategy, sorted, so that equal runs have equal means."""
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for problem, strategy, value in self.frame[["problem", "strategy", "speedup"]].itertuples(index=False):
            found[problem, strategy].append(value)
        return {key: np.sort(found[key]) for key in sorted(found)}

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each problem and strategy."""
        found = self.speedups.items()
        return [Mean(*key, len(runs), *resampled_interval(runs), float(runs.max())) for key, runs in found]

    @cached_property
    def table(self) -> pd.DataFrame:
        """Mean speedups, one row per problem and one column per strategy; nan without a run."""
        import pandas as pd

        means = [(*key, float(runs.mean())) for key, runs in self.speedups.items()]  # `means` needs an interval of each
        rows = [row for row in means if not np.isnan(row[2])]
        frame = pd.DataFrame(rows, columns=["problem", "strategy", "mean"])
        return frame.pivot(index="problem", columns="strategy", values="mean")

    @cached_property
    def complete(self) -> pd.DataFrame:
        """The largest part of `table` without a gap: problems that the same strategies ran."""
        rows, columns = complete_block(self.table.notna())
        return self.table.loc[rows, columns]

    @property
    def by_rank(self) -> list[str]:
        """The strategies by mean rank on the problems that they ran, the best first."""
        places = self.table.rank(axis=1, ascending=False, pct=True).mean()
        return list(places.sort_values(kind="stable").index)

    @cached_property
    def _best_means(self) -> dict[tuple[str, bool], float]:
        """The largest mean speedup on each problem of strategies without and with costs of parts."""
        best: dict[tuple[str, bool], float] = {}
        for mean in self.means:
            key = mean.problem, self.levels[mean.strategy] is Level.PARTS
            best[key] = max(mean.mean, best.get(key, -np.inf))
        return best

    def best_mean(self, problem: str, strategy: str) -> float:
        """Return the largest mean speedup on a problem among the strategies that one is comparable with."""
        return self._best_means[problem, self.levels[strategy] is Level.PARTS]


# --- of the results of runs


@dataclass(frozen=True)
class Scores(Values):
    """The runs of a study, compared after equally many evaluations of each problem.

    This number, the cutoff, is the length of the shortest finished run, or of the shortest run if none is finished.
    Unfinished runs that are shorter are left out.

    Attributes:
      runs: all runs.
      cutoffs: the evaluations after which each problem is compared.
      compared: the runs that reach them.
      remeasured: the problems of which the best candidate of every compared run was measured again. There, speedups
        are those measured again.
    """

    runs: Sequence[RunResult]
    cutoffs: dict[str, int]
    compared: list[RunResult]
    remeasured: set[str]

    @cached_property
    def levels(self) -> dict[str, Level]:
        """What each strategy knows."""
        return {run.strategy: run.level for run in self.runs}

    @cached_property
    def ratio(self) -> str:
        """What the default's cost / a candidate's is called here: speedup if all costs are times, else improvement."""
        return ratio_name({str(run.head["unit"]) for run in self.runs})

    def speedup(self, run: RunResult) -> float:
        """Return the speedup by which a run is compared."""
        return compared_speedup(run, self.cutoffs[run.problem], run.problem in self.remeasured)

    def started(self, problem: str) -> dict[str, list[RunResult]]:
        """Return all runs of a problem with an evaluation, by strategy."""
        found: dict[str, list[RunResult]] = defaultdict(list)
        for run in self.runs:
            if run.problem == problem and run.evaluations:
                found[run.strategy].append(run)
        return dict(sorted(found.items()))


def scores(runs: Sequence[RunResult]) -> Scores:
    """Return the runs of a study, compared after equally many evaluations of each problem."""
    import pandas as pd

    started = [run for run in runs if run.evaluations]
    cutoffs = {}
    for problem in sorted({run.problem for run in started}):
        own = [run for run in started if run.problem == problem]
        finished = [run for run in own if run.ended] or own
        cutoffs[problem] = min(run.reach for run in finished)
    compared = [run for run in started if run.reach >= cutoffs[run.problem]]
    missing = {run.problem for run in compared if run.remeasured(cutoffs[run.problem]) is None}
    again = {run.problem for run in compared} - missing
    rows = [_value(run, cutoffs[run.problem], run.problem in again) for run in compared]
    columns = [*RUN, LEVEL, "budget", "evaluation", "default", "speedup"]
    frame = pd.DataFrame(rows, columns=columns).sort_values(RUN, kind="stable", ignore_index=True)
    return Scores(frame, runs, cutoffs, compared, again)


def _value(run: RunResult, cutoff: int, again: bool) -> dict[str, Any]:
    """Return the row of a run in `Values.frame`."""
    facts = {name: run.head[name] for name in ("seed", "budget", "default", LEVEL)}
    named = {"problem": run.problem, "strategy": run.strategy, "evaluation": cutoff}
    return {**named, **facts, "speedup": compared_speedup(run, cutoff, again)}


def compared_speedup(run: RunResult, cutoff: int, again: bool) -> float:
    """Return the speedup of a run after so many evaluations, as measured again if it was and `again` is true."""
    remeasured = run.remeasured(cutoff) if again else None
    return run.speedup(cutoff) if remeasured is None else remeasured


# --- against random search

NEAR = 0.95
"""Random search is near the optimum once it has closed this share of the gap from the median cost to the optimum."""
_POINTS = 50


@dataclass(frozen=True)
class OverRandom:
    """How much better than random search the runs of a strategy are on a space of which every cost is known.

    0 is as good as random search without repeats, whose expected best is exact, 1 is the optimum, and below 0 is worse
    (Willemsen et al. 2024). It is nan where random search has found the optimum, too.

    Attributes:
      final: `(runs,)` at the end.
      score: `(runs,)` in the mean over the evaluations until random search is near the optimum, or until the end.
      until: these evaluations.
    """

    final: NDArray[np.float64]
    score: NDArray[np.float64]
    until: int


def over_random_search(runs: Sequence[RunResult], at: int, costs: NDArray[np.float64]) -> OverRandom:
    """Return how much better than random search runs on one problem are.

    Args:
      at: the evaluations after which they are compared.
      costs: of the whole space; a failed candidate has the highest cost of those that work.
    """
    until = min(at, random_needs(costs, NEAR))
    points = np.unique(np.linspace(1, until, min(until, _POINTS)).astype(int))
    mean = _over(runs, points, costs)
    known = np.isfinite(mean)
    score = np.array([row[some].mean() if some.any() else np.nan for row, some in zip(mean, known, strict=True)])
    return OverRandom(_over(runs, np.array([at]), costs)[:, 0], score, until)


def _over(runs: Sequence[RunResult], evaluations: NDArray[np.int_], costs: NDArray[np.float64]) -> NDArray[np.float64]:
    best = np.array([[run.best(int(n)) for n in evaluations] for run in runs])
    random, optimum = expected_best(costs, evaluations), float(costs.min())
    return np.array([over_random(np.minimum(row, costs.max()), random, optimum) for row in best])


# --- of a frame of evaluations


def _once_for_a_frame(function: Callable[[pd.DataFrame], Values]) -> Callable[[pd.DataFrame], Values]:
    """Return a function that computes once for a frame: a figure asks several times, for its curves and its caption."""
    last: list[tuple[weakref.ref[pd.DataFrame], Values]] = []

    @wraps(function)
    def once(frame: pd.DataFrame) -> Values:
        if not last or last[0][0]() is not frame:
            last[:] = [(weakref.ref(frame), function(frame))]
        return last[0][1]

    return once


@_once_for_a_frame
def final_values(frame: pd.DataFrame) -> Values:
    """Return the final speedups of a frame of evaluations (see `bbo_suite.load`).

    Speedups are those measured again on problems where those of all runs were.
    """
    columns = ["budget", "evaluation", "default", "speedup", *({REMEASURED} & {*frame})]
    last = frame.loc[_ends(frame), [*RUN, LEVEL, *columns]].drop_duplicates(RUN, keep="last")
    if REMEASURED in last:
        again = last.pop(REMEASURED)
        missing = again.isna().groupby(last["problem"], observed=True).transform("any")
        last["speedup"] = last["speedup"].where(missing, again)
    last = last.astype({"problem": "str", "strategy": "str", LEVEL: "str"})
    return Values(last.sort_values(RUN, ignore_index=True))


def _ends(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows of a frame of evaluations are the last of a run, or of a part of it."""
    last = np.zeros(len(frame), bool)
    last[-1:] = True
    for column in RUN:
        codes = frame[column].cat.codes if frame[column].dtype == "category" else frame[column]
        values = codes.to_numpy()
        last[:-1] |= values[1:] != values[:-1]
    return last


def parts_of_runs(frame: pd.DataFrame) -> Iterator[tuple[tuple[str, str, int], slice]]:
    """Yield which run's rows stand where in a frame of evaluations; a run may have several parts."""
    ends = np.flatnonzero(_ends(frame)) + 1
    runs = zip(*(frame[column].iloc[ends - 1].tolist() for column in RUN), strict=True)
    yield from zip(runs, map(slice, [0, *ends[:-1]], ends), strict=True)


def runs_by_strategy(frame: pd.DataFrame, columns: Sequence[str]) -> Iterator[tuple[str, str, list[list[NDArray]]]]:
    """Yield problem, strategy and, for each of its runs by seed, some columns of a frame of evaluations.

    The arrays are parts of the frame, not copies, unless the rows of a run are apart from each other.
    """
    places: dict[tuple[str, str], dict[int, list[slice]]] = defaultdict(lambda: defaultdict(list))
    for (problem, strategy, seed), part in parts_of_runs(frame):
        places[problem, strategy][seed].append(part)
    arrays = [frame[column].to_numpy() for column in columns]
    for (problem, strategy), runs in sorted(places.items()):
        yield problem, strategy, [[_at(array, parts) for array in arrays] for _, parts in sorted(runs.items())]


def _at(array: NDArray, parts: Sequence[slice]) -> NDArray:
    return array[parts[0]] if len(parts) == 1 else np.concatenate([array[part] for part in parts])


# --- two strategies


@dataclass(frozen=True)
class Pair:
    """Two strategies, seen from the first.

    Attributes:
      gap, low, high: by how much the first is better, and the 95 % interval. On one problem the difference of the mean
        speedups (Welch 1947); over problems the geometric mean of their ratios (Student's t, over problems).
      p: two-sided p-value of a difference, nan without a test. On one problem Mann-Whitney over runs, over problems
        Wilcoxon signed-rank over mean speedups.
      holm: `p`, corrected for all pairs that were tested.
      problems: the number of problems that both ran; 0 for a pair on one problem.
      wins, ties: of the first on these problems, by mean speedup.
      improvement: probability that a run of the first is better (Agarwal et al. 2021).
      rank_lead: positive if the ranks that are tested favour the first, negative if they favour the second. They may
        contradict the gap, when a mean depends on few runs or problems; the first is then not significantly better.
    """

    first: str
    second: str
    gap: float
    low: float
    high: float
    p: float
    holm: float = np.nan
    problems: int = 0
    wins: int = 0
    ties: int = 0
    improvement: float = np.nan
    rank_lead: float = 0.0

    @property
    def significant(self) -> bool:
        """True if the first is significantly better, corrected for all pairs."""
        return bool(self.holm <= ALPHA and self.rank_lead > 0)

    @property
    def interval_includes_equality(self) -> bool:
        """True if the interval of the gap contains no difference."""
        return self.low <= (1 if self.problems else 0) <= self.high

    def reversed(self) -> Pair:
        """Return the pair, seen from the second."""
        bounds = (self.low, self.gap, self.high)
        high, gap, low = (1 / x for x in bounds) if self.problems else (-x for x in bounds)
        losses = self.problems - self.wins - self.ties
        other = replace(self, first=self.second, second=self.first, gap=gap, low=low, high=high, wins=losses)
        return replace(other, improvement=1 - self.improvement, rank_lead=-self.rank_lead)

    def better_first(self) -> Pair:
        """Return the pair, seen from the strategy of the better mean."""
        return self.reversed() if self.gap < (1 if self.problems else 0) else self


def pairs_on_problem(scores: Values, problem: str) -> list[Pair]:
    """Return every pair of strategies on one problem."""
    runs = {strategy: part for (name, strategy), part in scores.speedups.items() if name == problem}
    names = [pair for pair in itertools.combinations(runs, 2) if scores.comparable(*pair)]
    p_values = rank_sum_p_values([(runs[one], runs[other]) for one, other in names]).tolist()
    return _corrected(_on_problem(*pair, runs, p) for pair, p in zip(names, p_values, strict=True))


def _on_problem(first: str, second: str, runs: Mapping[str, NDArray], p: float) -> Pair:
    ours, theirs = runs[first], runs[second]
    lead = probability_of_improvement([ours], [theirs]) - 0.5
    return Pair(first, second, *difference_interval(ours, theirs), p, rank_lead=lead)


def pairs_over_problems(scores: Values) -> list[Pair]:
    """Return every pair of strategies over the problems that both ran."""
    strategies, problems = scores.table.columns, list(dict.fromkeys(problem for problem, _ in scores.speedups))
    return _corrected(
        _over_problems(scores, one, other, shared)
        for one, other in itertools.combinations(strategies, 2)
        if scores.comparable(one, other)
        and (shared := [name for name in problems if {(name, one), (name, other)} <= scores.speedups.keys()])
    )


def _over_problems(scores: Values, first: str, second: str, problems: Sequence[str]) -> Pair:
    runs = [[scores.speedups[problem, name] for problem in problems] for name in (first, second)]
    ours, theirs = (np.minimum([part.mean() for part in side], _LARGEST) for side in runs)
    some = np.all([(side > 0) & (side < _LARGEST) for side in (ours, theirs)], axis=0)  # the others have no ratio
    ratio = np.exp(mean_interval(np.log(ours[some] / theirs[some])) if some.any() else np.full(3, np.nan))
    gap, low, high = ratio.tolist()
    p = signed_rank_p(ours, theirs) if len(problems) > 1 else np.nan
    wins, ties = int((ours > theirs).sum()), int((ours == theirs).sum())
    pair = Pair(first, second, gap, low, high, p, problems=len(problems), wins=wins, ties=ties)
    return replace(pair, improvement=probability_of_improvement(*runs), rank_lead=signed_rank_sum(ours - theirs))


def _corrected(pairs: Iterable[Pair]) -> list[Pair]:
    listed = list(pairs)
    corrected = corrected_p(np.array([pair.p for pair in listed]))
    return [replace(pair, holm=p) for pair, p in zip(listed, corrected.tolist(), strict=True)]


Side = str | tuple[str, int]
"""A strategy, or a strategy with its budget."""


def compare(runs: pd.DataFrame, pair: tuple[Side, Side], value: str = "speedup") -> pd.DataFrame:
    """Return how the runs of two strategies compare on each problem that both ran, one row each.

    Columns: problem, runs, other_runs, mean, other_mean, p (Mann-Whitney over runs, exact for few runs, ties included;
    nan for single runs), holm (p, corrected for the number of problems), ahead (1 if the first has a significantly
    higher mean, -1 if the second has, else 0).

    Args:
      runs: a table of runs (see `bbo_suite.Study.runs`).
      pair: two strategies, each with its budget if the table has several.
      value: the column that is compared; more is better.
    """
    import pandas as pd

    sides = [_runs_of(runs, side, value) for side in pair]
    problems = [problem for problem in sides[0] if problem in sides[1]]
    both = [(sides[0][problem], sides[1][problem]) for problem in problems]
    p = rank_sum_p_values(both)
    corrected, means = corrected_p(p), np.array([(a.mean(), b.mean()) for a, b in both]).reshape(-1, 2)
    ahead = np.where(corrected <= ALPHA, np.sign(means[:, 0] - means[:, 1]), 0).astype(int)
    counts = {"runs": [len(a) for a, _ in both], "other_runs": [len(b) for _, b in both]}
    found = {"mean": means[:, 0], "other_mean": means[:, 1], "p": p, "holm": corrected, "ahead": ahead}
    return pd.DataFrame({"problem": problems, **counts, **found})


def _runs_of(runs: pd.DataFrame, side: Side, value: str) -> dict[str, NDArray[np.float64]]:
    """Return the values of a strategy by problem."""
    strategy, budget = (side, None) if isinstance(side, str) else side
    own = runs[runs["strategy"] == strategy]
    own = own if budget is None else own[own["budget"] == budget]
    return {str(name): group.to_numpy(np.float64) for name, group in own.groupby("problem", sort=True)[value]}


def corrected_p(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values, corrected for the number of those that are not nan (Holm)."""
    result, tested = p.copy(), np.isfinite(p)
    result[tested] = holm(p[tested])
    return result


def over_programs(speedups: pd.Series, gains: Sequence[int] = (5,)) -> dict[str, float]:
    """Return the means of one speedup a program, arithmetic and geometric with its 95 % interval, the median and most.

    Args:
      gains: in %; the share of the programs that gain as much is told, too.
    """
    geometric, low, high = np.exp(mean_interval(np.log(speedups.to_numpy())))
    means = {"programs": len(speedups), "mean": speedups.mean(), "geometric": geometric, "low": low, "high": high}
    above = {f"above {gain} %": (speedups >= 1 + gain / 100).mean() for gain in gains}
    return means | {"median": speedups.median(), **above, "most": speedups.max()}
