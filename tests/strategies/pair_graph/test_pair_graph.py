"""Exact minimisation on small graphs of pair costs, and the search on what parts tell."""

import itertools

import numpy as np
import pytest

from bbo_strategies.graybox import GrayBox, GrayBoxOptions
from bbo_strategies.pair_graph.bounds import Ascent, Multipliers, Relaxation, Remaining, joined, used
from bbo_strategies.pair_graph.elimination import eliminate, work
from bbo_strategies.pair_graph.network import IMPOSSIBLE, Pairs, active_values, network, total
from bbo_strategies.pair_graph.pair_search import Exploration, Minimiser, cross
from bbo_suite import Parts, Space, Structure, Task, Told
from bbo_suite.core.task import Capacity
from bbo_suite.parts.table import PairDecomposition

pytestmark = pytest.mark.slow  # twenty seconds of compiling
EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [1, 3], [4, 5], [2, 5]])
SIZES = np.array([3, 2, 4, 3, 1, 3])


def graph(seed):
    rng = np.random.default_rng(seed)
    areas = SIZES[EDGES].prod(axis=1)
    tables = rng.integers(0, 50, areas.sum()).astype(float)
    tables[rng.random(len(tables)) < 0.15] = IMPOSSIBLE
    nodes = rng.integers(0, 50, SIZES.sum()).astype(float)
    usages = rng.integers(1, 9, SIZES.sum()).astype(float)
    firsts = np.concatenate([[0], np.cumsum(SIZES)])
    return Pairs(SIZES, firsts, nodes, usages, *EDGES.T.copy(), np.cumsum(areas) - areas, tables)


def every():
    return np.array(list(itertools.product(*map(range, SIZES))))


@pytest.mark.parametrize("seed", range(4))
def test_elimination_finds_the_optimum_if_no_table_is_too_large(seed):
    pairs = graph(seed)
    net = network(pairs, np.ones(len(pairs.nodes), bool))
    config = np.zeros(len(SIZES), np.int64)
    assert eliminate(net, net.nodes, config, 1e6, 0.5, np.random.default_rng(seed), work(net, 10_000)) == 0
    assert total(pairs, config) == min(total(pairs, row) for row in every())


@pytest.mark.parametrize("seed", range(4))
def test_small_tables_keep_nodes_and_never_make_it_worse(seed):
    pairs = graph(seed)
    net = network(pairs, np.ones(len(pairs.nodes), bool))
    config = np.random.default_rng(seed).integers(0, SIZES)
    before = total(pairs, config)
    for turn in range(5):
        kept = eliminate(net, net.nodes, config, 8, 0.5, np.random.default_rng(turn), work(net, 10_000))
        assert kept > 0
        assert total(pairs, config) <= before
        before = total(pairs, config)


def test_nodes_that_determine_each_other_are_one():
    """Nodes 0, 3 and 5 have three values; node 3 goes with another one of node 0, in both of their edges."""
    pairs = graph(0)
    table = np.full((3, 3), IMPOSSIBLE)
    table[np.arange(3), [2, 0, 1]] = [4.0, 5.0, 6.0]
    tables = pairs.tables.copy()
    tables[pairs.starts[3] : pairs.starts[3] + 9] = table.ravel()
    pairs = pairs._replace(tables=tables)
    net = network(pairs, np.ones(len(pairs.nodes), bool))
    small = joined(net)
    assert small.owners[0] == small.owners[3]
    assert len(small.leaders) == len(SIZES) - 1
    nodes = small.nodes(net.nodes)
    for row in every():
        config = row[small.leaders]
        whole = small.expand(config)
        assert whole[3] == [2, 0, 1][row[0]]
        of_edges = small.network.starts + config[small.network.first] * small.network.sizes[small.network.second]
        cost = nodes[small.network.firsts[:-1] + config].sum()
        cost += small.network.tables[of_edges + config[small.network.second]].sum()
        assert min(cost, IMPOSSIBLE) == min(total(pairs, whole), IMPOSSIBLE)


