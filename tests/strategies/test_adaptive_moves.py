"""Operators and numbers of changes: what they do to candidates, and how their shares follow what they gain."""

import numpy as np
import pytest

from bbo_strategies.adaptive_moves import COPY, RUN, SINGLE, AdaptiveMutation, MutationRate, relative_gains
from bbo_strategies.annealing import Annealing
from bbo_strategies.evolution import Evolution
from bbo_suite import Moves, Space
from bbo_suite.testing import play, start

D = 400


@pytest.fixture
def mutation():
    return AdaptiveMutation(Moves(Space([3] * D)), np.random.default_rng(0))


@pytest.fixture
def made(mutation):
    """Return rows before and after a change each, the columns and the kinds."""
    before = np.random.default_rng(1).integers(0, 3, (1200, D)).astype(np.int8)
    after, columns = before.copy(), np.random.default_rng(2).integers(60, 300, 1200)
    return before, after, columns, mutation.change(after, np.arange(1200), columns)


def test_a_single_change_changes_only_its_parameter(made):
    before, after, columns, kinds = made
    places, at = np.nonzero((before != after)[kinds == SINGLE])
    assert (np.bincount(places) == 1).all() and (at == columns[kinds == SINGLE]).all()


def test_a_run_takes_one_value_and_a_copy_the_values_of_another_range(made):
    before, after, columns, kinds = made
    lengths = {RUN: [], COPY: []}
    for old, new, column, kind in zip(before, after, columns, kinds, strict=True):
        if kind in lengths:
            changed = np.flatnonzero(old != new)
            assert changed[0] >= column and changed[-1] < column + 50
            copied = new[column : changed[-1] + 1]
            windows = np.lib.stride_tricks.sliding_window_view(old, len(copied))
            assert (copied == copied[0]).all() if kind == RUN else (windows == copied).all(axis=1).any()
            lengths[kind].append(len(copied))
    assert all(np.median(known) < 6 and max(known) > 20 for known in lengths.values())  # a heavy tail


@pytest.mark.parametrize("paying", [SINGLE, RUN, COPY])
def test_the_shares_follow_recent_success(mutation, paying):
    kinds = np.arange(99) % 3
    for kind in (paying, (paying + 1) % 3):
        for _ in range(100):
            mutation.learn(kinds, kinds == kind)
        assert mutation.shares[kind] > 0.8 and mutation.shares.sum() == pytest.approx(1)
        assert mutation.shares.min() > 0.04  # a kind may pay later


def test_the_shares_are_even_after_so_long_without_success_that_gains_underflow(mutation):
    kinds, rng = np.repeat([SINGLE, RUN, COPY], [20, 30, 40]), np.random.default_rng(0)
    for better in (kinds == SINGLE, *[np.zeros(90, bool)] * 15_000):
        mutation.learn(kinds, better)
    assert mutation.shares == pytest.approx(np.full(3, 1 / 3))
    chosen = mutation.change(rng.integers(0, 3, (300, D)), np.arange(300), np.full(300, 9))
    assert np.bincount(chosen, minlength=3).min() > 50


def rate(parameters=4000):
    return MutationRate(parameters, np.random.default_rng(0))


def test_at_first_the_numbers_of_changes_follow_a_power_law():
    assert rate().shares * np.array([1, 2, 4, 8, 16, 32]) == pytest.approx(np.full(6, rate().shares[0]))
    drawn = rate().draw(20_000)
    assert set(drawn.tolist()) == {1, 2, 4, 8, 16, 32}
    assert (drawn == 1).mean() == pytest.approx(rate().shares[0], abs=0.02)


@pytest.mark.parametrize("paying", range(6))
def test_the_shares_follow_what_was_gained_and_not_how_often(paying):
    own, numbers = rate(), 2 ** np.tile(np.arange(6), 10)
    for place in ((paying + 1) % 6, paying):
        for _ in range(100):
            own.learn(numbers, np.where(numbers == 2**place, 0.1, 1e-4), np.zeros(60, bool))
        assert own.shares[place] > 0.5 and own.shares.sum() == pytest.approx(1) and own.shares.min() > 0.001


def test_there_are_single_changes_only_where_less_than_half_of_them_cost_nothing():
    own, ones = rate(), np.ones(20, np.int64)
    own.learn(ones, np.zeros(20), np.arange(20) < 9)
    assert set(own.draw(1000)) == {1}
    own.learn(ones, np.zeros(20), np.arange(20) < 11)
    assert set(own.draw(1000)) == {1, 2, 4, 8, 16, 32}


def test_gains_are_shares_of_the_cost_and_failures_gain_nothing():
    assert relative_gains(4.0, np.array([3.0, 5.0, np.inf, 0.0, -9.0])).tolist() == [0.25, 0, 0, 1, 1]
    assert relative_gains(np.inf, np.array([3.0, np.inf])).tolist() == [1, 0]
    assert relative_gains(-2.0, np.array([-3.0, -1.0])).tolist() == [0.5, 0]
    assert relative_gains(0.0, np.array([0.0, -1.0, 1.0])).tolist() == [0, 1, 0]
    assert relative_gains(np.array([4.0, np.inf]), np.array([3.0, np.inf])).tolist() == [0.25, 0]


@pytest.mark.parametrize("strategy", [Annealing, Evolution])
def test_needles_among_thousands_of_parameters_without_effect_are_found(strategy):
    """Forty of 4,000 parameters gain; 800 evaluations of single changes would find about eight of them."""
    needles = np.random.default_rng(5).choice(4000, 40, replace=False)
    searcher = start(strategy, Space([2] * 4000), 800)
    least = min(values.min() for _, values in play(searcher, lambda rows: 100.0 - rows[:, needles].sum(axis=1), 20))
    assert least <= 100 - 20


@pytest.mark.parametrize("strategy", [Annealing, Evolution])
def test_where_nearly_every_change_loses_candidates_have_single_changes(strategy):
    weights = np.random.default_rng(3).random(400) + 1e-3
    default = np.zeros(400, np.int8)
    default[::20] = 1
    searcher = start(strategy, Space([2] * 400), 1000, default=default)
    costs = [values for _, values in play(searcher, lambda rows: 10 + rows @ weights, 20)]
    assert min(map(np.min, costs)) < 10 + 0.5 * (default @ weights)
