"""Changes: what is drawn is in range, allowed, and as often as it should be."""

import numpy as np
import pytest

from bbo_strategies.rl.changes import Changes
from bbo_strategies.rl.policy import VALUES
from bbo_suite import Kind, Space
from bbo_suite.strategy_rules import spaces


@pytest.mark.parametrize("name", spaces())
def test_all_candidates_are_allowed(name):
    space, rng = spaces()[name], np.random.default_rng(0)
    changes = Changes(space)
    for row in space.sample(20, rng) if len(changes) else ():
        children, rows, drawn = changes.draw(row, 20, changes.alive(row) / 1.0, 3.0, rng)
        assert space.allowed(space.check(children)).all()
        assert len(rows) == len(drawn) and rows.max() < 20


def test_a_change_sets_its_parameter_to_its_value_and_nothing_else():
    space = Space([2, 5, 1, 9])
    rng = np.random.default_rng(0)
    changes, row = Changes(space), np.array([1, 2, 0, 4])
    children, rows, drawn = changes.draw(row, 50, changes.alive(row) / 1.0, 2.0, rng)
    wanted = np.repeat(row[None], 50, axis=0)
    wanted[rows, changes.parameter[drawn]] = changes.low[drawn]
    assert (children == wanted).all()
    assert (children != row).any(axis=1).all()


def test_changes_are_drawn_as_often_as_they_are_likely():
    space = Space(np.full(30, 3))
    rng = np.random.default_rng(0)
    changes, row = Changes(space), np.zeros(30, np.int64)
    chances = changes.alive(row) * np.exp(changes.prior) * np.where(changes.parameter < 3, 5.0, 1.0)
    _, _, drawn = changes.draw(row, 20_000, chances, 100.0, rng)
    counts = np.bincount(drawn, minlength=len(changes)) / len(drawn)
    assert np.allclose(counts, chances / chances.sum(), atol=0.004)


@pytest.mark.parametrize("size", [65, 100, 1000])
def test_bins_cover_the_values_of_large_parameters(size):
    space = Space([size], [Kind.SCALE])
    changes, row = Changes(space), np.array([size // 2])
    assert len(changes) == VALUES
    chances = changes.alive(row) * np.exp(changes.prior)
    children, _, _ = changes.draw(row, 20_000, chances, 100.0, np.random.default_rng(0))
    seen = np.bincount(children[:, 0], minlength=size)
    assert seen[size // 2] == 0
    assert (np.delete(seen, size // 2) > 0).all()


def test_a_slot_of_a_permutation_swaps():
    space = Space(np.full(5, 5), np.full(5, Kind.SLOT), np.zeros(5, int), permutations=[0])
    changes, row = Changes(space), np.arange(5)
    children, rows, drawn = changes.draw(row, 100, changes.alive(row) / 1.0, 100.0, np.random.default_rng(0))
    assert ((children != row).sum(axis=1) <= 2 * np.bincount(rows, minlength=100)).all()
    assert (np.sort(children, axis=1) == row).all()
    single = np.flatnonzero(np.bincount(rows, minlength=100)[rows] == 1)
    assert (children[rows[single], changes.parameter[drawn[single]]] == changes.low[drawn[single]]).all()
