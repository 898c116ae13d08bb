"""Pairs in turns: the interval is that of an exact test, sequential looks are rarely wrong, losers cost few runs."""

import math
from itertools import count

import numpy as np
import pytest
from scipy.stats import wilcoxon

from bbo_suite.timing import LOOKS, noise_of, pair, ratio, screened, settled


@pytest.mark.parametrize("size", [10, 20, 40])
def test_the_interval_holds_what_the_signed_rank_test_does_not_refuse(size):
    logs = np.random.default_rng(size).standard_t(3, size) * 0.05 + 0.02
    found = ratio(logs.tolist())
    for end, outward in ((found.low, -1), (found.high, 1)):
        inside, outside = (math.log(end) - outward * step for step in (1e-9, -1e-9))
        assert (
            wilcoxon(logs - inside, method="exact").pvalue > 0.0129 >= wilcoxon(logs - outside, method="exact").pvalue
        )
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("logs", "verdict"),
    [([0.1, -0.1] * 5, "not shown"), ([-0.1 - i / 1e3 for i in range(10)], "faster"), ([0.1] * 10, "slower")],
)
def test_the_verdict_is_where_the_interval_lies(logs, verdict):
    assert ratio(logs).verdict == verdict


def test_few_pairs_show_nothing_and_a_failure_is_infinitely_dear():
    assert (ratio([0.5] * 5).low, ratio([0.5] * 5).high) == (0, math.inf)
    assert ratio([0.0] * 10 + [math.inf]).value == math.inf


@pytest.mark.parametrize("spread", ["normal", "heavy"])
def test_looking_again_and_again_finds_few_gains_where_there_are_none(spread):
    rng = np.random.default_rng(1)
    draw = (lambda: rng.normal(0, 0.05)) if spread == "normal" else lambda: 0.02 * rng.standard_t(2)
    found = [settled(draw() for _ in count()) for _ in range(200)]
    wrong = sum(each.verdict != "not shown" for each in found)
    assert wrong <= 18  # 5 % of 200, and three standard deviations more
    assert {each.pairs for each in found} <= {*LOOKS}


def test_a_clear_gain_ends_at_the_first_look_and_time_ends_it_after_that():
    rng = np.random.default_rng(0)
    assert settled(-0.3 + rng.normal(0, 0.01) for _ in count()).pairs == LOOKS[0]
    assert settled((rng.normal(0, 0.5) for _ in count()), seconds=0).pairs == LOOKS[0]


def test_which_program_runs_first_alternates():
    order = []
    costs = {"a": 2.0, "b": 1.0}
    run = {name: lambda name=name: order.append(name) or costs[name] for name in costs}
    assert [pair(run["a"], run["b"], number) for number in range(2)] == [math.log(2)] * 2
    assert order == ["b", "a", "a", "b"]


@pytest.mark.parametrize(("slower", "runs"), [(1.5, 1), (1.04, 3), (1.0, 16), (0.9, 16)])
def test_repeats_are_for_what_may_be_the_best(slower, runs):
    counted = count(1)
    last = [0]

    def candidate():
        last[0] = next(counted)
        return slower

    assert screened(candidate, lambda: 1.0, noise=0.02, best=1.0) == pytest.approx(slower)
    assert last[0] == runs


def test_noise_is_that_of_a_ratio_of_equal_programs():
    rng = np.random.default_rng(0)
    noise, cost = noise_of(lambda: math.exp(rng.normal(0, 0.1)), pairs=2000)
    assert noise == pytest.approx(0.1 * math.sqrt(2), rel=0.1) and cost == pytest.approx(1, rel=0.02)
