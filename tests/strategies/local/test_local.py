import numpy as np
import pytest

from bbo_strategies.annealing import Annealing
from bbo_strategies.local import LocalOptions, LocalSearch
from bbo_strategies.local.moves import MoveList, Neighbourhood, Pairs, Ties
from bbo_suite import Graph, Moves, Space, Structure, Task, permutation, product
from bbo_suite.testing import play

from ..peers import joined


def rng(seed=0):
    return np.random.default_rng(seed)


def declared(d, pairs, features=None, **more):
    """Return a structure of `d` parameters from the pairs that interact."""
    table = np.zeros((d, d), bool)
    for i, j in pairs:
        table[i, j] = table[j, i] = True
    starts = np.append(0, np.cumsum(table.sum(axis=1)))
    features = np.arange(d, dtype=np.float32)[:, None] if features is None else np.asarray(features, np.float32)
    return Structure(starts, np.nonzero(table)[1].astype(np.int32), features, ("f",) * features.shape[1], **more)


def ring(d):
    return declared(d, [(i, (i + 1) % d) for i in range(d)])


def start(space, structure, default=None):
    return Task("test", space, np.zeros(len(space), np.int64) if default is None else default, "s", structure)


def search(task, cost, budget, strategy=LocalSearch, batch=50, seed=0, **options):
    """Return all candidates and costs of a run."""
    return joined(play(strategy(task, budget, rng(seed), strategy.Options(**options)), cost, batch))


def evaluations_to(values, target):
    return int(np.argmax(values <= target)) if (values <= target).any() else len(values)


def planted(d, seed=0):
    """A ring of trios: each gains by three neighbours together only, and every part of such a change costs."""
    goal = rng(seed).integers(0, 2, d)

    def cost(rows):
        wrong = (rows != goal).reshape(len(rows), -1, 3).sum(axis=2)
        return 1 + np.array([0.0, 3.0, 2.5, 2.0])[wrong].sum(axis=1)

    return cost, 1 - goal


@pytest.mark.slow
def test_a_planted_optimum_on_a_ring_is_found_with_far_fewer_evaluations_than_by_annealing():
    d, structured, blind = 60, [], []
    for seed in range(2):
        cost, far = planted(d, seed)
        task = start(Space([2] * d), ring(d), far)
        structured.append(evaluations_to(search(task, cost, 12_000, seed=seed)[1], 1.0))
        blind.append(evaluations_to(search(task, cost, 12_000, Annealing, seed=seed)[1], 1.0))
    assert max(structured) < 12_000
    assert 3 * np.median(structured) < np.median(blind)


