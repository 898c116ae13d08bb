"""Policies of a fleet: what is tuned each day, and how.

Queues, policies that take what saves most for its cost, and policies that measure whole programs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite.fleet.jobs import Method
from bbo_suite.fleet.policy import Day, Plan, Policy

_HALVINGS = 40
"""Steps of the search for the rate that a budget allows."""


class NoTuning(Policy):
    """Tunes nothing."""

    def plan(self, day: Day) -> Plan:
        """Return an empty plan."""
        return day.first(np.zeros(0, np.int64), Method.EXHAUSTIVE)


class FirstCome(Policy):
    """Tries all settings of the kernels that were seen first."""

    def plan(self, day: Day) -> Plan:
        """Return the kernels in the order in which they were first seen."""
        return _exhaustively(day, day.seen)


class ByWeight(Policy):
    """Tries all settings of the kernels that the fleet spends most on."""

    def plan(self, day: Day) -> Plan:
        """Return the kernels by the fleet's time for them."""
        return _exhaustively(day, -day.seconds)


def _exhaustively(day: Day, order: NDArray) -> Plan:
    waiting = np.flatnonzero(day.usable(Method.EXHAUSTIVE))
    return day.first(waiting[np.argsort(order[waiting], kind="stable")], Method.EXHAUSTIVE)


class BySaving(Policy):
    """Tries all settings of the kernels with the highest expected saving for the cost; old results are revalidated."""

    methods: ClassVar[tuple[Method, ...]] = (Method.EXHAUSTIVE, Method.REVALIDATE)

    def plan(self, day: Day) -> Plan:
        """Return each kernel's best method where it is expected to pay, the best ratio first."""
        return day.within(*self.ordered(day, self.methods))

    def ordered(self, day: Day, methods: tuple[Method, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the kernels where some method should pay, the best ratio first, and the best method of each."""
        ratios = np.column_stack([self._ratio(day, method) for method in methods])
        best = ratios.argmax(axis=1)
        ratio = ratios[np.arange(len(best)), best]
        paying = np.flatnonzero(ratio > 1)
        order = paying[np.argsort(-ratio[paying], kind="stable")]
        return order, np.array(methods)[best[order]]

    def _ratio(self, day: Day, method: Method) -> NDArray[np.float64]:
        saving = day.seconds * day.expected(method) * day.settings.horizon
        return np.where(day.usable(method), saving / day.costs[:, method], 0.0)


class ModelTopK(BySaving):
    """Measures what a learned model ranks first, of the kernels that it expects to save most for the cost."""

    predicts = True
    methods = (Method.MODEL, Method.REVALIDATE)


class TwoStage(BySaving):
    """The learned model first, then all settings of the kernels where that still pays."""

    predicts = True
    methods = (Method.MODEL, Method.EXHAUSTIVE, Method.REVALIDATE)


class Search(BySaving):
    """Runs a search strategy of the suite on the kernels with the highest expected saving for the cost."""

    methods = (Method.SEARCH, Method.REVALIDATE)
    by_default = False


class Transfer(BySaving):
    """Tries what is best for the closest kernels in the store; all settings where that still pays."""

    methods = (Method.NEAR, Method.EXHAUSTIVE, Method.REVALIDATE)


class Oracle(BySaving):
    """Knows the true gains and the best settings, and pays for compiling them only: no policy can be above it."""

    is_oracle = True
    methods = (Method.KNOWN,)

    def _ratio(self, day: Day, method: Method) -> NDArray[np.float64]:
        saving = day.seconds * day.truth().gain * day.settings.horizon
        return np.where(day.usable(method), saving / day.costs[:, method], 0.0)


class WholePrograms(BySaving):
    """Tunes kernels of a program together: one run tries a setting of each, and shows what each of them costs.

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
        if day.highest_cost(plan) <= day.budget:
            return plan
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = day.highest_cost(self._joined(day, old, saving, np.exp(middle))) <= day.budget
            low, high = (low, middle) if fits else (middle, high)
        plan = self._joined(day, old, saving, np.exp(high))
        return plan if day.highest_cost(plan) <= day.budget else old

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
        left = replace(day, budget=day.budget - day.highest_cost(first)).within(kernels[more], methods[more])
        return Plan(np.concatenate([first.kernels, left.kernels]), np.concatenate([first.methods, left.methods]))
