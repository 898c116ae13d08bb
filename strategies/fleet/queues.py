"""Queues: a fleet without tuning, first come, and the heaviest kernel first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.fleet.jobs import Method
from bbo_suite.fleet.policy import Day, Plan, Policy


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
