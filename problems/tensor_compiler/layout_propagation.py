"""From the layouts of tuned operations to those of all, or of none to the compiler's own choice. Uses numba.

Where the variables form a tree, what is found costs least by the compiler's estimate of kernels and copies: on the way
down each state is given its cost with all that is in front of it, shared among the consumers; on the way up the state
is taken that is cheapest for the consumers, which are settled. Since programs are no trees, each variable is then
reconsidered between settled neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .graph import Tables
from .layout_variables import Variables, copy_price

_SWEEPS = 2


@compiled()
def propagate(pins: NDArray, variables: Variables, sort: NDArray, tables: Tables, chosen: NDArray) -> None:
    """Write the `(k,)` states of the variables; `pins` `(k,)` holds the states that are given, -1 for others."""
    most = tables.layouts.max()
    cheapest, arriving, asked = np.empty(most), np.empty(most + 1), np.full(most, -1)
    costs, stamp, k = variables.costs.copy(), 0, len(pins)
    chosen[:] = 0
    _pin(pins, variables, costs)
    for x in range(1, k):
        _send(x, costs, variables, sort, tables, cheapest, arriving)
    for x in range(k - 1, 0, -1):
        stamp = _settle(x, stamp, costs, variables, sort, tables, asked, chosen)
    for sweep in range(_SWEEPS):
        for i in range(1, k):
            x = i if sweep % 2 == 0 else k - i
            if pins[x] < 0:
                _weigh(x, costs, variables, sort, tables, chosen)
                stamp = _settle(x, stamp, costs, variables, sort, tables, asked, chosen)


@compiled(runtime=False)
def _pin(pins: NDArray, variables: Variables, costs: NDArray) -> None:
    """Make all states but those that are given infinitely dear."""
    for x in range(len(pins)):
        if pins[x] >= 0:
            for at in range(variables.firsts[x], variables.firsts[x + 1]):
                if at != variables.firsts[x] + pins[x]:
                    costs[at] = np.inf


@compiled(runtime=False)
def _send(
    x: int,
    costs: NDArray,
    variables: Variables,
    sort: NDArray,
    tables: Tables,
    cheapest: NDArray,
    arriving: NDArray,
) -> None:
    """Add to the costs of x's consumers what it costs that x arrives as they want it, with its share of all before."""
    first, last = variables.starts[x], variables.starts[x + 1]
    before = -1
    for i in range(first, last):
        p, y = variables.node[i], variables.ends[i, 1]
        if p != before:
            _arrive(x, p, last - first, costs, variables, sort, tables, cheapest, arriving)
            before = p
        if y > 0:
            for s in range(variables.firsts[y + 1] - variables.firsts[y]):
                wanted = variables.wanted[variables.wish[i, 0] + s * variables.wish[i, 1]]
                costs[variables.firsts[y] + s] += arriving[wanted] if wanted >= 0 else arriving[tables.layouts[sort[p]]]


@compiled(runtime=False)
def _arrive(
    x: int,
    p: int,
    users: int,
    costs: NDArray,
    variables: Variables,
    sort: NDArray,
    tables: Tables,
    cheapest: NDArray,
    arriving: NDArray,
) -> None:
    """Write the least cost at which node p of variable x arrives in each layout, then in any."""
    kind, first = sort[p], variables.firsts[x]
    layouts, at = tables.layouts[kind], tables.first[kind]
    cheapest[:layouts] = np.inf
    for s in range(variables.firsts[x + 1] - first):
        layout = tables.result[at + s]
        cheapest[layout] = min(cheapest[layout], costs[first + s] / users)
    arriving[layouts] = np.inf
    for wanted in range(layouts):
        arriving[wanted] = np.inf
        for layout in range(layouts):
            if cheapest[layout] < np.inf:
                price = _price(p, layout, wanted, variables, sort, tables)
                arriving[wanted] = min(arriving[wanted], cheapest[layout] + price)
        arriving[layouts] = min(arriving[layouts], arriving[wanted])


@compiled(runtime=False)
def _price(p: int, layout: int, wanted: int, variables: Variables, sort: NDArray, tables: Tables) -> float:
    return copy_price(p, layout, wanted, tables, sort, variables.array, variables.shift, variables.runs)


@compiled(runtime=False)
def _weigh(x: int, costs: NDArray, variables: Variables, sort: NDArray, tables: Tables, chosen: NDArray) -> None:
    """Set the costs of x's states to what they are while its producers stay as they are."""
    first, last = variables.firsts[x], variables.firsts[x + 1]
    for at in range(first, last):
        costs[at] = variables.costs[at]
    for j in range(variables.entries[x], variables.entries[x + 1]):
        i = variables.incoming[j]
        p = variables.node[i]
        layout = tables.result[tables.first[sort[p]] + chosen[variables.ends[i, 0]]]
        for s in range(last - first):
            wanted = variables.wanted[variables.wish[i, 0] + s * variables.wish[i, 1]]
            costs[first + s] += _price(p, layout, wanted, variables, sort, tables)


@compiled(runtime=False)
def _settle(
    x: int,
    stamp: int,
    costs: NDArray,
    variables: Variables,
    sort: NDArray,
    tables: Tables,
    asked: NDArray,
    chosen: NDArray,
) -> int:
    """Take the state of x that is cheapest with the copies for its consumers; return the last stamp on `asked`."""
    best = np.inf
    for s in range(variables.firsts[x + 1] - variables.firsts[x]):
        cost, before = costs[variables.firsts[x] + s], -1
        for i in range(variables.starts[x], variables.starts[x + 1]):
            p = variables.node[i]
            stamp += p != before  # a copy is shared by all who want the same of p
            before = p
            wanted = variables.wanted[variables.wish[i, 0] + chosen[variables.ends[i, 1]] * variables.wish[i, 1]]
            if wanted >= 0 and asked[wanted] != stamp:
                asked[wanted] = stamp
                cost += _price(p, tables.result[tables.first[sort[p]] + s], wanted, variables, sort, tables)
        if cost < best * (1 - 1e-12):
            best, chosen[x] = cost, s
    return stamp
