"""Each mechanism does what its publication describes.

The presets find better candidates, say what they reproduce, and refuse what they cannot search.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools

import numpy as np
import pytest

import bbo_suite
from bbo_strategies.changes import SingleChanges
from bbo_strategies.graphs import differing, pairs
from bbo_strategies.published import PRESETS
from bbo_strategies.published.lfbo import GoodForest, excess
from bbo_strategies.published.model_search import ForestSurrogate, Surrogate, ranks
from bbo_suite import Compiler, Moves, Space, Structure, UserError, choice, product, scale
from bbo_suite.conformance.strategy_rules import chain, counted, described, spaces, uneven
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

from ..peers import joined


def strategy(name):
    return Registry().strategy(f"published:{name}")


def test_single_changes_are_complete_and_allowed():
    space = spaces()["a permutation and constraints"]
    changes, row = SingleChanges(space), space.sample(1, np.random.default_rng(0))[0]
    rows = {tuple(found) for found in changes.rows(row, np.arange(len(changes))).tolist()}
    everything = itertools.product(itertools.permutations(range(5)), range(4), range(5))
    candidates = [(*order, x, y) for order, x, y in everything if x + y < 4]
    differs = [tuple(np.flatnonzero(np.array(one) != row)) for one in candidates]
    wanted = {
        one
        for one, where in zip(candidates, differs, strict=True)
        if where in ((5,), (6,)) or (len(where) == 2 and max(where) < 5)
    }
    assert rows == wanted


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Surrogate, ForestSurrogate])
def test_only_trees_that_read_a_changed_parameter_are_walked_again(kind: type[Surrogate]):
    space, rng = Space(np.full(60, 4)), np.random.default_rng(0)
    surrogate, rows = kind(space, ranks, rng), space.sample(200, rng)
    surrogate.learn(rows, uneven(rows))
    changed = Moves(space).mutate(rows, rng.integers(0, 4, len(rows)), rng)
    after = surrogate.leaves_after(rows, surrogate.leaves(rows), changed)
    np.testing.assert_array_equal(after, surrogate.leaves(changed))
    assert not np.array_equal(after, surrogate.leaves(rows))


@pytest.mark.slow
def test_a_surrogate_ranks_candidates_and_is_fitted_again_when_a_quarter_more_is_known():
    rng, space = np.random.default_rng(0), Space(np.full(20, 4))
    surrogate, rows, fresh = Surrogate(space, ranks, rng), space.sample(400, rng), space.sample(300, rng)
    surrogate.learn(rows, uneven(rows))
    before = surrogate.predict(fresh)
    assert np.corrcoef(before, -uneven(fresh))[0, 1] > 0.85
    surrogate.learn(rows[:50], uneven(rows[:50]))  # an eighth more
    np.testing.assert_array_equal(surrogate.predict(fresh), before)
    surrogate.learn(rows[:50], uneven(rows[:50]))
    assert not np.array_equal(surrogate.predict(fresh), before)


def test_elites_enter_the_next_generation_without_a_measurement():
    searches = start(strategy("tensor-comprehensions"), Space(np.full(30, 4)), 1000, population=20, elites=4)
    sizes = []
    for _ in range(3):
        rows = searches.ask(100)
        sizes.append(len(rows))
        searches.tell(rows, uneven(rows))
    assert sizes == [20, 16, 16]


def test_best_first_search_prunes_by_alpha_and_ends():
    space = product(*(choice(f"c{i}", "abc") for i in range(6)))
    default = np.full(6, 2)
    rows = {}
    for alpha in (0.9, 1.0, 1.05):
        searches = start(strategy("taso"), space, 729, default=default, alpha=alpha)
        rows[alpha] = np.concatenate([configs for configs, _ in play(searches, uneven, 50)])
    assert len(rows[0.9]) < len(rows[1.0]) < len(rows[1.05])
    assert uneven(rows[1.0]).min() == uneven(np.zeros((1, 6)))[0]


def test_a_beam_decides_from_the_outputs_and_from_coarse_to_fine():
    space = Space(np.full(64, 2))
    searches = start(strategy("halide"), space, 100_000, structure=chain(space), beam=2)
    eighths, singles = [], []
    for configs, _ in play(searches, lambda rows: np.ones(len(rows)), 1000):
        changed = configs != 0
        eighths += [changed.any(axis=0).argmax()] if len(eighths) < 9 else []
        singles += np.flatnonzero(changed[changed.sum(axis=1) == 1].any(axis=0)).tolist()
    assert eighths[1:] == list(range(56, -8, -8))
    assert singles == list(range(63, -1, -1))


def test_block_search_finds_what_single_changes_do_not():
    space = Space(np.full(10, 2))

    def pairs(rows):  # both parameters of a pair must change
        return 20.0 - 2 * (rows[:, ::2] & rows[:, 1::2]).sum(axis=1) + 0.5 * (rows[:, ::2] ^ rows[:, 1::2]).sum(axis=1)

    searches = start(strategy("pet"), space, 1000, structure=chain(space), size=4)
    batches = list(play(searches, pairs, 50))
    assert min(values.min() for _, values in batches) == 10.0
    assert sum(map(len, (values for _, values in batches))) < 1000  # it ends by itself


def test_groups_that_interact_change_together_and_the_worst_of_the_pool_is_replaced():
    space = Space(np.full(30, 2))
    searches = start(strategy("grouptuner"), space, 500, structure=chain(space), change=1.0, temperature=0.0)
    batches = [rows for rows, _ in play(searches, lambda rows: rows.sum(axis=1) * 1.0, 1)]
    default, pool = batches[0], np.concatenate(batches[1:10])
    assert all(np.ptp(np.flatnonzero(row)) == row.sum() - 1 <= 2 for row in pool != default)
    assert np.concatenate(batches).sum(axis=1).min() == 0


def test_runs_of_parameters_are_the_groups_where_none_are_declared():
    searches = start(strategy("grouptuner"), Space(np.full(30, 2)), 500, change=1.0)
    pool = np.concatenate([rows for rows, _ in play(searches, uneven, 1)][1:10])
    assert (pool[:, ::2] == pool[:, 1::2]).all() and pool.any(axis=1).all()


@pytest.mark.parametrize(("repaired", "kept"), [(False, [4.0, 5.0, 6.0]), (True, [1.0, 2.0, 3.0])])
def test_the_elites_of_hybrid_vndx_are_the_worst_unless_repaired(repaired, kept):
    searches = start(strategy("hybrid-vndx"), Space(np.full(5, 3)), 100, elite=3, repaired=repaired)
    for cost in (5.0, 1.0, 6.0, 2.0, 4.0, 3.0):
        searches.keep(np.zeros((1, 5)), cost)
    assert [cost for cost, _ in searches.elite] == kept


def test_hybrid_vndx_measures_nothing_twice_and_ends():
    space = product(*(choice(f"c{i}", "abc") for i in range(3)))
    rows = np.concatenate([rows for rows, _ in play(start(strategy("hybrid-vndx"), space, 1000), uneven, 20)])
    assert len(np.unique(rows, axis=0)) == len(rows) <= 27 and uneven(rows).min() == 1


@pytest.mark.slow
def test_an_ensemble_learns_whole_candidates_and_its_good_members_count():
    from bbo_strategies.published.ensemble_search import DynaPpoMboOptions, Ensemble

    rng, space = np.random.default_rng(0), product(*(choice(f"c{i}", "abc") for i in range(8)))
    ensemble, rows, fresh = Ensemble(space, DynaPpoMboOptions(), rng), space.sample(200, rng), space.sample(100, rng)
    costs = uneven(rows)
    costs[:20] = np.inf
    ensemble.learn(rows, costs)
    assert ensemble.scores["ridge"] > 0.3
    assert np.corrcoef(ensemble.predict(fresh), -uneven(fresh))[0, 1] > 0.7


@pytest.mark.slow
def test_an_enumeration_is_ranked_by_the_estimate():
    problem = Registry().problem("fusion/rnn")
    task = problem.task(bbo_suite.Level.PARTS)
    searches = strategy("deepcuts")(task, 100, np.random.default_rng(0), strategy("deepcuts").Options(enumerated=50))
    searches.tell(rows := searches.ask(20), problem.evaluate(rows).values)
    rows = searches.ask(20)
    estimates = searches.estimates(rows)
    assert len(rows) == 20 and (np.diff(estimates) >= 0).all() and estimates[0] < estimates[-1]


@pytest.mark.slow
def test_a_q_network_learns_which_step_gains():
    from bbo_strategies.published.networks import QNetwork

    rng = np.random.default_rng(0)
    network = QNetwork(4, 6, 0.02, 0.0, 0)
    states, actions = rng.random((1000, 4), np.float32), rng.integers(0, 6, 1000)
    rewards = np.where(actions == 3, 1.0, 0.0)
    for _ in range(20):
        network.train(states, actions, states, rewards, 20, rng)
    assert (network.gains(states[:50]).argmax(axis=1) == 3).all()


@pytest.mark.slow
def test_a_policy_learns_to_take_the_steps_that_are_rewarded():
    from bbo_strategies.published.chameleon import ChameleonOptions
    from bbo_strategies.published.networks import Ppo

    rng, policy = np.random.default_rng(0), Ppo(5, 5, ChameleonOptions(rate=1e-2, entropy=0.0), 0)
    states, walking = np.zeros((4, 32, 5), np.float32), np.ones((5, 32), bool)
    for _ in range(30):
        actions = np.stack([policy.draw(state, rng) for state in states])
        policy.learn(states, actions, (actions == 2).mean(axis=2), walking, states[0], rng)
    assert (policy.draw(states[0], rng) == 2).mean() > 0.9


def test_citroen_measures_what_its_process_expects_most_of_and_needs_fewer_measurements_than_the_costs_tell():
    space = Space(np.full(30, 5))
    weights = np.linspace(1, 3, 30)

    def cost(rows):
        return 1 + rows @ weights

    helpful = Compiler("testing/task", space, ("cost", "other"), lambda rows: np.column_stack([cost(rows), rows[:, 0]]))
    idle = Compiler("testing/task", space, ("one",), lambda rows: np.ones((len(rows), 1)))
    found = {}
    for name, compiler in (("helpful", helpful), ("idle", idle)):
        searches = start(strategy("citroen"), space, 60, compiler=compiler, default=np.full(30, 2))
        found[name] = min(values.min() for _, values in play(searches, cost, 5))
    assert found["helpful"] < 0.75 * found["idle"] and helpful.count > 300
    with pytest.raises(bbo_suite.UserError, match="compiling tells"):
        start(strategy("citroen"), space, 60)


def calls(inlined):
    """Return a structure of calls, some of which the compiler inlines on its own."""
    d = len(inlined)
    features = np.array(inlined, np.float32)[:, None]
    return Structure(np.zeros(d + 1, np.int64), np.empty(0, np.int32), features, ("inlined by default",))


def test_the_inlining_tuner_flips_each_call_alone_and_then_all_that_help_together():
    inlined, weights = np.array([0, 1, 0, 1, 0]), np.array([-3.0, 2.0, 1.0, 4.0, -1.0])  # of inlining

    def cost(rows):
        return 20.0 + np.where(rows == 0, inlined, rows == 2) @ weights

    searches = start(strategy("inlining-tuner"), Space(np.full(5, 3)), 100, structure=calls(inlined), clean=False)
    rows, values = joined(play(searches, cost, 100))
    assert rows[1:6].tolist() == [[2, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 2]]
    assert rows[6].tolist() == [2, 1, 0, 1, 2] and values[6] == values.min() == 16
    assert len(rows) == 1 + 5 + 1 + 5  # the second round helps nothing


@pytest.mark.parametrize("budget", [2, 5, 7, 11])
def test_where_the_budget_ends_the_inlining_tuner_combines_what_has_helped(budget):
    searches = start(strategy("inlining-tuner"), Space(np.full(9, 3)), budget, structure=calls(np.ones(9)))
    batches = list(play(searches, lambda rows: 20.0 - (rows == 1).sum(axis=1) + (rows == 2).sum(axis=1), 3))
    rows = np.concatenate([rows for rows, _ in batches])
    assert len(rows) == budget and (budget == 2 or (rows[-1] == 1).sum() == budget - 3)


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


def classifier_search(space: Space, budget: int, **options):
    return start(Registry().strategy("published:lfbo"), space, budget, **options)


def test_good_candidates_weigh_by_how_much_better_they_are_and_failures_are_bad():
    costs = np.array([1.0, 2.0, 3.0, np.inf, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0])
    weights = excess(costs, 0.25)  # the quantile of the ten that run is 3.5
    np.testing.assert_allclose(weights, np.array([2.5, 1.5, 0.5, *np.zeros(8)]) / 1.5)
    assert (excess(np.ones(5), 0.1) == 1).all()


@pytest.fixture(scope="module")
def forest() -> GoodForest:
    rng, space = np.random.default_rng(0), Space(np.full(20, 4), np.ones(20))
    forest, rows = GoodForest(space, functools.partial(excess, share=0.1), rng), space.sample(400, rng)
    forest.learn(rows, rows[:, :3].sum(axis=1).astype(float))
    return forest


def test_a_forest_knows_good_candidates_and_follows_each_tree(forest):
    low, high = np.zeros((1, 20), np.int8), np.full((1, 20), 3, np.int8)
    assert forest.predict(low)[0] > 0.3 > 0.1 > forest.predict(high)[0]
    trees = np.arange(forest.size)
    np.testing.assert_allclose(forest.chances(np.repeat(low, 100, axis=0), trees).mean(), forest.predict(low)[0])
    paths = [set(forest.path(tree, low[0])) for tree in trees]
    assert all(paths) and np.mean([bool(path & {0, 1, 2}) for path in paths]) > 0.6


@pytest.mark.slow
def test_neighbours_are_at_most_two_steps_away_along_a_path():
    space = product(*(scale(f"s{i}", range(9)) for i in range(10)), *(choice(f"c{i}", "abcd") for i in range(5)))
    searches = classifier_search(space, 400, descent=0)
    batches = [rows for rows, _ in play(searches, uneven, 1000)]
    known = np.concatenate(batches[:2])
    for rows in batches[2:]:
        steps = np.abs(rows[:, None, :10].astype(int) - known[None, :, :10])
        assert (steps.max(axis=2) <= 2).any(axis=1).all()
        known = np.concatenate([known, rows])


@pytest.mark.slow
def test_it_ends_where_no_single_change_gains():
    space = Space(np.full(30, 2))
    costs = np.concatenate([values for _, values in play(classifier_search(space, 3000), uneven, 100)])
    assert len(costs) < 1500 and costs.min() == 1


CHEAP = {"tensor-comprehensions", "taso", "halide", "pet", "deepcuts", "ils-px", "grouptuner", "hybrid-vndx"}
NAMES = [f"published:{name}" for name in PRESETS]
MARKED = [pytest.param(f"published:{n}", marks=[] if n in CHEAP else [pytest.mark.slow]) for n in PRESETS]


@pytest.mark.parametrize("name", MARKED)
def test_the_default_is_first_and_better_candidates_are_found(name):
    space = product(*(scale(f"s{i}", range(4)) for i in range(20)))
    default, strategy = np.full(20, 2), Registry().strategy(name)
    structure = dataclasses.replace(chain(space), parts=described(space))
    searches = start(strategy, space, 400, structure=structure, default=default, compiler=counted(space))
    batches = list(play(searches, uneven, 20))
    assert batches[0][0][0].tolist() == default.tolist()
    assert min(values.min() for _, values in batches) < 0.95 * batches[0][1][0]


@pytest.mark.parametrize("name", NAMES)
def test_show_says_what_is_reproduced_and_where_each_default_comes_from(name):
    found = Registry().strategy(name)
    text = inspect.getdoc(found)
    assert "Reproduced, " in text and "Different here: " in text
    assert name == "published:chameleon-sampling" or "Not reproduced: " in text
    for field in dataclasses.fields(found.Options):
        words = field.metadata["help"]
        assert "its code" in words or "its examples" in words or "ours" in words or field.name in ("member", "model")


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("flextensor", "ordered parameters"),
        ("chameleon", "ordered parameters"),
        ("halide", "computation graph"),
        ("pet", "computation graph"),
        ("ils-px", "interactions of parameters"),
        ("deepcuts", "estimate of their parts"),
    ],
)
def test_what_a_task_does_not_declare_is_said(name, missing):
    space = product(*(choice(f"c{i}", "abc") for i in range(5)))
    with pytest.raises(UserError, match=missing):
        start(Registry().strategy(f"published:{name}"), space, 100)


def test_a_sampler_of_itself_is_refused():
    sampling = Registry().strategy("published:chameleon-sampling")
    with pytest.raises(UserError, match="must be another strategy"):
        start(sampling, spaces()["booleans"], 100, member="published:chameleon-sampling")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("autotvm", {"model": False}),
        ("adatune", {"model": False}),
        ("adatune", {"adaptive": False}),
        ("ansor", {"model": False}),
        ("chameleon", {"clusters": False}),
        ("flextensor", {"epsilon": 1.0, "least": 1.0}),
        ("citroen", {"pool": 5}),
        ("lfbo", {"similarity": 0.0}),
        ("dyna-ppo-mbo", {"threshold": -100.0}),
        ("hybrid-vndx", {"repaired": True}),
    ],
)
def test_a_mechanism_that_is_switched_off_changes_what_is_proposed(name, off):
    space, strategy = Space(np.full(30, 5), np.ones(30)), Registry().strategy(f"published:{name}")
    told = counted(space)
    plays = [play(start(strategy, space, 300, compiler=told, **options), uneven, 32) for options in ({}, off)]
    with_it, without = (np.concatenate([rows for rows, _ in batches]) for batches in plays)
    assert len(with_it) == len(without) == 300
    assert not np.array_equal(with_it, without)
