"""Policies that take what saves most for its cost, of the methods that each has."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite.fleet.jobs import Method
from bbo_suite.fleet.policy import Day, Plan, Policy


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
