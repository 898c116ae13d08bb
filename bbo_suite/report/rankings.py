"""Tables of what was found: on each problem, over all problems, and for each pair of strategies.

On noisy problems, also what runs lose: by selection among what they measured, and because they found nothing better.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ..core.level import Level
from ..core.quantities import with_noun
from ..scores import Pair, Scores, normalised_gain
from ..stats import SMALLEST_GAIN_TEXT, Ranking, bootstrap_interval, interquartile_mean, ranking
from ..store.remeasured import ROUNDS, Finalist
from ..store.results import RunResult
from . import formatting, table
from .judgement import USES_PARTS, Judgement, Leaderboard
from .table import Cell, Table, marked


def speedups(scores: Scores) -> Table:
    """Return the mean speedup with its interval, one row per problem and strategy."""
    rows = []
    for mean in scores.means:
        share = normalised_gain(mean.mean, scores.best_mean(mean.problem, mean.strategy))
        named = [table.text(mean.problem), marked(scores, mean.strategy)]
        counts = [table.count(mean.runs), table.count(scores.cutoffs[mean.problem])]
        bounds = table.number(mean.low, formatting.interval(mean.low, mean.high))
        percent = table.number(share, "–" if math.isnan(share) else f"{100 * share:.0f} %")
        rows.append([*named, *counts, table.speedup(mean.mean), bounds, table.speedup(mean.best), percent])
    columns = ["problem", "strategy", "runs", "evaluations", "mean speedup", "95 % interval", "best run"]
    return Table("speedups", "Mean speedup by problem and strategy", _SPEEDUPS, [*columns, "of the best gain"], rows)


_SPEEDUPS = f"""Speedup: cost of the compiler's default / best cost found. Higher is better; 1 is the default, 0 means
that every candidate failed. Bootstrap interval of the mean over runs. Of the best gain: mean gain over the default in
percent of the best strategy's gain, where strategies that see costs of parts are a kind of their own; a dash: that
gain is below {SMALLEST_GAIN_TEXT}, or infinite."""


def winners(judgement: Judgement) -> Table:
    """Return the highest mean of each problem, and what the tests say of it, for each group of strategies."""
    rows = []
    for problem, board in judgement.problems.items():
        for group, names in judgement.groups():
            ranked = board.ranked(names)
            if ranked:
                winner = _winner(judgement.scores, board, ranked)
                rows.append([table.text(problem), table.text(group.short), *winner])
    columns = ["problem", "uses", "highest mean", "mean speedup (95 %)", "ahead of the next by (95 %)", "verdict"]
    return Table("winners", "Highest mean by problem", _WINNERS, columns, rows)


_WINNERS = """Welch's interval of the difference. Verdicts are those of a two-sided Mann-Whitney test over runs at 5 %,
with p corrected for all pairs of strategies of a problem (Holm)."""


def _winner(scores: Scores, board: Leaderboard, ranked: list[str]) -> list[Cell]:
    first = ranked[0]
    lead = board.pair(first, ranked[1]) if len(ranked) > 1 else None
    gap = table.number(lead.gap, formatting.gap(lead)) if lead else table.number(math.nan, "–")
    return [marked(scores, first), table.speedup(*board.means[first]), gap, table.text(_verdict(board, ranked))]


def _verdict(board: Leaderboard, ranked: list[str]) -> str:
    """Return in words how the first compares with the others."""
    found = board.verdict(ranked)
    if board.means[found.best][0] == 0:
        return "all failed"
    if len(ranked) == 1:
        return "no other"
    if found.tied:
        return f"tied with {formatting.listed(found.tied)}"
    if found.clear:
        return "significantly better than all others"
    if found.contrary:
        return f"only by the mean: significantly worse by rank than {formatting.listed(found.contrary)}"
    if not board.testable:
        return "too few runs for a test"
    more = f"{len(found.beaten)} others" if len(found.beaten) > 3 else formatting.listed(found.beaten)
    better = f"; significantly better than {more}" if found.beaten else ""
    return f"no significant difference to {formatting.listed(found.undecided)}{better}"


SAMPLES = 1000
"""Bootstrap samples of an interval."""


def overviews(judgement: Judgement, rng: Generator) -> Iterator[Table]:
    """Yield the strategies over the problems that all of them ran; those that see costs of parts in a table of theirs.

    There is none for fewer than two problems.
    """
    scores = judgement.scores
    if judgement.overall is None or len(judgement.problems) < 2 or len(scores.complete) < 2:
        return
    names = list(judgement.overall.means)
    with_parts = [name for name in names if scores.levels[name] is Level.PARTS]
    title = f"Over {with_noun(len(scores.complete), 'problem')}"
    for place, own in (("overall", [name for name in names if name not in with_parts]), ("overall-parts", with_parts)):
        if own:
            yield _overview(
                judgement, own, rng, place, title if own != with_parts else f"{title}: {USES_PARTS.several}"
            )


def _overview(judgement: Judgement, names: Sequence[str], rng: Generator, place: str, title: str) -> Table:
    scores, board = judgement.scores, judgement.overall
    assert board is not None
    means = scores.complete[sorted(names)]
    found = ranking(np.nan_to_num(means.to_numpy(), posinf=1e300))
    ranks = dict(zip(means.columns, found.ranks.tolist(), strict=True))
    rows = []
    for name in names:
        rank = table.number(ranks[name], f"{ranks[name]:.2f}")
        wins = table.count(int((means[name] == means.max(axis=1)).sum()))
        rows.append(
            [marked(scores, name), table.speedup(*board.means[name]), _gain_shares(scores, name, rng), rank, wins]
        )
    columns = ["strategy", "geometric mean speedup (95 %)", "interquartile mean of gain shares (95 %)", "mean rank"]
    return Table(place, title, _OVERVIEW + _friedman(found), [*columns, "best on"], rows)


_OVERVIEW = f"""Problems that all of these strategies ran. Intervals: percentile bootstrap over the runs of each
problem. A gain share is a run's gain over the default as a fraction of the best strategy's mean gain on the problem: 1
is as good, 0 is the default; problems where that gain is below {SMALLEST_GAIN_TEXT} have none. The interquartile mean
leaves out the lowest and the highest quarter of all runs. Rank 1 is best."""


def _friedman(found: Ranking) -> str:
    if math.isnan(found.p):
        return ""
    return (
        f" Difference between any of them: {formatting.p_equals(found.p)} (Friedman). Mean ranks closer than "
        f"{found.difference:.2f} do not differ significantly (Nemenyi, 5 %)."
    )


def _gain_shares(scores: Scores, name: str, rng: Generator) -> Cell:
    """Return the interquartile mean of a strategy's gain shares on problems where a strategy gains."""
    runs = [(scores.speedups[problem, name], scores.best_mean(problem, name)) for problem in scores.complete.index]
    shares = [np.array([normalised_gain(x, best) for x in part]) for part, best in runs]
    shares = [part for part in shares if not np.isnan(part).any()]
    if not shares:
        return table.number(math.nan, "–")
    value = float(interquartile_mean(shares))
    if min(map(len, shares)) < 2:
        return table.number(value, f"{value:.2f}")
    low, high = bootstrap_interval(shares, interquartile_mean, rng, samples=SAMPLES)
    return table.number(value, f"{value:.2f} ({low:.2f} to {high:.2f})")


