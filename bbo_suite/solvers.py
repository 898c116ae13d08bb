"""Exact minimisation of pair costs within a capacity, as an integer program that HiGHS solves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array

from .core.task import Capacity

_TOGETHER = 20
"""Steps above the limit that become constraints at once."""
_SCALE = 1e6
"""The solver sees costs of about this size: it takes those that differ by 1e-6 for the same."""
_SLACK = 1e-6
"""The share of the limit by which the solver may exceed it."""


class PairCosts(NamedTuple):
    """Costs of d nodes and m edges; infinite ones are impossible.

    Attributes:
      sizes: `(d,)` the number of values of each node.
      nodes: `(sum of sizes,)` the cost of each value.
      first, second: `(m,)` the nodes of each edge.
      starts: `(m,)` where the table of each edge begins, `(sizes[first], sizes[second])` in rows.
      tables: the costs of all edges.
    """

    sizes: NDArray[np.int64]
    nodes: NDArray[np.float64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    starts: NDArray[np.int64]
    tables: NDArray[np.float64]


class Minimum(NamedTuple):
    """What is known of the least cost.

    Attributes:
      config: `(d,)` a candidate of least cost; None if there is none, or none was found.
      bound: no candidate costs less; inf if there is none, -inf if nothing is known.
    """

    config: NDArray[np.int64] | None
    bound: float


def minimise(
    costs: PairCosts, capacity: Capacity | None, targets: NDArray[np.int64] | None = None, most_nodes: int | None = None
) -> Minimum:
    """Return the candidate of least cost.

    An edge has a variable for each pair of different rows and columns of its table, so that its linear relaxation is
    that of the local polytope. The capacity of a step becomes a constraint when a solution exceeds it.

    Args:
      costs: the graph.
      capacity: of these nodes, or of others that they decide.
      targets: for each usage of the capacity the value in `nodes` that it belongs to; by default they are the same.
      most_nodes: of the solver's search tree; None for no limit.
    """
    program = _Program(costs)
    limit = None if capacity is None else _Limit(capacity, np.arange(len(costs.nodes)) if targets is None else targets)
    for is_integral in (False, True):
        while True:
            result = program.solve(limit, is_integral, most_nodes)
            if result.x is None:
                return Minimum(None, np.inf if result.status == 2 else -np.inf)
            chosen = result.x[: len(costs.nodes)]
            if limit is None or not limit.add(chosen):
                break
    firsts = np.cumsum(costs.sizes) - costs.sizes
    config = np.array([part.argmax() for part in np.split(chosen, firsts[1:])], np.int64)
    return Minimum(config, program.least + program.unit * float(result.mip_dual_bound))


class _Program:
    """The variables: one for each value, then those of all edges; and what makes them a candidate."""

    def __init__(self, costs: PairCosts) -> None:
        d, count = len(costs.sizes), len(costs.nodes)
        owners = np.repeat(np.arange(d), costs.sizes)
        rows, columns, signs, objective = [owners], [np.arange(count)], [np.ones(count)], [costs.nodes]
        firsts, made, equal = np.cumsum(costs.sizes) - costs.sizes, count, d
        for a, b, start in zip(costs.first, costs.second, costs.starts, strict=True):
            shape = costs.sizes[a], costs.sizes[b]
            table = costs.tables[start : start + shape[0] * shape[1]].reshape(shape)
            table, mine = np.unique(table, axis=0, return_inverse=True)
            table, other = np.unique(table, axis=1, return_inverse=True)
            left, right = np.divmod(np.arange(table.size), table.shape[1])
            variables = made + np.arange(table.size)
            rows += [equal + left, equal + mine.ravel(), equal + len(table) + right, equal + len(table) + other.ravel()]
            columns += [variables, firsts[a] + np.arange(shape[0]), variables, firsts[b] + np.arange(shape[1])]
            signs += [np.ones(table.size), np.full(shape[0], -1.0), np.ones(table.size), np.full(shape[1], -1.0)]
            objective.append(table.ravel())
            made, equal = made + table.size, equal + sum(table.shape)
        places = np.concatenate(rows), np.concatenate(columns)
        self._matrix = csr_array((np.concatenate(signs), places), shape=(equal, made))
        self._sums = np.concatenate([np.ones(d), np.zeros(equal - d)])
        self._set_objective(np.concatenate(objective), np.concatenate([firsts, count + _begins(objective[1:])]))
        self._is_value = (np.arange(made) < count).astype(int)

    def _set_objective(self, objective: NDArray[np.float64], firsts: NDArray[np.int64]) -> None:
        """Take the least cost of each node and edge away, and scale the rest."""
        self._possible = np.isfinite(objective)
        lows = np.minimum.reduceat(objective, firsts)
        lows[~np.isfinite(lows)] = 0.0
        self.least = float(lows.sum())
        rest = np.where(self._possible, objective - np.repeat(lows, np.diff(firsts, append=len(objective))), 0.0)
        self.unit = max(1.0, abs(self.least), float(np.median(rest))) / _SCALE
        self._objective = rest / self.unit

    def solve(self, limit: _Limit | None, is_integral: bool, most_nodes: int | None) -> OptimizeResult:
        """Return the solver's result; the first of its variables are the values of the nodes."""
        constraints = [LinearConstraint(self._matrix, self._sums, self._sums)]
        if limit is not None and limit.rows:
            constraints.append(LinearConstraint(limit.matrix(len(self._objective)), -np.inf, 1.0))
        most = np.iinfo(np.int32).max if most_nodes is None else most_nodes
        is_value = self._is_value if is_integral else np.zeros_like(self._is_value)
        return milp(
            self._objective,
            integrality=is_value,
            bounds=Bounds(0, self._possible.astype(float)),
            constraints=constraints,
            options={"mip_rel_gap": 0.0, "node_limit": int(most)},
        )


