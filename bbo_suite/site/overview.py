"""What the site begins with: who is best over all problems, in words, a figure and one table; and the leaderboards."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..board.reference import KEPT, Standing, reference_list, standings, with_published
from ..core.level import Level
from ..core.problem import family_of
from ..core.quantities import with_noun
from ..report import answer, formatting, judge, table
from ..report.drawings import Drawing, drawing
from ..report.judgement import Judgement, over_problems
from ..report.study_data import Naming
from ..report.table import Cell, Table, marked
from ..scores import normalised_gain, scores
from ..store.results import RunResult
from .studies import Entry, cost, points, task

if TYPE_CHECKING:
    import pandas as pd

BUDGETS = 4
"""Budgets of the table, at most: those with the most results."""


@dataclass(frozen=True)
class Overview:
    """The first screen.

    Attributes:
      sentences: who is best over the problems that all compared strategies ran, for each level of knowledge.
      drawing: the means of these strategies; None for a single one.
      table: the share of the best known gain, of each strategy after some budgets; None without one.
    """

    sentences: Sequence[str]
    drawing: Drawing | None
    table: Table | None


def board(entries: Iterable[Entry]) -> Table | None:
    """Return the standing of all strategies on the reference list, by what they know; None if no runs are on it.

    As in `score`, the published strategies are among them.
    """
    import pandas as pd

    listed = reference_list()
    own = [run for entry in entries if is_board(entry.name) for run in entry.runs]
    on_it = [run for run in own if run.ended and listed.task(run.problem, str(run.head["fingerprint"]))]
    rows = [
        (run.strategy, run.level.word, run.problem, run.head["budget"], run.seed, run.best(run.evaluations))
        for run in on_it
    ]
    if not rows:
        return None
    found: dict[tuple[str, Level], dict[int, Standing]] = defaultdict(dict)
    for each in standings(with_published(pd.DataFrame(rows, columns=KEPT)), listed):
        found[each.strategy, each.level][each.budget] = each
    order = sorted(found, key=lambda key: (key[1], [-_share(found[key], budget) for budget in listed.budgets[1:]]))
    lines = [[table.strategy(*key), *(_standing(found[key].get(budget)) for budget in listed.budgets)] for key in order]
    tasks = {budget: sum(budget in task.budgets for task in listed.tasks) for budget in listed.budgets}
    columns = ["strategy", *(f"after {budget:,} ({tasks[budget]} tasks)" for budget in listed.budgets)]
    title = f"The board: {len(listed.tasks)} tasks of reference list {listed.version}"
    return Table("reference", title, _BOARD, columns, lines)


BOARD = "board"
"""The folder of the published runs on the reference list, and of score files."""


def is_board(study: str) -> bool:
    """Return whether a study of this name is of the runs on the reference list."""
    return study.partition("-")[0] == BOARD


_BOARD = """Share of the best known gain over the compiler's default, the mean over runs, tasks and families, and the
rank among all, with 95 % intervals (bootstrap over runs). Strategies that see costs only come first, those that see
costs of parts last; among them the best after 200 evaluations is first. The command score adds a strategy."""


def _share(found: dict[int, Standing], budget: int) -> float:
    return found[budget].share[0] if budget in found else -np.inf


def _standing(each: Standing | None) -> Cell:
    if each is None:
        return table.number(np.nan, "–")
    (share, low, high), (rank, first, last) = each.share, each.rank
    return table.number(share, f"{share:.2f} ({low:.2f} to {high:.2f}), rank {rank} ({first} to {last})")


def overview(runs: Iterable[RunResult], known: dict[str, float]) -> Overview:
    """Return the first screen of a site.

    Args:
      known: the best known cost of each task.
    """
    of_budget: dict[int, list[RunResult]] = defaultdict(list)
    for run in once(run for run in runs if run.ended):
        of_budget[int(run.head["budget"])].append(run)
    results = {b: {(run.problem, run.strategy) for run in own} for b, own in of_budget.items()}
    budgets = sorted(sorted(results, key=lambda budget: -len(results[budget]))[:BUDGETS])
    shared = [scores(of_budget[budget]).complete for budget in budgets]
    if not budgets:
        return Overview(["No run has ended yet."], None, None)
    most = max(range(len(budgets)), key=lambda place: shared[place].size)
    main = _judged(of_budget[budgets[most]], shared[most])
    return Overview(answer.headlines(main), _drawing(main), _table(of_budget, budgets, known))


def _judged(runs: Sequence[RunResult], kept: pd.DataFrame) -> Judgement:
    """Return the comparison over the problems that all of its strategies ran; no problem is judged by itself.

    Args:
      kept: has these problems as rows and the strategies as columns.
    """
    found = scores([run for run in runs if run.problem in kept.index and run.strategy in kept.columns])
    board = over_problems(found, np.random.default_rng(0))
    return Judgement(found, board, dict.fromkeys(found.cutoffs, board))


def _drawing(judgement: Judgement) -> Drawing | None:
    from ..figures.standing import draw

    board = judgement.overall
    if board is None or len(board.means) < 2:
        return None
    of = f"geometric mean {judgement.scores.ratio} {board.scope}"
    spent = formatting.span(list(judgement.scores.cutoffs.values()), "evaluation")
    return drawing(draw(board.means, judgement.scores.levels, of, spent)[0], "standing.")


def _table(of_budget: dict[int, list[RunResult]], budgets: Sequence[int], known: dict[str, float]) -> Table:
    """Return the strategies that ran on at least a quarter of the problems of a budget, the best first."""
    shares = {budget: _shares(of_budget[budget], known) for budget in budgets}
    most = {budget: max(Counter(name for name, _ in own).values(), default=0) for budget, own in shares.items()}
    means: dict[str, dict[int, tuple[float, int]]] = defaultdict(dict)
    for budget, own in shares.items():
        for name in dict.fromkeys(name for name, _ in own):
            values = [float(np.mean(part)) for (strategy, _), part in own.items() if strategy == name]
            if 4 * len(values) >= most[budget]:
                means[name][budget] = float(np.mean(values)), len(values)
    levels = {run.strategy: run.level for own in of_budget.values() for run in own}
    order = sorted(means, key=lambda name: [-means[name].get(b, (-np.inf, 0))[0] for b in reversed(budgets)])
    rows = [[table.strategy(name, levels[name]), *_cells(means[name], budgets)] for name in order]
    columns = ["strategy", *(f"after {budget:,} (problems)" for budget in budgets)]
    return Table("board", "All problems", _NOTE, columns, rows)


_NOTE = """Share of the best known gain over the compiler's default after a number of evaluations: 1 is the best cost
that any run here found, 0 is the default. Mean over runs, then over the problems that a strategy ran, whose number
stands in brackets: shares over different problems are not comparable; the answer above compares only problems that all
of its strategies ran."""


def _cells(found: dict[int, tuple[float, int]], budgets: Sequence[int]) -> Iterator[Cell]:
    for budget in budgets:
        share, problems = found.get(budget, (np.nan, 0))
        yield table.number(share, f"{share:.2f} ({problems})" if problems else "–")


def _shares(runs: Sequence[RunResult], known: dict[str, float]) -> dict[tuple[str, str], list[float]]:
    """Return the share of the best known gain of each run, by strategy and problem, where that gain is no noise."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs:
        best = known[task(run)]
        most = float(run.head["default"]) / best if best > 0 else np.inf
        share = normalised_gain(run.final_speedup, most)
        if np.isfinite(share):
            found[run.strategy, run.problem].append(share)
    return found


