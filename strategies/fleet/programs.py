"""Whole programs: the kernels of a program are measured together, by the costs of the parts of its runs."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite.fleet.costs import of_plan
from bbo_suite.fleet.jobs import Method
from bbo_suite.fleet.policy import Day, Plan

from .by_saving import BySaving

_HALVINGS = 40


class WholePrograms(BySaving):
    """Tunes kernels of a program together: one run tries a setting of each, and tells what each of them costs.

    Every other program that has one of the kernels uses its result, too. Old results are revalidated first.
    """

    methods = (Method.REVALIDATE,)
    shared: ClassVar[Method] = Method.SHARED

    def plan(self, day: Day) -> Plan:
        """Return old results to revalidate, then the programs, and of each the kernels, that save most for the cost.

        What is saved for a chip-second has to reach some rate: the lowest, from 1 on, that the budget allows.
        """
        old = super().plan(day)
        waiting, own = day.usable(self.shared), day.own_costs(self.shared)
        waiting[old.kernels] = False
        saving = np.where(waiting, day.seconds * day.expected(self.shared) * day.settings.horizon, 0.0)
        low, high = 0.0, float(np.log(max(2.0, (saving / own).max(initial=2.0))))
        plan = self._joined(day, old, saving, 1.0)
        if of_plan(day, plan) <= day.budget:
            return plan
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = of_plan(day, self._joined(day, old, saving, np.exp(middle))) <= day.budget
            low, high = (low, middle) if fits else (middle, high)
        plan = self._joined(day, old, saving, np.exp(high))
        return plan if of_plan(day, plan) <= day.budget else old

    def _joined(self, day: Day, old: Plan, saving: NDArray[np.float64], rate: float) -> Plan:
        """Return a plan with the kernels that save `rate` times their cost, of programs that do so with their runs."""
        own = day.own_costs(self.shared)
        kernels = np.flatnonzero(saving > rate * own)
        program, runs = day.program[kernels], day.costs[kernels, self.shared] - own[kernels]
        gain = np.bincount(program, saving[kernels] - rate * own[kernels])
        measuring = np.zeros(len(gain))
        np.maximum.at(measuring, program, runs)
        paying = kernels[gain[program] > rate * measuring[program]]
        methods = np.concatenate([old.methods, np.full(len(paying), self.shared)])
        return Plan(np.concatenate([old.kernels, paying]), methods)


class PicksOfPrograms(WholePrograms):
    """What a learned model ranks first for the kernels of a program, measured together in runs of the program.

    What is left of a day's budget goes into all settings of the kernels where that still pays.
    """

    predicts = True
    shared = Method.SHARED_MODEL

    def plan(self, day: Day) -> Plan:
        """Return the plan for whole programs, and single kernels for what is left."""
        first = super().plan(day)
        kernels, methods = self.ordered(day, (Method.EXHAUSTIVE,))
        more = ~np.isin(kernels, first.kernels)
        left = replace(day, budget=day.budget - of_plan(day, first)).within(kernels[more], methods[more])
        return Plan(np.concatenate([first.kernels, left.kernels]), np.concatenate([first.methods, left.methods]))
