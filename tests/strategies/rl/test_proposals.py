"""Proposals: the values that they set, how they are drawn, and that none comes twice."""

import numpy as np
import pytest

from bbo_strategies.rl.policy import BOUND
from bbo_strategies.rl.proposals import GroupTests, ParameterValues, draw, log_softmax, proposals_of
from bbo_suite import Space

RNG = np.random.default_rng(0)


def test_a_score_is_the_preference_for_the_new_values_over_the_old():
    space = Space([3, 1, 4])
    values, state = ParameterValues(space), np.array([1, 0, 3])
    configs = np.array([[2, 0, 0], [1, 0, 3], [0, 0, 3]])
    made = proposals_of(configs, state, np.array([0, 1, 2]), np.ones(3, bool), values)
    worth, weights = np.array([0.1, 0.2, 0.4, 0.0, 0.1, 0.2, 0.3]), np.array([0.0, 0.5, 0.0, 0.0])
    wanted = BOUND * np.tanh(np.array([(0.4 - 0.2 + 0.0 - 0.3) / np.sqrt(2), 0.5, 0.1 - 0.2]) / BOUND)
    assert np.allclose(made.scores(worth, weights, BOUND), wanted)


def test_the_first_draw_has_the_probabilities_of_the_policy():
    is_open = np.array([True, True, False, True])
    logs = log_softmax(np.array([0.0, 1.0, 5.0, 2.0]), is_open)
    assert np.exp(logs).sum() == pytest.approx(1) and logs[2] == -np.inf
    drawn = np.array([draw(logs, 3, RNG) for _ in range(4000)])
    assert np.allclose(np.bincount(drawn[:, 0], minlength=4) / 4000, np.exp(logs), atol=0.03)
    assert (np.sort(drawn, axis=1) == [0, 1, 3]).all()


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


def test_the_tests_end_when_nothing_pays():
    tests, state = GroupTests(Space(np.full(8, 2)), np.ones(8, np.int64), np.zeros(8), 3), np.zeros(8, np.int64)
    for groups in (1, 2, 0):
        rows = tests.draw(state, 2)
        assert len(rows) == groups
        tests.learn(1.0, np.full(len(rows), 2.0))
