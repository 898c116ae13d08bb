"""Exact minimisation against all candidates of small graphs."""

import itertools

import numpy as np
import pytest

from bbo_suite.core.task import Capacity
from bbo_suite.solvers import PairCosts, minimise

SIZES = np.array([3, 2, 4, 1, 3])
EDGES = np.array([[0, 1], [1, 2], [2, 0], [4, 2], [3, 4], [0, 1]])
EVERY = np.array(list(itertools.product(*map(range, SIZES))))
FIRSTS = np.concatenate([[0], np.cumsum(SIZES)])


def graph(seed, impossible=0.2):
    rng = np.random.default_rng(seed)
    areas = SIZES[EDGES].prod(axis=1)
    tables = rng.integers(0, 6, areas.sum()).astype(float) ** 3
    tables[rng.random(len(tables)) < impossible] = np.inf
    return PairCosts(SIZES, rng.integers(0, 50, FIRSTS[-1]) * 1.0, *EDGES.T, np.cumsum(areas) - areas, tables)


def totals(costs):
    nodes = costs.nodes[FIRSTS[:-1] + EVERY].sum(axis=1)
    places = costs.starts + EVERY[:, costs.first] * SIZES[costs.second] + EVERY[:, costs.second]
    return nodes + costs.tables[places].sum(axis=1)


def capacity(seed, limit):
    usages = np.random.default_rng(seed).integers(1, 9, FIRSTS[-1])
    return Capacity(FIRSTS, usages, np.array([0, 0, 1, 1, 2]), np.array([2, 2, 3, 1, 4]), limit)


def peaks(limited):
    alive = np.array([(limited.begins <= t) & (t < limited.ends) for t in range(4)])
    return (limited.usages[FIRSTS[:-1] + EVERY] @ alive.T).max(axis=1)


def cost_of(config, costs):
    return totals(costs)[(config == EVERY).all(axis=1)][0]


@pytest.mark.parametrize("seed", range(5))
def test_the_least_cost_is_found_and_proven(seed):
    costs = graph(seed)
    found = minimise(costs, None)
    assert cost_of(found.config, costs) == totals(costs).min()
    assert found.bound == pytest.approx(totals(costs).min())


@pytest.mark.parametrize("seed", range(5))
def test_a_capacity_is_kept_at_every_step(seed):
    costs = graph(seed)
    used = peaks(capacity(seed, 0))
    for limit in np.unique(used)[[0, 1, -1]]:
        within = totals(costs)[used <= limit].min()
        found = minimise(costs, capacity(seed, int(limit)))
        assert found.bound == (np.inf if np.isinf(within) else pytest.approx(within))
        if np.isinf(within):
            assert found.config is None
        else:
            assert cost_of(found.config, costs) == within
            assert used[(found.config == EVERY).all(axis=1)] <= limit


def test_costs_of_all_sizes_are_told_apart():
    costs = graph(1, impossible=0)
    large = costs._replace(nodes=costs.nodes * 1e11 + np.arange(FIRSTS[-1]), tables=costs.tables * 1e11)
    found = minimise(large, None)
    nodes = large.nodes[FIRSTS[:-1] + EVERY].sum(axis=1) + totals(costs._replace(nodes=0 * costs.nodes)) * 1e11
    assert nodes[(found.config == EVERY).all(axis=1)][0] <= nodes.min() * (1 + 1e-11)


def test_values_of_a_capacity_may_belong_to_other_nodes():
    """Node 0 of the capacity follows node 4 of the graph, the other way round."""
    costs, limited = graph(2, impossible=0), capacity(2, 14)
    targets = np.arange(FIRSTS[-1])
    targets[:3] = FIRSTS[4] + np.array([2, 1, 0])
    alive = np.array([(limited.begins <= t) & (t < limited.ends) for t in range(4)])
    rows = EVERY.copy()
    rows[:, 0] = 2 - EVERY[:, 4]
    used = (limited.usages[FIRSTS[:-1] + rows] @ alive.T).max(axis=1)
    found = minimise(costs, limited, targets)
    assert cost_of(found.config, costs) == totals(costs)[used <= 14].min()
