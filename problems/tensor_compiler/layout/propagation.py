"""Propagation: from the layouts of tuned operations to all layouts, or from none to the compiler's own choice.

If the variables form a tree, the result is optimal by the compiler's estimate of kernels and copies. On the way down,
each state gets its cost including everything in front of it, shared among the consumers. On the way up, each variable
takes the state that is cheapest given its consumers, which are settled already. Programs are not trees, so each
variable is then reconsidered between its settled neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .variables import Incoming, Shift, VariableEdge, VariableNode, Variables, copy_cost

compiled = compiled_for(__file__)


UNPINNED = -1
"""Stands for the state of a variable that propagation chooses."""


class Rates(NamedTuple):
    """Memory that propagation works on; `most` is the largest number of layouts of any array.

    Attributes:
      costs: of the states, as long as `Variables.costs`.
      asked: `(most,)`.
      cheapest: `(most,)`.
      arriving: `(most + 1,)`.
    """

    costs: NDArray[np.float64]
    asked: NDArray[np.int64]
    cheapest: NDArray[np.float64]
    arriving: NDArray[np.float64]


@compiled(runtime=False)
def spread(pins: NDArray, variables: Variables, rates: Rates, chosen: NDArray) -> None:
    """Write the states of the variables.

    Args:
      pins: `(k,)` the states that are given, `UNPINNED` for others.
      variables: of the program.
      rates: memory.
      chosen: `(k,)`, written.
    """
    costs, asked, k = rates.costs, rates.asked, len(pins)
    for at in range(len(costs)):
        costs[at] = variables.costs[at]
    _pin(pins, variables, costs)
    _accumulate(variables, costs, rates.cheapest, rates.arriving)
    chosen[:] = 0
    asked[:] = -1
    stamp = 0
    for x in range(k - 1, 0, -1):
        stamp = _choose_state(x, stamp, costs, variables, asked, chosen)
    for x in range(1, k):
        if pins[x] < 0 and not _is_consistent(x, variables, chosen):
            _weigh_again(x, costs, variables, chosen)
            stamp = _choose_state(x, stamp, costs, variables, asked, chosen)


@compiled(runtime=False)
def _pin(pins: NDArray, variables: Variables, costs: NDArray) -> None:
    """Make all states of a pinned variable infinitely expensive, except the given one."""
    for x in range(len(pins)):
        if pins[x] >= 0:
            for at in range(variables.firsts[x], variables.firsts[x + 1]):
                if at != variables.firsts[x] + pins[x]:
                    costs[at] = np.inf


@compiled(runtime=False)
def _accumulate(variables: Variables, costs: NDArray, cheapest: NDArray, arriving: NDArray) -> None:
    """Add to the costs of consumers the cost of producers in the wanted layouts, with their share of earlier costs."""
    for x in range(1, len(variables.firsts) - 1):
        users = 0
        for q in range(variables.starts[x], variables.starts[x + 1]):
            users += variables.node[q, VariableNode.END] - variables.node[q, VariableNode.START]
        for q in range(variables.starts[x], variables.starts[x + 1]):
            _arrive(x, q, users, costs, variables, cheapest, arriving)
            for e in range(variables.node[q, VariableNode.START], variables.node[q, VariableNode.END]):
                y, at_wanted, stride = (
                    variables.edge[e, VariableEdge.CONSUMER],
                    variables.edge[e, VariableEdge.WANTED],
                    variables.edge[e, VariableEdge.STRIDE],
                )
                if y > 0:
                    for at in range(variables.firsts[y], variables.firsts[y + 1]):
                        wanted = variables.wanted[at_wanted]
                        costs[at] += arriving[wanted if wanted >= 0 else variables.node[q, VariableNode.LAYOUTS]]
                        at_wanted += stride


@compiled(runtime=False)
def _arrive(
    x: int, q: int, users: int, costs: NDArray, variables: Variables, cheapest: NDArray, arriving: NDArray
) -> None:
    """Write the least cost of a node of variable x in each layout, and last in any layout."""
    layouts, same_minor = variables.node[q, VariableNode.LAYOUTS], variables.node[q, VariableNode.SAME_MINOR]
    move_cost, first, result = (
        variables.node[q, VariableNode.MOVE_COST],
        variables.firsts[x],
        variables.node[q, VariableNode.RESULT],
    )
    for layout in range(layouts):
        cheapest[layout] = np.inf
    anywhere = np.inf  # the cost of a copy depends on the two arrays and on whether the minor dimension changes
    for s in range(variables.firsts[x + 1] - first):
        layout, cost = variables.result[result + s], costs[first + s] / users
        cheapest[layout] = min(cheapest[layout], cost)
        anywhere = min(anywhere, cost + variables.move_cost[move_cost + layout])
    arriving[layouts] = np.inf
    for minor in range(0, layouts, same_minor):
        alike = np.inf
        for layout in range(minor, minor + same_minor):
            alike = min(alike, cheapest[layout] + variables.move_cost[move_cost + layout])
        copied = min(alike + variables.shift[q, Shift.RESTACK], anywhere + variables.shift[q, Shift.RELAYOUT])
        for wanted in range(minor, minor + same_minor):
            arriving[wanted] = min(cheapest[wanted], copied + variables.move_cost[move_cost + wanted])
            arriving[layouts] = min(arriving[layouts], arriving[wanted])


@compiled(runtime=False)
def _is_consistent(x: int, variables: Variables, chosen: NDArray) -> bool:
    """True if x is in its cheapest state and there are no copies around it."""
    state = chosen[x]
    if variables.costs[variables.firsts[x] + state] > variables.least[x]:
        return False
    for i in range(variables.entries[x], variables.entries[x + 1]):
        p, q, e = (
            variables.incoming[i, Incoming.PRODUCER],
            variables.incoming[i, Incoming.NODE],
            variables.incoming[i, Incoming.EDGE],
        )
        wanted = variables.wanted[
            variables.edge[e, VariableEdge.WANTED] + state * variables.edge[e, VariableEdge.STRIDE]
        ]
        if p > 0 and wanted >= 0 and wanted != variables.result[variables.node[q, VariableNode.RESULT] + chosen[p]]:
            return False
    for q in range(variables.starts[x], variables.starts[x + 1]):
        layout = variables.result[variables.node[q, VariableNode.RESULT] + state]
        for e in range(variables.node[q, VariableNode.START], variables.node[q, VariableNode.END]):
            consumer = chosen[variables.edge[e, VariableEdge.CONSUMER]]
            wanted = variables.wanted[
                variables.edge[e, VariableEdge.WANTED] + consumer * variables.edge[e, VariableEdge.STRIDE]
            ]
            if wanted >= 0 and wanted != layout:
                return False
    return True


@compiled(runtime=False)
def _weigh_again(x: int, costs: NDArray, variables: Variables, chosen: NDArray) -> None:
    """Set the costs of x's states, given the chosen states of its producers."""
    first, last = variables.firsts[x], variables.firsts[x + 1]
    for at in range(first, last):
        costs[at] = variables.costs[at]
    for i in range(variables.entries[x], variables.entries[x + 1]):
        p, q, e = (
            variables.incoming[i, Incoming.PRODUCER],
            variables.incoming[i, Incoming.NODE],
            variables.incoming[i, Incoming.EDGE],
        )
        if p > 0:
            layout = variables.result[variables.node[q, VariableNode.RESULT] + chosen[p]]
            at_wanted, stride = variables.edge[e, VariableEdge.WANTED], variables.edge[e, VariableEdge.STRIDE]
            for at in range(first, last):
                costs[at] += copy_cost(q, layout, variables.wanted[at_wanted], variables)
                at_wanted += stride


@compiled(runtime=False)
def _choose_state(x: int, stamp: int, costs: NDArray, variables: Variables, asked: NDArray, chosen: NDArray) -> int:
    """Choose the state of x that is cheapest including the copies for its consumers; return the last stamp used."""
    first, last = variables.firsts[x], variables.firsts[x + 1]
    for q in range(variables.starts[x], variables.starts[x + 1]):
        stamp += 1  # consumers that want the same layout of q share a copy
        result = variables.node[q, VariableNode.RESULT]
        for e in range(variables.node[q, VariableNode.START], variables.node[q, VariableNode.END]):
            state = chosen[variables.edge[e, VariableEdge.CONSUMER]]
            wanted = variables.wanted[
                variables.edge[e, VariableEdge.WANTED] + state * variables.edge[e, VariableEdge.STRIDE]
            ]
            if wanted >= 0 and asked[wanted] != stamp:
                asked[wanted] = stamp
                for s in range(last - first):
                    costs[first + s] += copy_cost(q, variables.result[result + s], wanted, variables)
    best = np.inf
    for s in range(last - first):
        if costs[first + s] < best * (1 - 1e-12):
            best, chosen[x] = costs[first + s], s
    return stamp
