"""Minimal candidates: changes that gain nothing return to the default, and the others are ranked."""

import json
import math

import numpy as np
import pytest

from bbo_suite import Evaluations, Problem, Status, Structure, choice, product
from bbo_suite.verify.minimal import LEAST, ROUNDS, gain_text, minimal

GAINS = {3: 4.0, 11: 2.0, 250: 1.0}
PAIR = (17, 230)


class Sparse(Problem):
    """Three parameters gain alone, two only together, one must be set with another, and all others do nothing."""

    instances = ("a",)
    spread = 0.0

    def __init__(self, instance="a", d=300):
        self.space = product(*(choice(f"x{i}", (False, True)) for i in range(d)))
        self.default, self.id = np.zeros(d, int), "sparse/a"
        self._rng = np.random.default_rng(0)

    def evaluate(self, configs):
        gained = sum(gain * configs[:, column] for column, gain in GAINS.items())
        values = 100.0 - gained - 8 * configs[:, list(PAIR)].all(axis=1) + 5 * configs[:, 42]
        values *= 1 + self.spread * self._rng.standard_normal(len(values))
        broken = (configs[:, 3] == 1) & (configs[:, 4] == 0)
        status = np.where(broken, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(np.where(broken, np.inf, values), status)


def gains_of(least):
    return {each.column: each.gain for each in least.needed}


def test_only_needed_changes_are_left_with_their_gains():
    problem = Sparse()
    least = minimal(problem, np.ones(300, np.int8), noisy=False)
    cost = 100 - 7 - 8
    expected = {4: math.inf, 3: 4 / cost, 11: 2 / cost, 250: 1 / cost, 17: 8 / cost, 230: 8 / cost}
    assert gains_of(least) == pytest.approx(expected)
    gains = [each.gain for each in least.needed]
    assert gains == sorted(gains, reverse=True)
    assert set(np.flatnonzero(least.config).tolist()) == set(expected)
    assert problem.evaluate(least.config[None]).values[0] == cost  # the change that made it slower is gone as well
    assert (least.changes, least.noise) == (300, LEAST)
    assert least.evaluations < 120


def test_interacting_changes_return_together():
    problem = Sparse()
    problem.evaluate = lambda configs: Evaluations.of(100.0 + (configs[:, 5] != configs[:, 295]))
    config = np.zeros(300, np.int8)
    config[[5, 295]] = 1
    neighbours = np.array([295, 5])
    starts = np.cumsum([0] + [int(i in (5, 295)) for i in range(300)])
    problem.structure = lambda: Structure(starts, neighbours, np.zeros((300, 1), np.float32), ("one",))
    config[100:120] = 1
    problem.evaluate = lambda configs: Evaluations.of(
        100.0 + (configs[:, 5] != configs[:, 295]) - configs[:, 100:120].sum(axis=1)
    )
    least = minimal(problem, config, noisy=False)
    assert sorted(gains_of(least)) == list(range(100, 120))


def test_a_change_whose_gain_would_read_0_is_not_needed():
    problem = Sparse()
    problem.evaluate = lambda configs: Evaluations.of(
        100.0 - 1e-4 * configs[:, :40].sum(axis=1) - configs[:, 50] * 6e-4
    )
    config = np.zeros(300, np.int8)
    config[:60] = 1
    least = minimal(problem, config, noisy=False)
    assert all(gain_text(gain) != "0.000 %" for gain in gains_of(least).values())
    cost, before = (problem.evaluate(each[None]).values[0] for each in (least.config, config))
    assert 50 in gains_of(least) and cost <= before * (1 + LEAST)


def test_noise_is_no_reason_to_keep_a_change():
    problem = Sparse()
    problem.spread = 0.002
    least = minimal(problem, np.ones(300, np.int8), noisy=True)
    assert 0 < least.noise < 0.02
    assert {3, 4, 17, 230} <= set(gains_of(least))  # 4 and 8 % are far above the noise
    assert len(least.needed) <= 15
    assert least.evaluations % 2 == 0


def test_a_clear_rise_is_measured_twice_and_a_failure_once():
    problem = Sparse()
    problem.spread = 1e-9
    config = np.zeros(300, np.int8)
    config[[3, 4]] = 1
    least = minimal(problem, config, noisy=True)  # both together, each alone in the groups, and each in the end
    assert gains_of(least) == {4: math.inf, 3: pytest.approx(4 / 96)}
    clear, failing = 2 * 2, 2
    assert least.evaluations == 2 * ROUNDS + clear + 2 * (clear + failing)


def test_thousands_of_changes_take_few_evaluations():
    problem = Sparse(d=3000)
    least = minimal(problem, np.ones(3000, np.int8), noisy=False)
    assert len(least.needed) == 6 and least.evaluations < 200


def test_the_command_prints_what_is_needed_and_how_it_was_found(suite, toy):
    suite("run", *toy, "--strategy", "random", "--budget", 60, "--study", "s", "--json")
    (plain,) = map(json.loads, suite("best", "s", *toy, "--json").out.splitlines())
    (found,) = map(json.loads, suite("best", "s", "--minimal", *toy, "--json").out.splitlines())
    least = found["minimal"]
    assert plain["minimal"] is None
    assert plain | {"minimal": 0, "paste": 0} == found | {"minimal": 0, "paste": 0}
    assert least["changes"] == len(plain["paste"].splitlines())
    assert 0 < len(least["needed"]) == len(found["paste"].splitlines()) <= least["changes"]
    assert least["speedup"] >= found["speedup"]
    for change in least["needed"]:
        assert f"{change['name']} = {change['value']}" in found["paste"]
    out = suite("best", "s", "--minimal", *toy).out
    first = least["needed"][0]
    assert f"{len(least['needed'])} of {least['changes']} changes are needed" in out
    assert f"{first['name']}: {first['default']} -> {first['value']}" in out


@pytest.mark.parametrize(
    ("unit", "text"), [("bytes", "48 bytes, 1.246 %"), ("seconds", "1.246 %"), ("quality", "1.246 %")]
)
def test_a_gain_of_what_is_counted_is_counted(unit, text):
    assert gain_text(0.01246, 3853.0, unit) == text
    assert gain_text(np.inf, 3853.0, unit) == "fails"
