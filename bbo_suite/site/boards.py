"""Leaderboards: the strategies that ran on a family of problems with a budget, over all studies."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.level import Level
from ..core.problem import family_of
from ..report import answer, formatting, judge, table
from ..report.judgement import Judgement
from ..report.study_data import Naming
from ..report.table import Cell, Table, marked
from ..store.results import RunResult
from .studies import Entry, cost, points, task


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
        shown = _table(family, budget, judgement, known)
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


def _table(family: str, budget: int, judgement: Judgement, known: dict[str, float]) -> Table:
    """Return the strategies, the best first."""
    assert judgement.overall is not None
    kind = f"{'geometric ' if len(judgement.problems) > 1 else ''}mean {judgement.scores.ratio} (95 %)"
    levels = judgement.scores.levels  # strategies that see costs of parts are ranked apart
    apart = sorted(judgement.overall.means.items(), key=lambda item: levels[item[0]] is Level.PARTS)
    rows = [list(_row(strategy, mean, judgement, known)) for strategy, mean in apart]
    title = f"{family} after {formatting.counted(budget, 'evaluation')}"
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
