from functools import partial

import numpy as np
import pytest

from bbo_strategies.evolution import Evolution
from bbo_suite import Space
from bbo_suite.testing import play, start

player = partial(start, Evolution)


def weighted(rows):
    return 1 + rows @ np.linspace(-1, 2, rows.shape[1]) + rows.shape[1]


@pytest.mark.parametrize(("budget", "batch"), [(3010, 20), (1005, 10), (50, 1)])
def test_the_default_comes_first_in_batches_of_at_most_20_or_a_hundredth_of_the_budget(budget, batch):
    batches = [configs for configs, _ in play(player(Space([2] * 50), budget), weighted)]
    assert (batches[0][0] == 0).all() and {len(b) for b in batches[:-1]} == {batch}


def nearest(children, parents):
    """Return the number of parameters in which each child differs from the parent that is most like it."""
    return (children[:, None] != parents[None]).sum(axis=2).min(axis=1)


def test_children_are_changes_of_the_best_five():
    rows, values, singles = np.zeros((1, 200), np.int8), np.zeros(1), []
    for configs, costs in play(player(Space([3] * 200), 2000, crossover=0.0), weighted):
        if len(rows) > 100:
            best = rows[np.argsort(values, kind="stable")[:5]]
            singles.append((nearest(configs, best) == 1).mean())
        rows, values = np.concatenate([rows, configs]), np.append(values, costs)
    assert np.mean(singles) > 0.25


def test_a_candidate_is_hardly_ever_proposed_twice():
    rows = np.concatenate([configs for configs, _ in play(player(Space([2] * 14), 2000), weighted)])
    assert len(np.unique(rows, axis=0)) > 0.8 * len(rows)  # in a space of 16384, with the population at one place


def test_the_optimum_of_a_separable_problem_is_found():
    best = min(values.min() for _, values in play(player(Space([2] * 60), 3000), weighted))
    assert best == weighted((np.linspace(-1, 2, 60) < 0).astype(int)[None])[0]


def test_values_that_pay_only_together_are_found():
    def fives(rows):
        """Reward parameters that are on together, five by five."""
        return 100 - (rows.reshape(len(rows), -1, 5).sum(axis=2) == 5).sum(axis=1)

    assert min(values.min() for _, values in play(player(Space([2] * 400), 600), fives)) < 60