def pairwise(judgement: Judgement) -> Table | None:
    """Return every pair of strategies, over problems if there are several; None if there is no pair."""
    board = judgement.overall
    if board is None or not board.pairs:
        return None
    pairs = sorted((pair.better_first() for pair in board.pairs), key=lambda pair: (math.isnan(pair.p), pair.p))
    several = len(judgement.problems) > 1
    rows = [_pair_row(judgement.scores, pair, several) for pair in pairs]
    on_problems = ["won–tied–lost", "probability of improvement"] if several else []
    columns = ["higher mean", "lower mean", *on_problems, "by (95 %)", "p", "p (Holm)"]
    return Table("pairs", "Pairs of strategies", _OVER_PROBLEMS if several else _ON_ONE, columns, rows)


def _pair_row(scores: Scores, pair: Pair, several: bool) -> list[Cell]:
    names = [marked(scores, pair.first), marked(scores, pair.second)]
    tests = [table.number(pair.gap, formatting.gap(pair)), table.p_value(pair.p), table.p_value(pair.holm)]
    if not several:
        return [*names, *tests]
    record = f"{pair.wins}–{pair.ties}–{pair.problems - pair.wins - pair.ties}"
    chance = table.number(pair.improvement, f"{pair.improvement:.2f}")
    return [*names, table.number(pair.wins, record), chance, *tests]


