"""Two studies compared: the same strategies on the same problems, with other code or other settings.

A strategy is better or worse if the ranks of its runs, within each problem, say so by a permutation test, and the mean
agrees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..core.quantities import with_noun
from ..errors import UserError
from ..scores import ALPHA, compared_speedup, corrected_p, scores
from ..stats import (
    difference_interval,
    holm,
    mean_interval,
    rank_sum_p_values,
    resampled_interval,
    smallest_rank_sum_p,
    stratified_rank_sum,
)
from ..store.results import RunResult
from . import formatting, table
from .drawings import Drawing, drawing
from .study_data import StudyData
from .table import Cell, Table


@dataclass(frozen=True)
class Row:
    """One strategy on one problem, in both studies.

    Attributes:
      cutoff: evaluations after which both are compared.
      ours, theirs: `(runs,)` speedups.
    """

    problem: str
    strategy: str
    cutoff: int
    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """One strategy over the problems of both studies.

    Attributes:
      problems: their number.
      ratio, low, high: geometric mean of our mean speedup over theirs, and its 95 % interval over problems.
      lead: positive if ranks favour us, negative if they favour them.
      p: of a stratified permutation test of the runs' ranks, corrected for the number of strategies (Holm).
      testable: True if there are enough runs for a significant difference.
    """

    strategy: str
    problems: int
    ratio: float
    low: float
    high: float
    lead: float
    p: float
    testable: bool

    @property
    def word(self) -> str:
        """Better, worse or undecided: a difference counts if mean and ranks agree on it and a test confirms it."""
        agree = np.isnan(self.ratio) or (self.ratio > 1) == (self.lead > 0)
        return ("better" if self.lead > 0 else "worse") if self.p <= ALPHA and agree and self.lead else "undecided"

    def __str__(self) -> str:
        if self.lead == 0 and self.ratio == 1:
            return f"{self.strategy}: undecided (no difference)"
        by = "" if np.isnan(self.ratio) else f" by {formatting.percent(max(self.ratio, 1 / self.ratio))}"
        p = f"p {formatting.p_value(self.p).replace('0.', '.')}"
        if self.word != "undecided":
            return f"{self.strategy}: {self.word}{by} ({p})"
        mean = f"{'better' if self.ratio > 1 else 'worse'}{by} in the mean, " if by else ""
        return f"{self.strategy}: undecided ({mean}{p if self.testable else 'too few runs for a test'})"


@dataclass(frozen=True)
class Comparison:
    """A study compared with another one.

    Attributes:
      ours, theirs: their names.
      changes: of each strategy.
      sentences: what else is to be said.
      table: a row for each problem and strategy.
      drawings: old and new curves; none of studies without evaluations.
    """

    ours: str
    theirs: str
    changes: Sequence[Change]
    sentences: Sequence[str]
    table: Table
    drawings: Sequence[Drawing] = ()

    @property
    def word(self) -> str:
        """Worse if a strategy is worse, else better if one is better, else undecided."""
        found = {change.word for change in self.changes}
        return next(word for word in ("worse", "better", "undecided") if word in found)

    @property
    def verdicts(self) -> list[str]:
        """The verdict on all strategies and on each."""
        return [f"{self.ours} against {self.theirs}: {self.word}", *map(str, self.changes)]


def rows_of(ours: StudyData, theirs: StudyData) -> list[Row]:
    """Return what both studies contain, after equally many evaluations of each problem.

    Raises:
      UserError: a problem differs between the studies, or they have nothing in common.
    """
    _check_contents(ours, theirs)
    mine, other = scores(ours.runs), scores(theirs.runs)
    rows = []
    for problem in sorted(set(mine.cutoffs) & set(other.cutoffs)):
        cutoff = min(mine.cutoffs[problem], other.cutoffs[problem])
        both = [[run for run in one.compared if run.problem == problem] for one in (mine, other)]
        again = all(run.remeasured(cutoff) is not None for runs in both for run in runs)
        here, there = (_speedups(runs, cutoff, again) for runs in both)
        rows += [Row(problem, name, cutoff, here[name], there[name]) for name in sorted(set(here) & set(there))]
    if not rows:
        raise UserError(f"studies {ours.name!r} and {theirs.name!r} have no strategy on a problem in common")
    return rows


def _check_contents(ours: StudyData, theirs: StudyData) -> None:
    here, there = (_contents(study.runs) for study in (ours, theirs))
    changed = sorted(name for name in set(here) & set(there) if here[name] != there[name])
    if changed:
        what = "is not the same problem" if len(changed) == 1 else "are not the same problems"
        raise UserError(
            f"studies {ours.name!r} and {theirs.name!r} cannot be compared: {formatting.listed(changed, 100)} {what} "
            "in both (the fingerprints in run.json differ); run one of them again"
        )


def _contents(runs: Sequence[RunResult]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        found[str(run.head["problem"])].add(str(run.head["fingerprint"]))
    return found


def _speedups(runs: Sequence[RunResult], cutoff: int, again: bool) -> dict[str, NDArray[np.float64]]:
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        found[run.strategy].append(compared_speedup(run, cutoff, again))
    return {name: np.array(speedups) for name, speedups in found.items()}


def p_values(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the p-value of each row (Mann-Whitney over runs), corrected for their number; nan for single runs."""
    return corrected_p(rank_sum_p_values([(row.ours, row.theirs) for row in rows]))


def changes(rows: Sequence[Row], rng: Generator) -> list[Change]:
    """Return how each strategy of both studies changed.

    Args:
      rng: draws the permutations of the test.
    """
    of_strategy: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_strategy[row.strategy].append(row)
    tests = [stratified_rank_sum([(row.ours, row.theirs) for row in own], rng) for own in of_strategy.values()]
    corrected = holm([p for _, p, _ in tests])
    return [
        Change(name, len(own), *_ratio(own), lead, float(p), bool(len(tests) * smallest <= ALPHA))
        for (name, own), (lead, _, smallest), p in zip(of_strategy.items(), tests, corrected, strict=True)
    ]