def test_a_separable_problem_is_solved_in_one_sweep_and_a_second_look_at_changed_parameters():
    d = 80
    weights = rng(1).normal(size=d)
    least = 100 + np.minimum(weights, 0).sum()
    rows, values = search(start(Space([2] * d), declared(d, [])), lambda rows: 100 + rows @ weights, 400)
    looks, merged = d + (weights < 0).sum(), 2 * d // 32
    assert evaluations_to(values, least + 1e-9) <= 1 + looks + merged
    assert ((rows[1 : d // 2] != 0).sum(axis=1) >= 1).all()


def test_alike_parameters_are_changed_together_first():
    d = 300
    features = np.repeat(np.arange(3), 100)[:, None]
    task = start(Space([2] * d), declared(d, [], features))
    _, values = search(task, lambda rows: 1 + (rows != (features[:, 0] == 1)).sum(axis=1), 20)
    assert values[:6].min() == 1.0


@pytest.mark.parametrize("idle, most", [(0.9, 32), (0.1, 1)])
def test_several_moves_are_tried_at_once_if_there_are_too_many_and_most_cost_nothing(idle, most):
    d = 4000
    weights = np.where(rng().random(d) < idle, 0.0, 1.0)
    rows, _ = search(start(Space([2] * d), declared(d, [])), lambda rows: 100 + rows @ weights, 1000)
    assert (rows[100:500] != 0).sum(axis=1).max() == most


def test_all_edges_at_a_node_are_set_together():
    edges = np.array([[0, 3], [0, 4], [1, 4], [1, 5], [2, 5]], np.int32)
    graph = Graph(np.zeros((6, 1), np.float32), ("f",), edges)
    structure = declared(5, [(0, 1), (2, 3), (1, 2), (3, 4)], graph=graph, edges=np.arange(5, dtype=np.int32))
    space = Space([2] * 5)
    move_list = MoveList(space, Moves(space), Neighbourhood(start(space, structure)), rng())
    wide = np.flatnonzero(move_list.sorts)
    found = {(*move_list.columns[move_list.starts[m] : move_list.starts[m + 1]], move_list.values[m]) for m in wide}
    pairs = [(0, 1), (2, 3), (1, 2), (3, 4)]  # out of nodes 0 and 1, into nodes 4 and 5
    assert found == {(*pair, value) for pair in pairs for value in (0, 1)}


@pytest.mark.parametrize("structured", [True, False])
def test_equal_seeds_give_equal_runs_whatever_the_batch(structured):
    cost, far = planted(30)
    task = start(Space([2] * 30), ring(30) if structured else None, far)
    (a, _), (b, _), (c, _) = (search(task, cost, 600, batch=n, seed=s) for n, s in ((50, 1), (7, 1), (50, 2)))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.slow
def test_permutations_and_huge_scales_are_searched_without_a_structure():
    space = product(permutation("order", "abcdefg"))
    goal = np.array([6, 5, 4, 3, 2, 1, 0])
    task = start(space, None, np.arange(7))
    rows, values = search(task, lambda rows: 1 + np.abs(rows - goal).sum(axis=1), 1500)
    assert space.allowed(rows).all() and values.min() == 1
    wide = Space([1_000_000, 5], [1, 1])
    rows, values = search(start(wide, None), lambda rows: 1 + np.abs(rows[:, 0] - 777_000) / 1e6, 300)
    assert values.min() < 1.03 and LocalOptions().kick == 3


def test_better_candidates_of_other_strategies_are_adopted():
    task = start(Space([2] * 40), ring(40))
    player = LocalSearch(task, 1000, rng(), LocalOptions())
    player.tell(rows := player.ask(50), 100.0 + rows.sum(axis=1))
    found = np.ones((1, 40), np.int8)
    player.observe(found, np.array([1.0]))
    player.tell(rows := player.ask(50), 100.0 + rows.sum(axis=1))  # what is left of the present turn
    assert ((player.ask(50) != found).sum(axis=1) == 1).all()


def paired(d, ties):
    """Return a move_list of a space of three values and the pairs on it."""
    space = Space([3] * d)
    near = Neighbourhood(start(space, declared(d, ties)))
    move_list = MoveList(space, Moves(space), near, rng())
    return move_list, Pairs(move_list, near, rng())


def test_every_pair_of_moves_of_parameters_that_interact_comes_once():
    ties = [(0, 1), (1, 2), (5, 9)]
    _, pairs = paired(10, ties)
    state = np.zeros(10, np.int8)
    found = np.concatenate([pairs.next(5, state) for _ in range(4)])
    assert pairs.count(state) == 0 == len(pairs.next(5, state)) and len(np.unique(found, axis=0)) == len(found) == 12
    assert {tuple(np.flatnonzero(row)) for row in found} == set(ties)


def test_improvements_that_need_two_changes_are_found_in_every_component():
    d = 60
    ties = [(i, i + 1) for i in range(0, d, 2)]

    def cost(rows):
        left, right = rows[:, 0::2], rows[:, 1::2]
        return 100 + np.where((left == 2) & (right == 1), -1.0, 0.1 * ((left != 0) + (right != 0))).sum(axis=1)

    _, values = search(start(Space([3] * d), declared(d, ties)), cost, 1200)
    assert values.min() == pytest.approx(100 - d / 2)
    _, values = search(start(Space([3] * d), declared(d, ties)), cost, 1200, Annealing)
    assert values.min() > 100 - d / 2


CHAIN, LOOSE, VALUES = 10, 4, 5
"""Parameters of a chain; 4 and 5 may differ; values of each."""


def task():
    first = np.arange(CHAIN - 1)
    pairs = np.concatenate([np.stack([first, first + 1], 1), np.stack([first + 1, first], 1)])
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    features = np.arange(CHAIN, dtype=np.float32)[:, None]
    starts = np.searchsorted(pairs[:, 0], np.arange(CHAIN + 1))
    structure = Structure(starts, pairs[:, 1].astype(np.int32), features, ("place",), is_paired=True)
    space = Space(np.full(CHAIN, VALUES))
    return Task("chain", space, np.zeros(CHAIN, space.dtype), "cost", structure)


def costs(configs):
    differs = np.diff(configs.astype(int), axis=1) != 0
    fails = np.delete(differs, LOOSE, axis=1).any(axis=1)
    wanted = np.where(np.arange(CHAIN) <= LOOSE, 3, 1)
    return np.where(fails, np.inf, 10.0 + (configs != wanted).sum(axis=1))


def test_a_pair_that_may_differ_is_no_tie():
    ties = Ties(task(), most=CHAIN, rng=np.random.default_rng(0))
    labels = ties.groups(costs(ties.trials))
    assert labels.tolist() == [labels[0]] * (LOOSE + 1) + [labels[-1]] * (CHAIN - LOOSE - 1)
    assert labels[0] != labels[-1]


def test_what_was_not_tried_counts_as_tied():
    ties = Ties(task(), most=0, rng=np.random.default_rng(0))
    assert len(ties.trials) == 0
    assert len(set(ties.groups(np.empty(0)).tolist())) == 1


def test_local_search_moves_tied_parameters_together():
    """No change of fewer than five parameters works: single changes never left the default.

    The groups have 25 candidates, so that single parameters are searched afterwards.
    """
    given = task()
    search = LocalSearch(given, 200, np.random.default_rng(0), LocalOptions())
    best, spent = np.inf, 0
    while spent < 200:
        rows = search.ask(7)
        assert len(rows)
        values = costs(rows)
        best, spent = min(best, values.min()), spent + len(rows)
        search.tell(rows, values)
        search.observe(given.default[None], np.array([20.0]))
    assert best == 10.0