@dataclass(frozen=True)
class Board:
    """The leaderboard of a family of problems after a number of evaluations.

    Attributes:
      sentences: the answer, the most important sentence first.
      studies: whose runs it compares.
    """

    family: str
    budget: int
    sentences: list[str]
    table: Table
    studies: list[Entry]


def boards(entries: Sequence[Entry], known: dict[str, float]) -> Iterator[Board]:
    """Yield the leaderboards, by family and budget.

    Args:
      known: the best known cost of each task.
    """
    groups: dict[tuple[str, int], list[tuple[Entry, RunResult]]] = defaultdict(list)
    for entry in entries:
        for run in entry.runs:
            if run.ended:
                groups[family_of(run.problem), int(run.head["budget"])].append((entry, run))
    for (family, budget), members in sorted(groups.items(), key=lambda group: group[0]):
        judgement = judge(once(run for _, run in members), np.random.default_rng(0))
        studies = list({entry.name: entry for entry, _ in members}.values())
        shown = _leaderboard(family, budget, judgement, known)
        yield Board(family, budget, list(answer.sentences(judgement)), shown, studies)


def once(runs: Iterable[RunResult]) -> list[RunResult]:
    """Return runs under names that hold over all studies; a run that several studies hold counts once."""
    distinct = {
        json.dumps(
            [task(run), *(run.head[name] for name in ("problem", "strategy", "options", "seed", "batch")), cost(run)]
        ): run
        for run in runs
    }
    naming = Naming([run.head for run in distinct.values()])
    return [
        replace(run, problem=naming.problem(run.head), strategy=naming.strategy(run.head)) for run in distinct.values()
    ]


def _leaderboard(family: str, budget: int, judgement: Judgement, known: dict[str, float]) -> Table:
    """Return the strategies, the best first."""
    assert judgement.overall is not None
    kind = f"{'geometric ' if len(judgement.problems) > 1 else ''}mean {judgement.scores.ratio} (95 %)"
    levels = judgement.scores.levels  # strategies that see costs of parts are ranked apart
    apart = sorted(judgement.overall.means.items(), key=lambda item: levels[item[0]] is Level.PARTS)
    rows = [list(_row(strategy, mean, judgement, known)) for strategy, mean in apart]
    title = f"{family} after {with_noun(budget, 'evaluation')}"
    return Table(f"{family}-{budget}", title, "", ["strategy", kind, "points", "problems", "runs"], rows)


def _row(
    strategy: str, mean: tuple[float, float, float], judgement: Judgement, known: dict[str, float]
) -> Iterator[Cell]:
    scores = judgement.scores
    runs = [run for run in scores.compared if run.strategy == strategy]
    value = float(np.mean([points(run, known) for run in runs]))
    yield marked(scores, strategy)
    yield table.speedup(*mean)
    yield table.number(value, formatting.decimals(value))
    yield table.count(len({run.problem for run in runs}))
    yield table.count(len(runs))
