from functools import partial

import numpy as np
import pytest

from bbo_strategies.annealing import Annealing
from bbo_suite import Space
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


def test_the_default_comes_first_and_a_batch_is_at_most_20_changes_of_one_state():
    batches = [configs for configs, _ in play(player(Space([4] * 30), 400), rugged, 100)]
    assert (batches[0][0] == 0).all() and {len(b) for b in batches} == {20}
    for batch in batches:
        for changed in (batch[1:] != batch[0]).any(axis=0), (batch[1:] != batch[0]).any(axis=1):
            assert changed.any()
    singles = (batches[0][1:] != 0).sum(axis=1)
    assert singles.min() == 1


def test_the_temperature_falls_geometrically_over_the_budget():
    strategy = player(Space([4] * 30), 6000, cooling=100)
    temperatures = [strategy._temperature for _ in play(strategy, rugged)]
    falling = np.array(temperatures[len(temperatures) // 2 :])  # the scale is known by then
    assert falling[1:] / falling[:-1] == pytest.approx(np.full(len(falling) - 1, 100 ** (-20 / 6000)))
    assert temperatures[-1] == pytest.approx(falling[0] / 10, rel=0.02)


@pytest.mark.parametrize(("unit", "heat"), [(1.0, 1.0), (1e-9, 1.0), (1.0, 2.0)])
def test_the_temperature_is_in_cost_differences_of_changes_that_have_an_effect(unit, heat):
    strategy = player(Space([2] * 40), 4000, heat=heat, cooling=1)
    for _ in play(strategy, lambda rows: unit * (1 + rows[:, :20].sum(axis=1))):  # half of them have none
        pass
    assert unit * heat <= strategy._temperature <= 3 * unit * heat


def test_the_temperature_is_lower_where_the_budget_is_small_for_the_space():
    ample, scarce = (player(Space([2] * 200), budget, cooling=1) for budget in (2000, 500))
    for strategy in (ample, scarce):
        for _ in play(strategy, lambda rows: 1.0 + rows[:, ::2].sum(axis=1) - 0.5 * rows[:, 1::2].sum(axis=1)):
            pass
    assert scarce._temperature == pytest.approx(ample._temperature / 16, rel=0.5)


def test_without_heat_the_state_never_gets_worse():
    strategy, costs = player(Space([4] * 40), 3000, heat=0.0), []
    for _ in play(strategy, rugged):
        costs.append(strategy.cost)
    assert (np.diff(costs[1:]) <= 0).all()  # nothing is known in the first batch


def test_the_optimum_of_a_rugged_problem_is_found():
    best = [min(v.min() for _, v in play(player(Space([4] * 40), 5000, seed), rugged)) for seed in range(3)]
    assert np.median(best) == pytest.approx(optimum(40), rel=0.005)


def test_the_optimum_of_a_separable_problem_is_found():
    weights = np.random.default_rng(3).normal(size=100)
    strategy = player(Space([2] * 100), 2000)
    best = min(values.min() for _, values in play(strategy, lambda rows: 100 + rows @ weights))
    assert best == pytest.approx(100 + weights[weights < 0].sum())


def test_a_plateau_does_not_fill_the_list_of_differences():
    search = start(Annealing, Space(np.full(200, 2)), 1000)
    for _ in range(100):
        search.tell(rows := search.ask(1), np.ones(len(rows)))
    assert search._neighbours.scale == 0 and not search._neighbours._differences._known
