"""Savings, costs and days: what a fleet counts; policies that break their contract, and workers that are wrong."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from bbo_suite.errors import UserError
from bbo_suite.fleet import study
from bbo_suite.fleet.executors import InProcess, tune
from bbo_suite.fleet.jobs import Job, Method
from bbo_suite.fleet.planning import Population
from bbo_suite.fleet.policy import Plan, Policy
from bbo_suite.fleet.store import LOG
from bbo_suite.fleet.study import DayResult, policies, recovery, summary
from bbo_suite.registry import Registry

from .conftest import KERNELS, SETTINGS

CALM = replace(SETTINGS, turnover=0.0, recompiled=0.0, drift=0.0, release=0, noise=0.0)
RICH = {"days": 4, "budget": 1e4}
"""All kernels can be tuned on the first day."""


@pytest.mark.slow
def test_the_engine_does_not_load_it():
    code = "import bbo_suite, sys; print([name for name in sys.modules if name.startswith('bbo_suite.fleet')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.slow
def test_nothing_is_above_the_oracle_and_none_saves_nothing(fleet):
    few = replace(SETTINGS, evaluations=12)
    saved = {}
    assert "search" not in policies(Registry())  # it takes as long as all others together, and must be named
    for name in (*policies(Registry()), "search"):
        saved[name] = np.mean([day.saved for day in fleet(name, settings=few, folder=name)])
    assert len(saved) == 11 and saved.pop("none") == 0
    assert all(0 < each <= saved["oracle"] for each in saved.values())
    assert saved["fifo"] < saved["weight"]


def test_without_noise_all_is_found_and_saved_up_to_the_potential(fleet):
    last = fleet("weight", settings=replace(CALM, restarts=1.0), **RICH)[-1]
    assert last.saved == pytest.approx(last.potential) and last.lost == 0 and last.potential > 0.01


def test_a_result_saves_only_from_the_next_start_of_a_program(fleet):
    (first,) = fleet("weight", days=1)
    assert first.saved == 0 and first.tuned > 0
    never = fleet("weight", settings=replace(CALM, restarts=0.0), folder="never")
    assert all(day.saved == 0 for day in never) and sum(day.tuned for day in never) > 50


def test_a_release_makes_all_results_old_and_old_ones_are_tried_first(fleet):
    days = fleet("saving", days=20)
    assert days[6].version == 0 and days[7].version == 1
    assert days[6].saved > 0 and days[7].saved == 0
    assert days[-1].by_method["revalidate"] > 0


def test_regressions_are_counted_by_true_times(fleet):
    wild = replace(CALM, noise=0.5, repeats=1)
    last = fleet("weight", settings=wild)[-1]
    assert last.lost > 0 and last.slower > 0
    assert fleet("weight", settings=replace(wild, margin=0.5), folder="careful")[-1].lost < last.lost


def test_costs_follow_from_what_was_compiled_and_measured(fleet):
    day = fleet("weight", days=1, settings=CALM)[0]
    each = 12 * CALM.compile + (11 + 6) * CALM.measure  # 12 settings, one of which does not compile; 5 finalists
    assert day.cost == pytest.approx(day.tuned * each)
    highest = 12 * (CALM.compile + CALM.measure) + 6 * CALM.measure
    assert day.tuned * highest <= 100 < (day.tuned + 1) * highest


def test_kernels_of_a_program_share_measurements(fleet):
    one, many = (fleet(name, days=1, budget=1e4, settings=CALM, folder=name)[0] for name in ("weight", "graybox"))
    assert many.cost / many.tuned < 0.7 * one.cost / one.tuned


@pytest.mark.parametrize("method", [Method.EXHAUSTIVE, Method.MODEL, Method.SEARCH])
def test_results_do_not_depend_on_how_jobs_are_cut(library, method):
    job, settings = Job(0, 0, method, np.arange(3, 40), None, 5), replace(SETTINGS, evaluations=8, search="random")
    whole = tune(library, job, settings)
    for places in np.array_split(np.random.default_rng(0).permutation(37), 5):
        part = tune(library, job.of(places), settings)
        assert (part.settings == whole.settings[places]).all() and (part.gain == whole.gain[places]).all()
    assert (tune(library, replace(job, seed=6), settings).gain != whole.gain).any()


@pytest.mark.parametrize("policy", ["graybox", "two-stage"])
def test_the_size_of_jobs_changes_nothing(fleet, monkeypatch, policy):
    """Kernels of a program that are measured together stay in one job, so they cost the same."""
    days = fleet(policy, folder="large")
    monkeypatch.setattr(study, "CHUNK", 4)
    for one, other in zip(days, fleet(policy, folder="small"), strict=True):
        assert (one.tuned, one.saved, one.slower) == (other.tuned, other.saved, other.slower)
        assert one.cost == pytest.approx(other.cost)


def test_events_do_not_depend_on_the_policy_and_keep_the_fleet_whole(library):
    one, two = (Population(library, SETTINGS, 3) for _ in range(2))
    for _ in range(10):
        one.next_day()
        two.next_day()
        two.fetch(np.zeros(KERNELS, np.int64))
    assert (one.kernel == two.kernel).all() and len(one.kernel) == len(one.result)
    assert one.uses(library.default_seconds(1)).sum() == pytest.approx(1) and (np.bincount(one.owner) == 10).all()


def test_recovery_and_summary_of_a_known_course():
    course = [0.1] * 7 + [0.0, 0.05, 0.08, 0.095, 0.1]
    days = [
        DayResult(day, 0, 5, 0, 2, 0, 10.0, saved, 0.0, 0, 0.2, 0.0, {"model": saved})
        for day, saved in enumerate(course, 1)
    ]
    assert recovery(days, SETTINGS) == 3 and recovery(days[:9], SETTINGS) is None
    found = summary(days, SETTINGS, training=5.0)
    assert found["cost"] == 180 and found["savings_over_cost"] == pytest.approx(sum(course) * 864 / 180)


def test_a_search_strategy_finds_what_its_budget_allows_and_is_charged_for_it(fleet):
    settings = replace(CALM, restarts=1.0, evaluations=36, search="exhaustive")
    days = fleet("search", settings=settings, **RICH)
    assert 0.8 * days[-1].potential < days[-1].saved <= days[-1].potential
    each = 36 * CALM.compile + (30 + 6) * CALM.measure  # 6 of 36 do not compile; 5 finalists and the default again
    assert days[0].cost == pytest.approx(days[0].tuned * each)
    few = fleet("search", settings=replace(settings, evaluations=4), folder="few", **RICH)
    assert few[-1].saved < days[-1].saved


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
