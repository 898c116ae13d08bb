"""Annealing and evolution: batches, changes, what is found; and the random candidates that both begin with."""

from functools import partial

import numpy as np
import pytest

from bbo_strategies.annealing import Annealing, CostDifferences, RandomNeighbours
from bbo_strategies.evolution import Evolution
from bbo_strategies.mbo import ModelBasedOptimization
from bbo_strategies.opening import Opening
from bbo_suite import Space, Task, choice, product, sequence
from bbo_suite.testing import play, start

from .peers import joined

annealing = partial(start, Annealing)


def rugged(rows):
    """Cost a table of random numbers for each parameter and for each pair of neighbours."""
    rng = np.random.default_rng(5)
    own, pairs = rng.random((rows.shape[1], 4)), rng.random((rows.shape[1] - 1, 4, 4))
    columns = np.arange(rows.shape[1])
    return 1 + own[columns, rows].sum(axis=1) + pairs[columns[:-1], rows[:, :-1], rows[:, 1:]].sum(axis=1)


def optimum(d):
    """Return the least cost of `rugged`, by dynamic programming."""
    rng = np.random.default_rng(5)
    own, pairs = rng.random((d, 4)), rng.random((d - 1, 4, 4))
    best = own[0]
    for j in range(1, d):
        best = (best[:, None] + pairs[j - 1]).min(axis=0) + own[j]
    return 1 + best.min()


def rises(strategy, cost):
    """Return by how much the state got worse after each batch but the first, in which nothing is known."""
    return np.maximum(np.diff([strategy.cost for _ in play(strategy, cost)][2:]), 0)


def test_the_default_comes_first_and_a_batch_is_at_most_20_changes_of_one_state():
    batches = [configs for configs, _ in play(annealing(Space([4] * 30), 400), rugged, 100)]
    assert (batches[0][0] == 0).all() and {len(b) for b in batches} == {20}
    for batch in batches:
        for changed in (batch[1:] != batch[0]).any(axis=0), (batch[1:] != batch[0]).any(axis=1):
            assert changed.any()
    singles = (batches[0][1:] != 0).sum(axis=1)
    assert singles.min() == 1


def test_the_state_gets_worse_by_less_as_the_temperature_falls():
    early, _, late = np.array_split(rises(annealing(Space([4] * 30), 3000, heat=1.0), rugged), 3)
    assert late.sum() < early.sum() / 10


@pytest.mark.slow
def test_the_state_gets_worse_by_more_with_more_heat_and_never_without():
    without, some, much = (
        rises(annealing(Space([4] * 30), 2000, heat=h, cooling=1), rugged).sum() for h in (0, 0.2, 2)
    )
    assert without == 0 < 2 * some < much


def test_the_unit_of_costs_does_not_matter():
    def rows(unit):
        return [configs for configs, _ in play(annealing(Space([4] * 30), 600), lambda rows: unit * rugged(rows))]

    np.testing.assert_array_equal(rows(1.0), rows(2.0**-30))


@pytest.mark.slow
def test_the_optimum_of_a_rugged_problem_is_found():
    best = [min(v.min() for _, v in play(annealing(Space([4] * 40), 5000, seed), rugged)) for seed in range(3)]
    assert np.median(best) == pytest.approx(optimum(40), rel=0.005)


def test_costs_are_compared_by_their_median_difference():
    differences = CostDifferences()
    differences.learn(2.0, np.array([1.0, 5.0, 2.0, np.inf, 1e5]))
    assert not differences.logarithmic and differences.median == 3.0


def test_a_factor_of_a_million_makes_differences_logarithmic():
    differences = CostDifferences()
    differences.learn(1.0, np.array([np.e, np.e**-2, 1e18]))
    assert differences.logarithmic and differences.median == pytest.approx(2.0)


def test_costs_that_stand_for_failures_do_not_set_the_unit_of_others():
    space = Space([4] * 10)
    task = Task("t", space, np.zeros(10, space.dtype), "s")
    neighbours = RandomNeighbours(task, None, np.random.default_rng(0))
    changes = neighbours.draw(task.default, 20)
    neighbours.learn(task.default, 1000.0, changes, np.where(np.arange(len(changes)) % 4, 1e18, 1001.0))
    differences = neighbours.differences(1000.0, np.array([1e18, 2000.0, 4000.0])) / neighbours.scale
    assert differences == pytest.approx([1.0, differences[1], 2 * differences[1]])


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
    rows, costs = joined(batches)
    assert (rows[0] == 0).all() and (rows[1:21, :10] > 0).sum(axis=1).mean() > 6
    best = rows[:21][np.argmin(costs[:21])]
    assert (rows[21:26] != best).sum(axis=1).min() <= 3
    assert costs.min() < costs[:21].min()


evolution = partial(start, Evolution)


def weighted(rows):
    return 1 + rows @ np.linspace(-1, 2, rows.shape[1]) + rows.shape[1]


@pytest.mark.parametrize(("budget", "batch"), [(3010, 20), (1005, 10), (50, 1)])
def test_the_default_comes_first_in_batches_of_at_most_20_or_a_hundredth_of_the_budget(budget, batch):
    batches = [configs for configs, _ in play(evolution(Space([2] * 50), budget), weighted)]
    assert (batches[0][0] == 0).all() and {len(b) for b in batches[:-1]} == {batch}


def nearest(children, parents):
    """Return the number of parameters in which each child differs from the parent that is most like it."""
    return (children[:, None] != parents[None]).sum(axis=2).min(axis=1)


def test_children_are_changes_of_the_best_five():
    rows, values, singles = np.zeros((1, 200), np.int8), np.zeros(1), []
    for configs, costs in play(evolution(Space([3] * 200), 2000, crossover=0.0), weighted):
        if len(rows) > 100:
            best = rows[np.argsort(values, kind="stable")[:5]]
            singles.append((nearest(configs, best) == 1).mean())
        rows, values = np.concatenate([rows, configs]), np.append(values, costs)
    assert np.mean(singles) > 0.25


@pytest.mark.slow
def test_a_candidate_is_hardly_ever_proposed_twice():
    rows = np.concatenate([configs for configs, _ in play(evolution(Space([2] * 14), 2000), weighted)])
    assert len(np.unique(rows, axis=0)) > 0.8 * len(rows)  # in a space of 16384, with the population at one place


def test_the_optimum_of_a_separable_problem_is_found():
    best = min(values.min() for _, values in play(evolution(Space([2] * 60), 3000), weighted))
    assert best == weighted((np.linspace(-1, 2, 60) < 0).astype(int)[None])[0]


def test_values_that_pay_only_together_are_found():
    def fives(rows):
        """Reward parameters that are on together, five by five."""
        return 100 - (rows.reshape(len(rows), -1, 5).sum(axis=2) == 5).sum(axis=1)

    assert min(values.min() for _, values in play(evolution(Space([2] * 400), 600), fives)) < 60
