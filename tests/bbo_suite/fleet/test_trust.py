"""Policies that break their contract, and workers that lie."""

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


def usable(day):
    return np.flatnonzero(day.usable(Method.EXHAUSTIVE))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda day: 1 / 0, "policy mine raised ZeroDivisionError in plan"),
        (
            lambda day: Plan(usable(day), np.zeros(len(usable(day)), int)),
            "chip-seconds, but 100.0 are left",
        ),
        (lambda day: [1, 2], "plan returned list; it must return a Plan"),
        (of([0.5], [0]), "two arrays of whole numbers"),
        (of([1, 2], [0]), "two arrays of whole numbers"),
        (of([10**6], [0]), "outside the"),
        (of([-1], [0]), "outside the"),
        (of([5], [17]), "a method that there is not"),
        (of([9, 9], [0, 0]), "planned a kernel twice"),
        (
            of([5], [int(Method.REVALIDATE)]),
            "planned revalidate for a kernel where it was used",
        ),
        (of([5], [int(Method.KNOWN)]), "planned known for a kernel"),
        (lambda day: day.truth(), "asks for the truth"),
    ],
)
def test_a_policy_that_breaks_its_contract_ends_the_fleet_with_one_sentence(fleet, plan, message):
    with pytest.raises(UserError, match=message) as raised:
        fleet(Planned(plan), settings=replace(SETTINGS, programs=200))
    assert "\n" not in str(raised.value)


class Lying(InProcess):
    """Returns results that were changed."""

    def __init__(self, library, change):
        super().__init__(library, replace(SETTINGS, checked=1.0))
        self._change = change

    def run(self, jobs):
        for job, tuned in zip(jobs, super().run(jobs), strict=True):
            yield self._change(tuned) if job.number == 3 else tuned


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: replace(t, digest=t.digest + np.uint64(1)), "a digest is not that of its settings"),
        (lambda t: replace(t, gain=t.gain + 0.1), "that were measured again here differ"),
        (lambda t: replace(t, compiled=t.compiled - 1), "that were measured again here differ"),
        (lambda t: replace(t, gain=t.gain[:-1]), "they are not results of"),
        (lambda t: None, "they are not results of"),
    ],
)
def test_a_worker_that_lies_is_found_and_nothing_of_it_is_stored(fleet, tmp_path, library, change, message):
    settings = replace(SETTINGS, checked=1.0)
    with pytest.raises(UserError, match=message):
        fleet("weight", settings=settings, executor=Lying(library, change))
    assert b'"job": 2' in (tmp_path / "store" / LOG).read_bytes()
    assert b'"job": 3' not in (tmp_path / "store" / LOG).read_bytes()
    assert len(fleet("weight", settings=settings)) == 12
