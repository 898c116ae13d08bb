import itertools

import numpy as np
import pytest

from bbo_strategies.adapters.adapter import Coding
from bbo_suite import Constraint, Moves, Space, choice, product, scale
from bbo_suite.conformance.toy_tasks import spaces


@pytest.mark.parametrize("name", spaces())
def test_any_indices_decode_to_allowed_candidates(name):
    space, rng = spaces()[name], np.random.default_rng(0)
    coding = Coding(space, space.sample(1, rng)[0])
    free = rng.integers(-1, coding.sizes + 1, (300, len(coding.sizes)))
    configs = coding.decode(free)
    assert space.allowed(space.check(configs)).all()


@pytest.mark.parametrize("name", spaces())
def test_allowed_candidates_decode_to_themselves(name):
    space, rng = spaces()[name], np.random.default_rng(0)
    rows = space.sample(200, rng)
    coding = Coding(space, rows[0])
    assert np.array_equal(coding.decode(rows[:, Moves(space).movable]), rows)
    assert np.array_equal(coding.decode(coding.default[None])[0], rows[0])


def test_a_forbidden_combination_becomes_the_nearest_row():
    tied = Constraint((0, 1), lambda rows: rows.sum(axis=1) < 4)
    space = product(scale("x", range(4)), scale("y", range(5)), choice("c", "abc"), constraints=[tied])
    coding = Coding(space, np.zeros(3, int))
    table = [row for row in itertools.product(range(4), range(5)) if sum(row) < 4]
    for x, y in itertools.product(range(4), range(5)):
        apart = [((x != a) + (y != b), abs(x - a) + abs(y - b)) for a, b in table]
        a, b, _ = coding.decode(np.array([[x, y, 1]]))[0].tolist()
        assert ((x != a) + (y != b), abs(x - a) + abs(y - b)) == min(apart)


def test_parameters_that_cannot_change_are_left_out():
    space = Space([1, 5, 1, 2])
    coding = Coding(space, np.array([0, 3, 0, 1]))
    assert coding.sizes.tolist() == [5, 2]
    assert coding.decode(np.array([[4, 0]])).tolist() == [[0, 4, 0, 0]]
