"""Iterated local search climbs, and its crossover takes the better of each component."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_strategies.graphs import differing, pairs
from bbo_suite import Space, choice, product
from bbo_suite.conformance.toy_tasks import chain, uneven
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start


def booleans(d: int) -> Space:
    return product(*(choice(f"c{i}", "ab") for i in range(d)))


def search(d: int, budget: int, structure=None, **options):
    space = booleans(d)
    default = np.ones(d, np.int64)
    structure = structure or chain(space)
    return start(
        Registry().strategy("published:ils-px"), space, budget, structure=structure, default=default, **options
    )


def test_parameters_that_differ_fall_into_components():
    differs = np.array([1, 1, 0, 1, 0, 0, 1, 1], bool)
    structure = chain(booleans(8))
    labels = differing(*pairs(structure.starts, structure.neighbours), differs)
    assert labels.tolist() == [0, 0, -1, 1, -1, -1, 2, 2]


def test_the_first_climb_ends_at_the_optimum_of_a_sum():
    batches = list(play(search(12, 13), lambda rows: rows.sum(axis=1).astype(float), 5))
    assert min(values.min() for _, values in batches) == 0


def test_crossover_takes_the_better_of_each_component():
    strategy = search(12, 400)
    best, found = np.zeros((1, 12), np.int64), np.zeros((1, 12), np.int64)
    found[0, [0, 1, 4, 8, 9]] = 1
    weights = np.array([-3, 1, 0, 0, 5, 0, 0, 0, -1, 0, 0, 0])
    crossing = strategy.cross((best, best @ weights * 1.0), (found, found @ weights * 1.0))
    rows = next(crossing)
    while True:
        try:
            rows = crossing.send((rows, rows @ weights * 1.0))
        except StopIteration as end:
            winner, costs = end.value
            break
    assert np.flatnonzero(winner[0]).tolist() == [0, 1, 8, 9] and costs[0] == -3


def test_it_is_better_than_its_first_climb():
    batches = list(play(search(40, 800), uneven, 20))
    costs = np.concatenate([values for _, values in batches])
    assert costs.min() == pytest.approx(1)