def _begins(groups: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    lengths = np.array([len(group) for group in groups], np.int64)
    return np.cumsum(lengths) - lengths


class _Limit:
    """The capacity at those steps at which a solution exceeded it.

    Attributes:
      rows: for each of these steps, by its number, the share of the limit that each value uses.
    """

    def __init__(self, capacity: Capacity, targets: NDArray[np.int64]) -> None:
        self._capacity, self._targets = capacity, targets
        self._owners = np.repeat(np.arange(len(capacity.begins)), np.diff(capacity.firsts))
        self.rows: dict[int, NDArray[np.float64]] = {}

    def add(self, chosen: NDArray[np.float64]) -> bool:
        """Add the highest peaks of a `(v,)` solution that are above the limit; return whether there is one."""
        capacity = self._capacity
        usages = np.bincount(self._owners, capacity.usages * chosen[self._targets], len(capacity.begins))
        used = capacity.over_time(usages)
        is_peak = (used >= np.roll(used, 1)) & (used > np.append(used[1:], 0.0))
        peaks = np.flatnonzero(is_peak & (used > capacity.limit * (1 + _SLACK)))
        new = [int(t) for t in peaks[np.argsort(-used[peaks])][:_TOGETHER] if int(t) not in self.rows]
        self.rows |= {t: self._row(t, len(chosen)) for t in new}
        return bool(new)

    def _row(self, step: int, values: int) -> NDArray[np.float64]:
        alive = (self._capacity.begins <= step) & (step < self._capacity.ends)
        shares = self._capacity.usages * alive[self._owners] / self._capacity.limit
        return np.bincount(self._targets, shares, values).astype(np.float64)

    def matrix(self, variables: int) -> csr_array:
        """Return the constraints on all variables."""
        rows = csr_array(np.array(list(self.rows.values())))
        return csr_array((rows.data, rows.indices, rows.indptr), shape=(len(self.rows), variables))