def _ratio(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Return the geometric mean of the ratios of the means and its interval; nan without a finite one."""
    means = np.array([(row.ours.mean(), row.theirs.mean()) for row in rows])
    usual = means[(means > 0).all(axis=1) & np.isfinite(means).all(axis=1)]
    if not len(usual):
        return np.nan, np.nan, np.nan
    ratio, low, high = np.exp(mean_interval(np.log(usual[:, 0] / usual[:, 1]))).tolist()
    return ratio, low, high


def changed_settings(ours: StudyData, theirs: StudyData) -> list[str]:
    """Return the strategies of both studies whose options, budget or batch size differ."""
    here, there = (_settings(study.runs) for study in (ours, theirs))
    return sorted(name for name in set(here) & set(there) if here[name] != there[name])


def _settings(runs: Sequence[RunResult]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        found[run.strategy].add(repr((run.head["options"], run.head["budget"], run.head["batch"])))
    return found


def comparison(ours: StudyData, theirs: StudyData) -> Comparison:
    """Return how a study differs from another one.

    Raises:
      UserError: see `rows_of`.
    """
    rows, rng = rows_of(ours, theirs), np.random.default_rng(0)
    p = p_values(rows)
    ratio = scores(ours.runs).ratio
    means = [f"mean speedup, {study.name}" for study in (ours, theirs)]
    columns = ["problem", "strategy", "evaluations", "runs", *means, "difference", "p (Holm)"]
    cells = [_cells(row, value) for row, value in zip(rows, p, strict=True)]
    made = Table("compared", f"{ours.name} compared with {theirs.name}", _NOTE, columns, cells).naming(ratio)
    found = changes(rows, rng)
    sentences = list(_sentences(ours, theirs, rows, p, found, ratio))
    return Comparison(ours.name, theirs.name, found, sentences, made, _drawings(ours, theirs, rows, found))


_PROBLEMS, _STRATEGIES = 9, 4
"""Problems and strategies whose curves are drawn, at most."""


def _drawings(ours: StudyData, theirs: StudyData, rows: Sequence[Row], found: Sequence[Change]) -> list[Drawing]:
    """Return the curves of both studies in one drawing for each problem, of the strategies that changed most."""
    from .. import figures

    if ours.only_results or theirs.only_results or "convergence" not in figures.FIGURES:
        return []
    from ..figures.convergence import draw_both

    order = sorted(found, key=lambda change: (change.word == "undecided", change.p))[:_STRATEGIES]
    names = (ours.name, theirs.name)
    made: list[Drawing] = []
    for number, problem in enumerate(dict.fromkeys(row.problem for row in rows)):
        of_problem = {row.strategy for row in rows if row.problem == problem}
        strategies = [change.strategy for change in order if change.strategy in of_problem]
        if strategies and len(made) < _PROBLEMS:
            figure, _ = draw_both(ours.frame, theirs.frame, names, problem, strategies)
            made.append(drawing(figure, f"compared-{number}."))
    return made


_NOTE = """Both after equally many evaluations, with 95 % intervals (of the difference: Welch). Two-sided Mann-Whitney
test over runs; p is corrected for all rows (Holm). The problems have equal fingerprints."""


def _cells(row: Row, p: float) -> list[Cell]:
    gap, low, high = difference_interval(row.ours, row.theirs)
    bounds = "" if np.isnan(low) else f" ({formatting.decimals(low)} to {formatting.decimals(high)})"
    difference = table.number(gap, "–" if np.isnan(gap) else f"{formatting.decimals(gap)}{bounds}")
    counts = [table.count(row.cutoff), table.number(len(row.ours), f"{len(row.ours)}, {len(row.theirs)}")]
    means = [table.speedup(*resampled_interval(runs)) for runs in (row.ours, row.theirs)]
    return [table.text(row.problem), table.text(row.strategy), *counts, *means, difference, table.p_value(p)]


def _sentences(
    ours: StudyData,
    theirs: StudyData,
    rows: Sequence[Row],
    p: NDArray[np.float64],
    found: Sequence[Change],
    ratio: str,
) -> Iterator[str]:
    yield _row_by_row(rows, p)
    for change in found:
        if change.problems > 1 and np.isfinite(change.low):
            bounds = f"95 % interval {formatting.percent(change.low)} to {formatting.percent(change.high)}"
            over = f"the geometric mean {ratio} of {change.strategy} over {change.problems} problems"
            yield f"From {theirs.name} to {ours.name}, {over} changes by {formatting.percent(change.ratio)} ({bounds})."
    if changed := changed_settings(ours, theirs):
        yield f"The settings of {formatting.listed(changed)} differ, which may explain differences."


def _row_by_row(rows: Sequence[Row], p: NDArray[np.float64]) -> str:
    both = f"Both studies contain {with_noun(len(rows), 'combination')} of problem and strategy: "
    apart = [f"{row.strategy} on {row.problem}" for row, value in zip(rows, p, strict=True) if value <= ALPHA]
    counts = [(len(row.ours), len(row.theirs)) for row in rows]
    smallest = [smallest_rank_sum_p(*pair) for pair in counts if min(pair) > 1]
    if not smallest:
        return f"{both}none can be tested, because there are only single runs."
    if min(smallest) * len(smallest) > ALPHA:
        return f"{both}with so few repeats, no difference of a single combination can be significant."
    return f"{both}{formatting.listed(apart)} {'differs' if len(apart) == 1 else 'differ'} significantly."
