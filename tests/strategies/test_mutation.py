import numpy as np
import pytest

from bbo_strategies.mutation import COPY, RUN, SINGLE, AdaptiveMutation
from bbo_suite import Moves, Space

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


def test_at_first_all_operators_are_equally_frequent_and_every_candidate_changes(made):
    before, after, _, kinds = made
    assert (before != after).any(axis=1).all()
    assert (abs(np.bincount(kinds) / len(kinds) - 1 / 3) < 0.05).all()


def test_a_single_change_changes_only_its_parameter(made):
    before, after, columns, kinds = made
    places, at = np.nonzero((before != after)[kinds == SINGLE])
    assert (np.bincount(places) == 1).all() and (at == columns[kinds == SINGLE]).all()


def test_a_run_takes_one_value_and_a_copy_the_values_of_another_stretch(made):
    before, after, columns, kinds = made
    lengths = {RUN: [], COPY: []}
    for old, new, column, kind in zip(before, after, columns, kinds, strict=True):
        if kind in lengths:
            changed = np.flatnonzero(old != new)
            assert changed[0] >= column and changed[-1] < column + 50
            stretch = new[column : changed[-1] + 1]
            windows = np.lib.stride_tricks.sliding_window_view(old, len(stretch))
            assert (stretch == stretch[0]).all() if kind == RUN else (windows == stretch).all(axis=1).any()
            lengths[kind].append(len(stretch))
    assert all(np.median(known) < 6 and max(known) > 20 for known in lengths.values())  # a heavy tail


@pytest.mark.parametrize("paying", [SINGLE, RUN, COPY])
def test_the_shares_follow_recent_success(mutation, paying):
    kinds = np.arange(99) % 3
    for kind in (paying, (paying + 1) % 3):
        for _ in range(100):
            mutation.learn(kinds, kinds == kind)
        assert mutation.shares[kind] > 0.8 and mutation.shares.sum() == pytest.approx(1)
        assert mutation.shares.min() > 0.04  # a kind may pay later


def test_the_shares_stay_equal_if_no_operator_or_every_operator_succeeds(mutation):
    for paying in (False, True):
        for _ in range(30):
            mutation.learn(np.arange(99) % 3, np.full(99, paying))
        assert mutation.shares == pytest.approx(np.full(3, 1 / 3))


def test_a_copy_in_a_uniform_candidate_becomes_a_single_change(mutation):
    configs = np.zeros((200, D), np.int8)
    kinds = mutation.change(configs, np.arange(200), np.full(200, 100))
    assert (configs[kinds == COPY].sum(axis=1) > 0).all() and (configs[kinds == COPY] > 0).sum(axis=1).max() == 1


def test_the_shares_are_even_after_so_long_without_success_that_gains_underflow(mutation):
    kinds, rng = np.repeat([SINGLE, RUN, COPY], [20, 30, 40]), np.random.default_rng(0)
    for better in (kinds == SINGLE, *[np.zeros(90, bool)] * 15_000):
        mutation.learn(kinds, better)
    assert mutation.shares == pytest.approx(np.full(3, 1 / 3))
    chosen = mutation.change(rng.integers(0, 3, (300, D)), np.arange(300), np.full(300, 9))
    assert np.bincount(chosen, minlength=3).min() > 50
