"""From the layouts of tuned operations to those of all, or of none to the compiler's own choice. Uses numba.

Where the variables form a tree, what is found costs least by the compiler's estimate of kernels and copies: on the way
down each state is given its cost with all that is in front of it, shared among the consumers; on the way up the state
is taken that is cheapest for the consumers, which are settled. Since programs are no trees, each variable is then
reconsidered between settled neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from .variables import Incoming, VariableEdge, VariableNode, Variables, copy_price


@compiled()
def propagate(pins: NDArray, variables: Variables, most: int, chosen: NDArray) -> None:
    """Write the states of the variables.

    Args:
      pins: `(k,)` the states that are given, -1 for others.
      variables: of the program.
      most: layouts that any array has.
      chosen: `(k,)`, written.
    """
    asked, costs, k = np.full(most, -1), variables.costs.copy(), len(pins)
    _pin(pins, variables, costs)
    _down(variables, costs, np.empty(most), np.empty(most + 1))
    chosen[:] = 0
    stamp = 0
    for x in range(k - 1, 0, -1):
        stamp = _settle(x, stamp, costs, variables, asked, chosen)
    for x in range(1, k):
        if pins[x] < 0 and not _content(x, variables, chosen):
            _weigh(x, costs, variables, chosen)
            stamp = _settle(x, stamp, costs, variables, asked, chosen)


@compiled(runtime=False)
def _pin(pins: NDArray, variables: Variables, costs: NDArray) -> None:
    """Make all states but those that are given infinitely dear."""
    for x in range(len(pins)):
        if pins[x] >= 0:
            for at in range(variables.firsts[x], variables.firsts[x + 1]):
                if at != variables.firsts[x] + pins[x]:
                    costs[at] = np.inf


@compiled(runtime=False)
def _down(variables: Variables, costs: NDArray, cheapest: NDArray, arriving: NDArray) -> None:
    """Add to the costs of consumers what it costs that producers arrive as wanted, with their share of all before."""
    for x in range(1, len(variables.firsts) - 1):
        users = 0
        for q in range(variables.starts[x], variables.starts[x + 1]):
            users += variables.node[q, VariableNode.END] - variables.node[q, VariableNode.START]
        for q in range(variables.starts[x], variables.starts[x + 1]):
            _arrive(x, q, users, costs, variables, cheapest, arriving)
            for e in range(variables.node[q, VariableNode.START], variables.node[q, VariableNode.END]):
                y, wish, stride = (
                    variables.edge[e, VariableEdge.CONSUMER],
                    variables.edge[e, VariableEdge.WANTED],
                    variables.edge[e, VariableEdge.STRIDE],
                )
                if y > 0:
                    for at in range(variables.firsts[y], variables.firsts[y + 1]):
                        wanted = variables.wanted[wish]
                        costs[at] += arriving[wanted if wanted >= 0 else variables.node[q, VariableNode.LAYOUTS]]
                        wish += stride


@compiled(runtime=False)
def _arrive(
    x: int, q: int, users: int, costs: NDArray, variables: Variables, cheapest: NDArray, arriving: NDArray
) -> None:
    """Write the least cost at which a node of variable x arrives in each layout, then in any."""
    layouts, same_minor = variables.node[q, VariableNode.LAYOUTS], variables.node[q, VariableNode.SAME_MINOR]
    price, first, result = (
        variables.node[q, VariableNode.PRICE],
        variables.firsts[x],
        variables.node[q, VariableNode.RESULT],
    )
    for layout in range(layouts):
        cheapest[layout] = np.inf
    anywhere = np.inf  # a copy's price is what the two arrays cost, and whether the minor dimension changes
    for s in range(variables.firsts[x + 1] - first):
        layout, cost = variables.result[result + s], costs[first + s] / users
        cheapest[layout] = min(cheapest[layout], cost)
        anywhere = min(anywhere, cost + variables.price[price + layout])
    arriving[layouts] = np.inf
    for minor in range(0, layouts, same_minor):
        alike = np.inf
        for layout in range(minor, minor + same_minor):
            alike = min(alike, cheapest[layout] + variables.price[price + layout])
        copied = min(alike + variables.shift[q, 0], anywhere + variables.shift[q, 1])
        for wanted in range(minor, minor + same_minor):
            arriving[wanted] = min(cheapest[wanted], copied + variables.price[price + wanted])
            arriving[layouts] = min(arriving[layouts], arriving[wanted])


@compiled(runtime=False)
def _content(x: int, variables: Variables, chosen: NDArray) -> bool:
    """Is x in its own cheapest state, and are there no copies around it?"""
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
def _weigh(x: int, costs: NDArray, variables: Variables, chosen: NDArray) -> None:
    """Set the costs of x's states to what they are while its producers stay as they are."""
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
            wish, stride = variables.edge[e, VariableEdge.WANTED], variables.edge[e, VariableEdge.STRIDE]
            for at in range(first, last):
                costs[at] += copy_price(q, layout, variables.wanted[wish], variables)
                wish += stride


@compiled(runtime=False)
def _settle(x: int, stamp: int, costs: NDArray, variables: Variables, asked: NDArray, chosen: NDArray) -> int:
    """Take the state of x that is cheapest with the copies for its consumers; return the last stamp on `asked`."""
    first, last = variables.firsts[x], variables.firsts[x + 1]
    for q in range(variables.starts[x], variables.starts[x + 1]):
        stamp += 1  # a copy is shared by all who want the same of q
        result = variables.node[q, VariableNode.RESULT]
        for e in range(variables.node[q, VariableNode.START], variables.node[q, VariableNode.END]):
            state = chosen[variables.edge[e, VariableEdge.CONSUMER]]
            wanted = variables.wanted[
                variables.edge[e, VariableEdge.WANTED] + state * variables.edge[e, VariableEdge.STRIDE]
            ]
            if wanted >= 0 and asked[wanted] != stamp:
                asked[wanted] = stamp
                for s in range(last - first):
                    costs[first + s] += copy_price(q, variables.result[result + s], wanted, variables)
    best = np.inf
    for s in range(last - first):
        if costs[first + s] < best * (1 - 1e-12):
            best, chosen[x] = costs[first + s], s
    return stamp