_OVER_PROBLEMS = """Over all problems that both ran; won, tied and lost by mean speedup. Probability of improvement:
that a run of the first strategy beats a run of the second on a random problem; ties count half. By: geometric mean
of the ratio of mean speedups, with Student's t interval over problems. Two-sided Wilcoxon signed-rank test over
problems; p is corrected for all pairs in the table (Holm)."""
_ON_ONE = """By: difference of the mean speedups with Welch's interval. Two-sided Wilcoxon rank-sum test (Mann-Whitney)
over runs; p is corrected for all pairs in the table (Holm)."""


@dataclass(frozen=True)
class Loss:
    """The loss of a run as two factors; their product is the best speedup of any run / that of this run.

    Attributes:
      search: the speedup of its best candidate as the search measured it.
      again: the same, measured again.
      selection: how much faster the best of its finalists is than the one that it takes for the best. Chance may bring
        it below 1.
      exploration: how much faster the best of all runs is than the best of its finalists.
    """

    search: float
    again: float
    selection: float
    exploration: float


def losses(scores: Scores, problem: str) -> dict[str, list[Loss]]:
    """Return the loss of each run, by strategy, on a problem in `scores.remeasured`.

    Runs in which everything failed, also when it was measured again, are left out.
    """
    cutoff, found = scores.cutoffs[problem], defaultdict[str, list[Loss]](list)
    runs = [run for run in scores.compared if run.problem == problem and scores.speedup(run) > 0]
    factors = [_selection(run, cutoff) for run in runs]
    best = max((scores.speedup(run) * factor for run, factor in zip(runs, factors, strict=True)), default=1.0)
    for run, factor in zip(runs, factors, strict=True):
        again = scores.speedup(run)
        found[run.strategy].append(Loss(run.speedup(cutoff), again, factor, best / (again * factor)))
    return dict(sorted(found.items()))


def _selection(run: RunResult, cutoff: int) -> float:
    """Return how much faster the best finalist is than the run's own choice, without the bias of the best of many.

    One half of the rounds chooses the best, the other half measures it; both ways round, as a geometric mean.
    """
    last: Sequence[Finalist] = [each for each in run.finalists if each.evaluation <= cutoff]
    chosen = next(i for i, each in enumerate(last) if each.evaluation == run.steps[run.steps <= cutoff][-1])
    speedups = np.array([each.speedups for each in last])
    one, other = np.median(speedups[:, ::2], axis=1), np.median(speedups[:, 1::2], axis=1)
    gains = other[one.argmax()] * one[other.argmax()] / (one[chosen] * other[chosen])
    return float(np.sqrt(gains))


def loss_table(scores: Scores) -> Table:
    """Return what each strategy loses on each problem whose candidates were measured again."""
    rows = [
        [table.text(problem), marked(scores, strategy), *_cells(runs)]
        for problem in sorted(scores.remeasured)
        for strategy, runs in losses(scores, problem).items()
    ]
    columns = ["problem", "strategy", "runs", "in the search", "measured again", "lost by selection"]
    return Table("loss", "Losses on noisy problems", _NOTE, [*columns, "lost by exploration"], rows)


_NOTE = f"""Mean speedups of each run's best candidate: as the search measured it, and as the median of {ROUNDS} pairs
with the default after the search. Selection: a better candidate was among the ten best that the run measured, but noise
hid it. Exploration: another run measured a better one. In percent of the better speedup, geometric means over runs;
below 0 is chance."""


def _cells(runs: Sequence[Loss]) -> list[Cell]:
    search, again = (float(np.mean([getattr(run, name) for run in runs])) for name in ("search", "again"))
    shares = (1 - 1 / np.exp(np.mean(np.log([getattr(run, n) for run in runs]))) for n in ("selection", "exploration"))
    lost = [table.number(float(share), formatting.percent(1 + float(share))) for share in shares]
    return [table.count(len(runs)), table.speedup(search), table.speedup(again), *lost]
