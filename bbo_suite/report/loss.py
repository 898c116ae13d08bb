"""What runs lose on noisy problems: by selection among what they measured, and because they found nothing better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..scores import Scores
from ..store.remeasured import ROUNDS, Finalist
from ..store.results import RunResult
from . import formatting, table
from .table import Cell, Table, marked


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
