"""The plans among which the compiler chooses the default fusion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.machine import Rate
from ..layout.arrays import Costs, FusionGraph, effective_costs
from .columns import Counter, Known
from .kernel_timing import time_kernels
from .state import FusionState
from .sweep import decide, sweep

compiled = compiled_for(__file__)

_CAUTIOUS, _BOLD = 0.6, np.inf
_REVISIONS = 8


class Plans(NamedTuple):
    """Room for the plans of a graph of n nodes and d decisions.

    Attributes:
      best: `(d,)` the best plan so far.
      last: `(d,)` the plan made last.
      before: `(d,)` the one before.
      costs: of the nodes under a plan.
    """

    best: NDArray[np.int8]
    last: NDArray[np.int8]
    before: NDArray[np.int8]
    costs: Costs


def new_plans(n: int, d: int) -> Plans:
    """Return room for plans."""
    best, last, before = np.zeros((3, d), np.int8)
    return Plans(best, last, before, Costs(np.empty(n), np.empty(n)))


@compiled()
def choose(graph: FusionGraph, paper: NDArray, plans: Plans, state: FusionState) -> None:
    """Write the configuration that the compiler chooses on its own to `plans.best`, and sweep the graph with it.

    The compiler walks from the outputs to the inputs, as XLA's instruction fusion does, and fuses a producer into all
    its consumers if a roofline model predicts a gain. Its first plan copies a producer only if that reads few bytes.
    It then revises the plan with the costs of each producer under it, until nothing changes. The best plan by the
    machine of the data sheet wins; second-order effects are not used.
    """
    plans.last[:] = 0
    effective_costs(plans.last, graph, plans.costs)
    plans.best[:] = 1  # if little is computed twice, fusing everything is hard to beat
    state.config[:] = 1
    sweep(graph, state)
    best = _seconds(graph, paper, state)
    for revision in range(1 + _REVISIONS):
        plans.before[:] = plans.last
        decide(plans.last, graph, paper, _BOLD if revision else _CAUTIOUS, plans.costs, state)
        if revision and _equal(plans.last, plans.before):
            break
        seconds = _seconds(graph, paper, state)
        if seconds < best:
            best = seconds
            plans.best[:] = plans.last
        effective_costs(plans.last, graph, plans.costs)
    state.config[:] = plans.best
    if not _equal(plans.best, plans.last):
        sweep(graph, state)
    state.counter[Counter.KNOWN] = Known.NOTHING  # kernels were timed on paper


@compiled(runtime=False)
def _seconds(graph: FusionGraph, paper: NDArray, state: FusionState) -> float:
    time_kernels(True, False, graph, paper, paper, state)
    return state.sums[1] / paper[Rate.HERTZ]


@compiled(runtime=False)
def _equal(a: NDArray, b: NDArray) -> bool:
    different = np.int8(0)
    for i in range(len(a)):
        different |= a[i] ^ b[i]
    return different == 0
