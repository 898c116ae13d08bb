"""Whole programs: the kernels of a program are measured together, by the costs of the parts of its runs."""

from __future__ import annotations

import numpy as np

from bbo_suite.fleet.jobs import Method
from bbo_suite.fleet.policy import Day, Plan

from .by_saving import BySaving


class WholePrograms(BySaving):
    """Tunes the kernels of a program together: one run tries a setting of each, and tells what each of them costs.

    Every other program that has one of the kernels uses its result, too. Old results are revalidated first.
    """

    methods = (Method.REVALIDATE,)

    def plan(self, day: Day) -> Plan:
        """Return old results to revalidate, then the kernels of the programs that save most for their cost."""
        old = super().plan(day)
        left = day.budget - float(day.costs[old.kernels, old.methods].sum())
        waiting = day.usable(Method.SHARED)
        waiting[old.kernels] = False
        saving = day.seconds * day.expected(Method.SHARED) * day.settings.horizon
        kernels = np.flatnonzero(waiting & (saving > day.own_costs))
        program = day.program[kernels]
        sums = np.bincount(program, saving[kernels])
        costs = np.bincount(program, day.own_costs[kernels]) + _measuring(day, kernels, len(sums))
        order = np.argsort(-sums / np.maximum(costs, 1e-300), kind="stable")
        order = order[sums[order] > costs[order]]
        chosen = order[: int(np.searchsorted(np.cumsum(costs[order]), left, side="right"))]
        new = kernels[np.isin(program, chosen)]
        methods = np.concatenate([old.methods, np.full(len(new), Method.SHARED)])
        return Plan(np.concatenate([old.kernels, new]), methods)


def _measuring(day: Day, kernels: np.ndarray, programs: int) -> np.ndarray:
    """Return the `(programs,)` costs of the runs: as many as the kernel with most settings needs."""
    runs = np.zeros(programs)
    np.maximum.at(runs, day.program[kernels], day.costs[kernels, Method.SHARED] - day.own_costs[kernels])
    return runs