def test_values_that_are_left_out_are_in_no_better_candidate():
    left_out = 0
    for seed in range(8):
        pairs = graph(seed)
        costs = np.array([total(pairs, row) for row in every()])
        kept = active_values(pairs, costs.min())
        left_out += (~kept).sum()
        assert costs[kept[pairs.firsts[:-1] + every()].all(axis=1)].min() == costs.min()
    assert left_out > 8


def parts_of(pairs):
    """Return a decomposition with the nodes and edges of a graph as parts, and the cost of each key."""
    d, m = len(SIZES), len(EDGES)
    starts = np.concatenate([pairs.firsts[:-1], pairs.firsts[-1] + pairs.starts])
    second = np.concatenate([np.full(d, -1), EDGES[:, 1]])
    first = np.concatenate([np.arange(d), EDGES[:, 0]])
    costs = np.concatenate([pairs.nodes, pairs.tables])
    return PairDecomposition(SIZES, first, second, starts, np.zeros((d + m, 1)), ("zero",)), costs


def test_exploration_soon_knows_all_parts():
    parts, costs = parts_of(graph(0))
    exploration = Exploration(parts, np.random.default_rng(0))
    found = [exploration.draw() for _ in range(20)]
    keys = np.unique(parts.describe(np.array([config for config, _ in found])).keys)
    assert sum(new for _, new in found) == len(keys) == len(costs)
    assert len(found) < costs.size


@pytest.mark.parametrize("seed", range(3))
def test_graybox_finds_the_optimum_from_the_costs_of_parts(seed):
    pairs = graph(seed)
    parts, costs = parts_of(pairs)
    costs = np.where(costs >= IMPOSSIBLE, np.inf, costs)
    near = [np.unique(EDGES[(i == EDGES).any(axis=1)]) for i in range(len(SIZES))]
    near = [row[row != i] for i, row in enumerate(near)]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in near])])
    features = np.ones((len(SIZES), 1), np.float32)
    structure = Structure(starts, np.concatenate(near).astype(np.int32), features, ("one",), parts=parts)
    task = Task("testing/pairs", Space(SIZES), np.zeros(len(SIZES), np.int8), "cost", structure)
    search, best, spent = GrayBox(task, 80, np.random.default_rng(seed), GrayBoxOptions()), np.inf, 0
    while spent < 80:
        rows = search.ask(min(20, 80 - spent))
        if not len(rows):  # the best is proven
            break
        described = parts.describe(rows)
        told = Parts(described.starts, described.keys, described.counts, costs[described.keys.astype(int)])
        values = told.sums()
        search.receive(Told(rows, values, told))
        best, spent = min(best, values.min()), spent + len(rows)
    assert best == min(total(pairs, row) for row in every())


@pytest.mark.parametrize("seed", range(4))
def test_no_candidate_costs_less_than_the_bound_says(seed):
    pairs = graph(seed)
    net = network(pairs, np.ones(len(pairs.nodes), bool))
    costs, values = np.array([total(pairs, row) for row in every()]), pairs.firsts[:-1] + every()
    relaxation = Relaxation(net, net.nodes, 1e4)
    bounds = []
    for _ in range(50):
        relaxation.sweep()
        bounds.append(relaxation.bound)
        least = np.array([costs[(values == value).any(axis=1)].min() for value in range(len(pairs.nodes))])
        assert (relaxation.least <= least + 1e-9).all()
    assert (np.diff(bounds) >= -1e-9).all()
    assert 0.9 * costs.min() <= bounds[-1] <= costs.min() + 1e-9


