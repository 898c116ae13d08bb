"""Policies that break their contract, and workers that return wrong results."""

from dataclasses import replace

import numpy as np
import pytest

from bbo_suite.errors import UserError
from bbo_suite.fleet.executors import InProcess
from bbo_suite.fleet.jobs import Method
from bbo_suite.fleet.policy import Plan, Policy
from bbo_suite.fleet.store import LOG

from .conftest import SETTINGS


class Planned(Policy):
    def __init__(self, plan):
        self._plan = plan

    def plan(self, day):
        return self._plan(day)


def of(kernels, methods):
    return lambda day: Plan(np.array(kernels), np.array(methods))


def everything(day):
    kernels = np.flatnonzero(day.usable(Method.EXHAUSTIVE))
    return Plan(kernels, np.zeros(len(kernels), int))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda day: 1 / 0, "raised ZeroDivisionError in plan"),
        (everything, "chip-seconds, but 100.0 are left"),
        (lambda day: [1, 2], "returned list"),
        (of([0.5], [0]), "whole numbers"),
        (of([1, 2], [0]), "equally long"),
        (of([10**6], [0]), "outside the"),
        (of([-1], [0]), "outside the"),
        (of([5], [17]), "a method that there is not"),
        (of([9, 9], [0, 0]), "a kernel twice"),
        (of([5], [int(Method.REVALIDATE)]), "planned revalidate"),
        (of([5], [int(Method.KNOWN)]), "planned known"),
        (lambda day: day.truth(), "asks for the truth"),
    ],
)
def test_a_policy_that_breaks_its_contract_ends_the_fleet_with_one_sentence(fleet, plan, message):
    with pytest.raises(UserError, match=message) as raised:
        fleet(Planned(plan), settings=replace(SETTINGS, programs=200))
    assert "policy mine" in str(raised.value) and "\n" not in str(raised.value)


class Wrong(InProcess):
    """Returns results of which some were changed."""

    def __init__(self, library, settings, change):
        super().__init__(library, settings)
        self._change = change

    def run(self, jobs):
        for job, tuned in zip(jobs, super().run(jobs), strict=True):
            yield self._change(tuned) if job.number == 3 else tuned


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: replace(t, digest=t.digest + np.uint64(1)), "a digest"),
        (lambda t: replace(t, gain=t.gain + 0.1), "measured again here differ"),
        (lambda t: replace(t, compiled=t.compiled - 1), "measured again here differ"),
        (lambda t: replace(t, gain=t.gain[:-1]), "not results of"),
        (lambda t: None, "not results of"),
    ],
)
def test_wrong_results_are_found_and_not_stored(fleet, tmp_path, library, change, message):
    settings = replace(SETTINGS, checked=1.0)
    with pytest.raises(UserError, match=message):
        fleet("weight", days=5, settings=settings, executor=Wrong(library, settings, change))
    stored = (tmp_path / "store" / LOG).read_bytes()
    assert b'"job": 2' in stored and b'"job": 3' not in stored
    assert len(fleet("weight", days=5, settings=settings)) == 5
