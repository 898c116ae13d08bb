"""Group tests: what is tried, in which order, and what becomes of a group that does not pay."""

import numpy as np

from bbo_strategies.rl.group_tests import GroupTests
from bbo_suite import Space


def changed(rows):
    return [set(np.flatnonzero(row)) for row in rows]


def test_what_is_preferred_most_is_tried_together_and_halved():
    margins = np.array([3.0, 2.0, 2.5, 2.2, -1.0, -1.5, -9.0, -np.inf])
    tests, state = GroupTests(Space(np.full(8, 2)), np.ones(8, np.int64), margins, 9), np.zeros(8, np.int64)
    assert changed(tests.draw(state, 9)) == [{0, 1, 2, 3}, {4, 5}]
    tests.learn(1.0, np.array([2.0, 0.5]))
    assert changed(tests.draw(state, 9)) == [{0, 2}, {1, 3}]
    tests.learn(1.0, np.array([1.0, 1.0]))
    assert not len(tests.draw(state, 9)), "what costs nothing is left out"


def test_groups_are_tried_on_the_state_with_the_values_wanted():
    tests = GroupTests(Space(np.full(3, 4)), np.array([3, 2, 1]), np.array([2.0, 2.0, -np.inf]), 9)
    assert tests.draw(np.array([0, 0, 2]), 1).tolist() == [[3, 2, 2]]


def test_single_values_are_not_tried_again():
    tests = GroupTests(Space(np.full(1, 2)), np.ones(1, np.int64), np.zeros(1), 9)
    tests.draw(np.zeros(1, np.int64), 1)
    tests.learn(1.0, np.array([2.0]))
    assert not len(tests.draw(np.zeros(1, np.int64), 1))


def test_the_tests_end_when_nothing_pays():
    tests, state = GroupTests(Space(np.full(8, 2)), np.ones(8, np.int64), np.zeros(8), 3), np.zeros(8, np.int64)
    for groups in (1, 2, 0):
        rows = tests.draw(state, 2)
        assert len(rows) == groups
        tests.learn(1.0, np.full(len(rows), 2.0))
