"""A strategy in a loop of one's own: `bbo_suite.optimizer`."""

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Constraint, Strategy, choice, permutation, product, scale

SPACE = product(scale("tile", [8, 16, 32, 64]), choice("order", ["ij", "ji"]), scale("unroll", [1, 2, 4]))


def cost(values):
    return abs(values["tile"] - 32) + values["unroll"] + (values["order"] == "ij")


@pytest.mark.parametrize(
    "strategy",
    ["annealing", "evolution", "random", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mbo", "local"))],
)
def test_it_finds_the_best_of_a_small_space(strategy):
    optimizer = bbo_suite.optimizer(strategy, SPACE, budget=200, seed=1)
    while not optimizer.done:
        candidates = optimizer.ask(4)
        if candidates:
            optimizer.tell(candidates, [cost(each) for each in candidates])
    assert optimizer.best == {"tile": 32, "order": "ji", "unroll": 1} and optimizer.best_cost == 1


def test_rows_and_dictionaries_give_the_same_search():
    asked = []
    for rows in (True, False):
        optimizer = bbo_suite.optimizer("annealing", SPACE, budget=60, default={"tile": 8, "order": "ij", "unroll": 4})
        own = []
        while not optimizer.done:
            found = optimizer.ask_rows(5) if rows else optimizer.ask(5)
            own += [SPACE.describe(row) for row in found] if rows else found
            optimizer.tell(found, [cost(SPACE.describe(row) if rows else row) for row in found])
        asked.append(own)
    assert asked[0] == asked[1] and asked[0][0] == {"tile": 8, "order": "ij", "unroll": 4}


def test_an_exhausted_space_ends_with_done():
    optimizer = bbo_suite.optimizer("exhaustive", SPACE, budget=1000)
    count = 0
    while not optimizer.done:
        rows = optimizer.ask_rows(100)
        count += len(rows)
        if len(rows):
            optimizer.tell(rows, np.ones(len(rows)))
    assert count == SPACE.cardinality and len(optimizer.ask_rows(5)) == 0 and optimizer.ask() == []


def test_forbidden_candidates_are_not_shown_and_use_up_the_budget():
    tied = Constraint((0, 1), lambda rows: rows.sum(axis=1) % 2 == 0)
    space = product(scale("x", range(6)), scale("y", range(6)), permutation("p", "abc"), constraints=[tied])

    class Blind(Strategy):
        def ask(self, n):
            return np.column_stack([self.rng.integers(0, 6, (n, 2)), np.tile([0, 1, 2], (n, 1))])

    optimizer, shown = bbo_suite.optimizer(Blind, space, budget=40), 0
    while not optimizer.done:
        rows = optimizer.ask_rows(4)
        assert space.allowed(rows).all()
        shown += len(rows)
        if len(rows):
            optimizer.tell(rows, np.ones(len(rows)))
    assert 5 < shown < 40


def test_mistakes_are_named():
    optimizer = bbo_suite.optimizer("random", SPACE, budget=10)
    rows = optimizer.ask_rows(2)
    with pytest.raises(bbo_suite.UserError, match="tell the costs"):
        optimizer.ask()
    for candidates, costs, words in (
        (rows[::-1], [1, 2], "exactly"),
        (rows, [1], "one cost for each"),
        (rows, [1, np.nan], "one cost for each"),
        ([{"tile": 8}], [1], "missing"),
        ([{"tile": 8, "order": "ij", "unroll": 1, "z": 0}], [1], "no parameter"),
        ([{"tile": 9, "order": "ij", "unroll": 1}], [1], "no value 9"),
    ):
        with pytest.raises(bbo_suite.UserError, match=words):
            optimizer.tell(candidates, costs)
    with pytest.raises(bbo_suite.UserError, match="no strategy"):
        bbo_suite.optimizer("anealing", SPACE, budget=10)
    with pytest.raises(bbo_suite.UserError, match="heat"):
        bbo_suite.optimizer("annealing", SPACE, budget=10, options={"heta": 1.0})
    with pytest.raises(bbo_suite.UserError, match="budget"):
        bbo_suite.optimizer("annealing", SPACE, budget=0)