def limited(pairs, rank):
    """Return a capacity, and for all candidates their cost and peak; `rank` chooses the limit among the peaks."""
    begins, ends = np.array([0, 0, 1, 1, 0, 2]), np.array([2, 2, 3, 3, 3, 3])
    free = Capacity(pairs.firsts, pairs.usages.astype(np.int64), begins, ends, 10**9)
    peaks = np.array([used(free, row).max() for row in every()])
    costs = np.array([total(pairs, row) for row in every()])
    return Capacity(pairs.firsts, free.usages, begins, ends, int(np.unique(peaks)[rank])), costs, peaks


@pytest.mark.parametrize("rank", [4, 8, -1])
def test_the_cross_of_two_candidates_is_the_best_of_their_components_that_has_room(rank):
    """Without node 3 the edges are 0-1-2-5-4; where candidates agree on 3 and on 2, (0, 1) and (4, 5) are apart."""
    better = 0
    for seed in range(6):
        pairs = graph(seed)
        capacity, costs, peaks = limited(pairs, rank)
        rows, rng = every(), np.random.default_rng(seed)
        best = rows[rng.choice(np.flatnonzero((peaks <= capacity.limit) & (costs < IMPOSSIBLE)))]
        for other in rng.permutation(rows)[:40]:
            if (other[[0, 1]] == best[[0, 1]]).all() or (other[[4, 5]] == best[[4, 5]]).all():
                continue
            other[[2, 3]] = best[[2, 3]]
            halves = [np.where(np.isin(np.arange(6), nodes), other, best) for nodes in ([], [0, 1], [4, 5], range(6))]
            fitting = [total(pairs, row) for row in halves if used(capacity, row).max() <= capacity.limit]
            found = cross(pairs, capacity, best, other)
            assert total(pairs, found) == min(fitting) and used(capacity, found).max() <= capacity.limit
            assert total(pairs, cross(pairs, None, best, other)) == min(total(pairs, row) for row in halves)
            better += total(pairs, found) < min(total(pairs, best), total(pairs, other))
    assert better > 0
    assert np.array_equal(cross(pairs, capacity, best, best), best)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_multipliers_raise_a_bound_that_stays_below_what_keeps_the_capacity_and_end_where_nothing_better_is_left(seed):
    pairs = graph(seed)
    capacity, costs, peaks = limited(pairs, 3)
    fits = np.where(peaks <= capacity.limit, costs, np.inf)
    values = pairs.firsts[:-1] + every()
    least = np.array([fits[(values == value).any(axis=1)].min() for value in range(len(pairs.nodes))])
    free = Ascent(Remaining(pairs, np.ones(len(pairs.nodes), bool)), Multipliers(None, SIZES), 1e4)
    multipliers = Multipliers(capacity, SIZES)
    ascent = Ascent(Remaining(pairs, np.ones(len(pairs.nodes), bool)), multipliers, 1e4)
    most = float(fits.min()) * 1.01 + 1
    while ascent.rises:
        left_out = ascent.follow(ascent.sweep(), most)
        assert (least[left_out] >= most - 1e-6).all()
        assert ascent.bound <= fits.min() + 1e-6
    while free.rises:
        free.follow(free.sweep(), most)
    assert ascent.bound > free.bound + 1
    before = multipliers.of_values()
    ascent.follow(ascent.sweep(), ascent.bound)  # nothing is cheaper than the bound
    assert not ascent.rises and np.array_equal(multipliers.of_values(), before)


@pytest.mark.parametrize(
    ("seed", "rank", "largest"), [(0, 5, None), (0, 10, None), (0, -1, None), (0, 3, 20), (1, 3, 20)]
)
def test_the_search_ends_at_the_best_within_a_capacity(seed, rank, largest):
    pairs = graph(seed)
    capacity, costs, peaks = limited(pairs, rank)
    search = Minimiser(pairs, capacity, every()[peaks.argmin()], np.random.default_rng(seed), largest)
    for _ in range(300):
        search.step()
    assert search.cost == costs[(peaks <= capacity.limit) & (costs < IMPOSSIBLE)].min()
    assert used(capacity, search.best).max() <= capacity.limit
    assert search.is_proven or rank >= 0
