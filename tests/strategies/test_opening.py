import numpy as np
import pytest

from bbo_strategies.annealing import Annealing
from bbo_strategies.evolution import Evolution
from bbo_strategies.mbo import ModelBasedOptimization
from bbo_strategies.opening import Opening
from bbo_suite import Space, Task, choice, product, sequence
from bbo_suite.testing import play, start

PASSES = product(sequence("pass", 10, "abcdef"), choice("level", (1, 2)))


def task(default, space=PASSES):
    return Task("toy", space, np.array(default), "bytes")


def test_a_nearly_empty_sequence_is_opened_with_a_fifth_of_the_budget_and_at_most_20():
    rng = np.random.default_rng(0)
    empty = task([3, *[0] * 10])
    assert [Opening(empty, budget, rng).left for budget in (4, 50, 10_000)] == [1, 11, 21]
    opening = Opening(empty, 50, rng)
    rows = np.concatenate([opening.draw(4), opening.draw(20)])
    assert len(rows) == 11 and (rows[0] == empty.default).all() and len(np.unique(rows[1:], axis=0)) == 10
    assert not len(opening.draw(5)) and not opening.drawn


@pytest.mark.parametrize(
    "plain",
    [
        task([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 0]),
        task([0] * 8, Space([3] * 8)),
        task([0], product(sequence("s", 1, "ab"))),
    ],
    ids=["full", "no sequence", "one slot"],
)
def test_nothing_is_drawn_where_the_default_says_something(plain):
    opening = Opening(plain, 100, np.random.default_rng(0))
    assert not opening.left and not len(opening.draw(20))


@pytest.mark.parametrize("searched", [Annealing, Evolution, ModelBasedOptimization])
def test_a_search_goes_on_from_the_best_of_them(searched):
    wanted = np.arange(10) % 6
    cost = lambda rows: 1.0 + (rows[:, :10] != wanted).sum(axis=1)  # noqa: E731
    batches = list(play(start(searched, PASSES, 100), cost, 10))
    rows, costs = (np.concatenate(each) for each in zip(*batches, strict=True))
    assert (rows[0] == 0).all() and (rows[1:21, :10] > 0).sum(axis=1).mean() > 6
    best = rows[:21][np.argmin(costs[:21])]
    assert (rows[21:26] != best).sum(axis=1).min() <= 3
    assert costs.min() < costs[:21].min()
