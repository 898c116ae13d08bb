from functools import partial

import numpy as np
import pytest

from bbo_strategies.annealing import Annealing, CostDifferences, RandomNeighbours
from bbo_suite import Space, Task
from bbo_suite.testing import play, start

player = partial(start, Annealing)


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
    batches = [configs for configs, _ in play(player(Space([4] * 30), 400), rugged, 100)]
    assert (batches[0][0] == 0).all() and {len(b) for b in batches} == {20}
    for batch in batches:
        for changed in (batch[1:] != batch[0]).any(axis=0), (batch[1:] != batch[0]).any(axis=1):
            assert changed.any()
    singles = (batches[0][1:] != 0).sum(axis=1)
    assert singles.min() == 1


def test_the_state_gets_worse_by_less_as_the_temperature_falls():
    early, _, late = np.array_split(rises(player(Space([4] * 30), 3000, heat=1.0), rugged), 3)
    assert late.sum() < early.sum() / 10


def test_the_state_gets_worse_by_more_with_more_heat_and_never_without():
    without, some, much = (rises(player(Space([4] * 30), 2000, heat=h, cooling=1), rugged).sum() for h in (0, 0.2, 2))
    assert without == 0 < 2 * some < much


def test_the_unit_of_costs_does_not_matter():
    def rows(unit):
        return [configs for configs, _ in play(player(Space([4] * 30), 600), lambda rows: unit * rugged(rows))]

    np.testing.assert_array_equal(rows(1.0), rows(2.0**-30))


def test_the_optimum_of_a_rugged_problem_is_found():
    best = [min(v.min() for _, v in play(player(Space([4] * 40), 5000, seed), rugged)) for seed in range(3)]
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
