"""The joint search on a toy compiler: its chain of passes, its steps, and what it finds."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bbo_suite
from bbo_strategies.joint import Joint, JointOptions
from bbo_strategies.joint.chain import Chain, GlobalStore
from bbo_strategies.joint.strategy import Step, Subspace, divide, merged, parse_schedule, per_node
from bbo_suite import Constraint, Decisions, Kind, Space, Task, UserError
from bbo_suite.conformance.kit import problem_rules
from bbo_suite.runs.loop import run_loop
from bbo_suite.store.identity import Run
from bbo_suite.store.run_folder import RunFolder
from bbo_suite.testing import play

from ..peers import joined
from .toy_compiler import TILES, Passes, ToyCompiler, kernel_cost

JOINTLY = "layout+fusion: exhaustive; tile: exhaustive"
IN_TURN = "layout: exhaustive; fusion: exhaustive; tile: exhaustive"


LONG = "abcabcabca"


def search(problem, schedule="", budget=400, batch=16, seed=0, **options):
    """Return all candidates and their costs."""
    strategy = Joint(problem.task(), budget, np.random.default_rng(seed), JointOptions(schedule, **options))
    return joined(play(strategy, lambda rows: problem.evaluate(rows).values, batch))


def optimum(problem):
    """Return the lowest cost of all programs, each kernel with its best tile."""
    passes, costs = problem.passes, []
    for choice in itertools.product([0, 1], repeat=3 * len(problem.passes.source.kinds)):
        graph = passes.source
        for name in ("layout", "fusion"):
            graph = passes.apply(name, graph, np.array(choice))
        contents = [graph.content(kernel) for kernel in graph.kernels]
        costs.append(sum(min(kernel_cost(c, tile) for tile in range(min(TILES, 2 + len(c)))) for c in contents))
    return min(costs)


@pytest.mark.slow
def test_joint_finds_an_optimum_that_tuning_one_pass_after_another_misses():
    problem = ToyCompiler()
    best = optimum(problem)
    assert search(problem, JOINTLY)[1].min() == best
    assert search(problem, IN_TURN)[1].min() > 1.5 * best


def test_a_separable_step_proves_the_optimum_of_every_kernel_at_the_least_cost():
    problem = ToyCompiler("abcabca")
    rows, values = search(problem, "tile: exhaustive")
    tiles = [min(kernel_cost(((kind, 0),), tile) for tile in range(3)) for kind in "abcabca"]
    assert values.min() == sum(tiles)
    assert len(rows) == 1 + 3 * (3 - 1)  # the default, and each other tile of three different kernels


def test_exhaustive_steps_evaluate_nothing_twice():
    rows, _ = search(ToyCompiler(), "tile: exhaustive; layout: exhaustive")
    assert len(np.unique(rows, axis=0)) == len(rows) == 1 + 2 * (3 - 1) + 2**4 - 1


@pytest.mark.slow
def test_unspent_budget_of_a_step_goes_to_steps_that_can_use_it():
    for schedule in ("tile: exhaustive; layout+fusion: annealing", "layout+fusion: annealing; tile: exhaustive"):
        rows, _ = search(ToyCompiler(LONG), schedule, budget=300)
        assert len(rows) == 300
    assert (rows[-20:, : 3 * len(LONG)] != rows[-1, : 3 * len(LONG)]).any()  # back in the first step


@pytest.mark.slow
def test_every_step_gets_an_equal_share_of_the_budget():
    rows, _ = search(ToyCompiler(LONG), "layout: annealing; fusion: annealing; tile: annealing", budget=301)
    n = len(LONG)
    own = {"layout": slice(0, n), "fusion": slice(n, 3 * n), "tile": slice(3 * n, 5 * n)}
    parts = np.split(rows, [101, 201, 203])[:3]  # a kernel has few tiles: two evaluations on, other steps go on
    varies = {name: [(part[:, c] != part[0, c]).any() for part in parts] for name, c in own.items()}
    assert varies["layout"] == [True, False, False]
    assert varies["fusion"][1:] == [True, False]
    assert varies["tile"] == [False, False, True]


@pytest.mark.parametrize("budget", [1, 2, 3, 17])
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("schedule", ["", "tile: annealing; fusion: random"])
def test_the_budget_is_spent_and_the_default_comes_first(schedule, budget, batch):
    rows, _ = search(ToyCompiler(), schedule, budget, batch)
    assert len(rows) == budget and np.array_equal(rows[0], ToyCompiler().default)


def test_a_run_in_which_all_candidates_fail_ends_normally():
    problem = ToyCompiler(fail=True)
    rows, _ = search(problem, "", 100)
    assert len(rows) == 100
    assert len(search(problem, JOINTLY, 1000)[0]) < 300


def test_a_step_whose_strategy_uses_parts_learns_from_costs_alone():
    rows, values = search(ToyCompiler(), "layout+fusion+tile: graybox", 100)
    assert len(np.unique(rows, axis=0)) > 20 and values.min() < values[0]


def test_a_search_continues_from_the_best_candidate():
    rows, values = search(ToyCompiler("abcabca"), "", 400, stints=4)
    for start in (134, 267):
        best = rows[values[:start].argmin()]
        assert min((row != best).sum() for row in rows[start : start + 20]) <= 6


@pytest.mark.slow
def test_the_store_is_never_used_if_it_is_switched_off(monkeypatch):
    def refuse(*_):
        raise AssertionError("the store was used")

    monkeypatch.setattr(GlobalStore, "learn", refuse)
    monkeypatch.setattr(GlobalStore, "recall", refuse)
    assert search(ToyCompiler(), JOINTLY, store=False)[1].min() == optimum(ToyCompiler())
    with pytest.raises(AssertionError):
        search(ToyCompiler(), JOINTLY)


def test_a_task_without_passes_is_treated_as_one_pass():
    space = Space([3, 2, 4])
    task = Task("plain", space, np.array([1, 1, 1]), "s")
    player = Joint(task, 99, np.random.default_rng(0), JointOptions("all: exhaustive"))
    rows = []
    while len(configs := player.ask(10)):
        rows.append(configs)
        player.tell(configs, configs.sum(axis=1).astype(float))
    assert len(np.unique(np.concatenate(rows), axis=0)) == sum(map(len, rows)) == 24
    with pytest.raises(UserError, match="'layout'"):
        Joint(task, 9, np.random.default_rng(0), JointOptions("layout: exhaustive"))


def test_a_schedule_can_be_given_on_the_command_line(tmp_path):
    arguments = {"plugins": [Path(__file__).with_name("toy_compiler.py")], "results": tmp_path, "budget": 60, "jobs": 1}
    run = {"strategies": "joint", "problems": "toy_compiler/abab", **arguments}
    texts = {"schedule": "layout+fusion: random; tile: exhaustive", "store": "no"}
    (summary,) = bbo_suite.run(**run, option_texts=texts)
    assert summary["level"] == "structure" and summary["evaluations"] == 60


@pytest.mark.slow
def test_a_run_that_was_cut_resumes_to_the_same_candidates(tmp_path):
    def perform(name, stops_after):
        problem, options = ToyCompiler(LONG), {"schedule": "", "store": True, "stints": 3}
        run = Run(problem.id, problem.fingerprint(), "joint", options, 0, 400, 16)
        facts = {"default": 1.0, "optimum": None, "unit": problem.unit, "level": "structure"}
        answers = itertools.chain([False] * stops_after, itertools.repeat(True))
        with RunFolder(tmp_path / name, run.identity(), facts) as folder:
            run_loop(run, problem, Joint, folder, lambda: next(answers))
            return [(row.digest, row.value) for row in folder.rows()]

    perform("whole", 1000)
    for stops_after in (1, 12, 20, 1000):
        perform("cut", stops_after)
    assert perform("cut", 0) == perform("whole", 0) and len(perform("cut", 0)) == 400


N = 4
FUSION, COPY, TILE = N, 2 * N, 3 * N  # the first column of each


def chain_of(problem, keep=True):
    return Chain(problem.task(), problem.passes, keep)


def moved(problem, chain, base, **changes):
    """Return the batch of one row: the base with changes, and layout 1 for operation 1."""
    rows = base.row[None].copy()
    rows[0, 1] = 1
    for column, value in changes.items():
        rows[0, int(column[1:])] = value
    return chain.update(base, rows)


def test_an_unchanged_decision_is_kept_and_a_new_one_gets_the_compilers_default():
    problem = ToyCompiler()
    chain = chain_of(problem)
    base = chain.deepen(chain.start())
    rows = moved(problem, chain, base, **{f"c{FUSION + 1}": 1, f"c{FUSION + 3}": 1}).rows
    assert rows[0, FUSION : FUSION + N].tolist() == [0, 0, 0, 1]  # 1 is joined to a copy now, 3 still to 2
    assert rows[0, COPY : COPY + N].tolist() == [0, 1, 1, 0]  # the compiler joins the two copies


def test_the_store_comes_before_the_default_and_holds_the_best():
    problem = ToyCompiler()
    chain = chain_of(problem)
    base = chain.deepen(chain.start())
    batch = moved(problem, chain, base)
    for cost, value in ((3.0, 0), (2.0, 1), (2.5, 0), (np.inf, 0)):
        batch.rows[0, [FUSION + 1, COPY + 1]] = value, 1 - value
        chain.learn(batch, np.array([cost]))
    rows = moved(problem, chain, base).rows
    assert rows[0, [FUSION + 1, COPY + 1, COPY + 2]].tolist() == [1, 0, 1]
    assert ("default", "fusion") in problem.passes.calls


def test_a_pass_is_not_applied_if_nothing_changed_or_no_later_pass_is_tuned():
    problem = ToyCompiler()
    chain = chain_of(problem)
    chain.tune(["layout", "fusion"])
    base = chain.deepen(chain.start())
    problem.passes.calls.clear()
    rows = np.repeat(base.row[None], 20, axis=0)
    rows[np.arange(20), FUSION + np.arange(20) % N] = 1
    rows[7, 2] = 1
    chain.update(base, rows)
    assert [call for call in problem.passes.calls if call[0] == "apply"] == [("apply", "layout")]
    assert not [call for call in problem.passes.calls if call[1] == "tile"]


def test_a_kernel_that_reappears_gets_the_best_known_tile_and_others_keep_theirs():
    problem = ToyCompiler()
    chain = chain_of(problem)
    chain.tune(["tile"])
    rows = chain.start().row[None].copy()
    rows[0, TILE + np.arange(N)] = [2, 1, 2, 1]  # each of a b a b is a kernel
    batch = chain.update(chain.deepen(chain.start()), rows)
    chain.learn(batch, np.array([1.0]))
    rows = batch.rows.copy()
    rows[0, FUSION + 1] = rows[0, FUSION + 3] = 1  # ab ab
    joined = chain.update(batch.candidate(0, 1.0), rows)
    assert joined.rows[0, TILE : TILE + 2 * N].tolist() == [0] * 2 * N
    rows = joined.rows.copy()
    rows[0, FUSION + 3] = 0  # ab a b
    rows[0, TILE + 1] = 3
    parted = chain.update(joined.candidate(0, 2.0), rows)
    assert parted.rows[0, TILE : TILE + N].tolist() == [0, 3, 2, 1]


columns = st.integers(0, 5 * N - 1)
steps = st.lists(
    st.tuples(st.lists(st.tuples(columns, st.integers(0, 4)), min_size=1, max_size=9), st.floats(0, 9)), max_size=6
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps, st.booleans(), st.sets(st.sampled_from(["layout", "fusion", "tile"])))
def test_every_candidate_is_well_formed(steps, keep, tuned):
    problem = ToyCompiler()
    chain, passes = chain_of(problem, keep), problem.passes
    chain.tune(tuned)
    best = chain.start()
    for changes, cost in steps:
        best = chain.deepen(best)
        live = {name: chain.decisions(name, best) for name in passes.passes[: len(best.graphs)]}
        rows = np.repeat(best.row[None], 2, axis=0)
        for own in live.values():
            for column, value in changes:
                here = own.columns == column
                rows[1, own.columns[here]] = np.minimum(value, own.sizes[here] - 1)
        batch = chain.update(best, rows)
        assert problem.space.allowed(problem.space.check(batch.rows)).all()
        for made in batch.rows:
            graph = passes.source
            for name in passes.passes:
                own = passes.decisions(name, graph)
                dead = np.setdiff1d(passes.columns(name), own.columns)
                assert (made[own.columns] < own.sizes).all() and (made[dead] == problem.default[dead]).all()
                graph = passes.apply(name, graph, made)
        chain.learn(batch, np.array([9.0, cost]))
        best = batch.candidate(1, cost)


def decisions(keys):
    k = len(keys)
    return Decisions(np.arange(k), np.full(k, 9), np.array(keys, np.uint64), np.arange(k), np.ones(k))


graphs = st.lists(st.lists(st.sampled_from([0, 1, 2, 7, 2**63, 2**64 - 1]), unique=True), min_size=1, max_size=4)


@given(graphs, st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1.0, 2.0, 3.0, np.inf])), max_size=12), st.data())
def test_the_store_holds_the_value_of_the_cheapest_candidate_with_the_key(graphs, told, data):
    store, known, best = GlobalStore(9), [decisions(keys) for keys in graphs], {}
    for place, cost in told:
        own = known[place % len(known)]
        values = data.draw(st.lists(st.integers(0, 8), min_size=len(own.keys), max_size=len(own.keys)))
        store.learn(own, np.array(values, int), cost)
        for key, value in zip(own.keys.tolist(), values, strict=True):
            if cost < best.get(key, (np.inf,))[0]:
                best[key] = (cost, value)
    for own in known:
        values, there = store.recall(own.columns, own.keys)
        assert there.tolist() == [key in best for key in own.keys.tolist()]
        assert values[there].tolist() == [best[key][1] for key in own.keys.tolist() if key in best]


KNOWN = ("annealing", "evolution", "exhaustive")


@pytest.mark.parametrize(
    "text, steps",
    [
        ("layout: annealing", [(("layout",), "annealing")]),
        (
            " fusion +layout:evolution ;tile: exhaustive",
            [(("layout", "fusion"), "evolution"), (("tile",), "exhaustive")],
        ),
        ("tile:annealing;layout:annealing", [(("tile",), "annealing"), (("layout",), "annealing")]),
    ],
)
def test_a_schedule_is_parsed(text, steps):
    assert parse_schedule(text, Passes("ab"), KNOWN) == tuple(Step(*step) for step in steps)


@pytest.mark.parametrize(
    "text, says",
    [
        ("layot: annealing", ["step 1", "pass 'layot'", "Did you mean 'layout'?"]),
        ("layout+: annealing", ["step 1", "pass ''"]),
        ("layout: annealing; layout+fusion: annealing", ["step 2", "pass 'layout' again"]),
        ("layout+fusion+layout: annealing", ["step 1", "pass 'layout' twice"]),
        ("layout: annealing;", ["step 2", "is empty"]),
        ("layout: annealing;;tile: annealing", ["step 2", "is empty"]),
        ("layout+fusion", ["step 1", "names no strategy", "layout+fusion: strategy"]),
        ("layout+fusion:  ", ["step 1", "names no strategy"]),
        ("layout: aneling", ["step 1", "'aneling'", "Did you mean 'annealing'?"]),
        ("layout: joint", ["step 1", "'joint'", "cannot search for itself", "Known: annealing"]),
        (": annealing", ["step 1", "pass ''"]),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy(text, says):
    with pytest.raises(UserError) as caught:
        parse_schedule(text, Passes("ab"), KNOWN)
    assert repr(text) in str(caught.value)
    assert all(part in str(caught.value) for part in says)


def part(sizes, share=1.0):
    return Subspace(np.array(sizes), np.arange(len(sizes)), np.arange(len(sizes)), share)


def test_decisions_of_several_passes_about_a_node_share_a_subspace():
    tile = Decisions(
        np.array([3, 4]), np.array([2, 3]), np.array([7, 8], np.uint64), np.array([1, 2]), np.array([1, 4.0])
    )
    flags = Decisions(
        np.array([6, 8]), np.array([5, 4]), np.array([7, 8], np.uint64), np.array([2, 1]), np.array([4.0, 1])
    )
    second, first = per_node([tile, flags])[::-1]
    assert (first.targets.tolist(), first.sizes.tolist(), first.share) == ([4, 6], [3, 5], 4.0)
    assert (second.targets.tolist(), second.sizes.tolist(), second.share) == ([3, 8], [2, 4], 1.0)
    assert merged([tile, flags])[0].targets.tolist() == [3, 4, 6, 8]


def test_the_whole_space_keeps_its_constraints_and_a_subspace_its_kinds():
    few = Constraint((0, 1), lambda rows: rows.sum(axis=1) < 2)
    flat = Space([3, 3, 2, 2], [0, 1, 2, 2], [-1, -1, 0, 0], constraints=[few])
    assert part([3, 3, 2, 2]).space(flat) is flat
    small = Subspace(np.array([2, 2]), np.array([1, 3]), np.arange(2)).space(flat)
    assert (small.sizes.tolist(), small.kinds.tolist()) == ([2, 2], [Kind.SCALE, Kind.CHOICE])


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(1e-9, 1e3)), min_size=1, max_size=8), st.floats(0, 300, width=32)
)
def test_shares_are_kept_up_to_the_caps_and_the_total_is_divided_completely(given_parts, total):
    caps, shares = np.array(given_parts).T
    got = divide(total, shares, caps)
    assert (got <= caps * (1 + 1e-9)).all() and (got >= 0).all()
    assert got.sum() == pytest.approx(min(total, caps.sum()))
    free = got < caps * (1 - 1e-9)
    levels = got / shares
    assert (
        np.allclose(levels[free], levels[free].max(initial=0))
        and (levels[~free] <= levels[free].min(initial=np.inf) * (1 + 1e-6)).all()
    )


def test_a_space_beyond_the_range_of_a_float_is_never_full():
    caps, shares = np.array([part([2] * 5000).candidates, part([3, 3]).candidates]), np.ones(2)
    assert divide(10, shares, caps).tolist() == [5.0, 5.0]
    assert divide(5000, shares, caps).tolist() == [4991.0, 9.0]


class Restless(Passes):
    def decisions(self, name, graph):
        self._cache.pop((name, graph), None)
        return super().decisions(name, graph)


class Greedy(Passes):
    def columns(self, name):
        return np.arange(len(self.source.kinds) * 5)


class Shifted(Passes):
    def default(self, name, graph):
        return super().default(name, graph) + 5


class Different(Passes):
    def default(self, name, graph):
        return 1 - np.minimum(super().default(name, graph), 1)


def broken(passes=Passes, cost=None):
    """Return the complaints about the toy with other passes or costs."""

    def load():
        problem = ToyCompiler()
        problem.passes = passes("abab")
        problem.cost = cost or problem.cost
        return problem

    found = []
    for _, rule in problem_rules(load):
        try:
            rule()
        except (AssertionError, UserError, ValueError) as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"passes": Restless}, "layout returns a new object"),
        ({"passes": Greedy}, "belongs to no pass, or to two"),
        ({"passes": Shifted}, "the default of layout is out of range"),
        ({"passes": Different}, "the choices of the passes cost"),
        ({"cost": lambda row: 1.0 + row.sum()}, "does not apply to its graph"),
    ],
)
def test_a_broken_compiler_breaks_its_rule(changes, says):
    assert any(says in complaint for complaint in broken(**changes))


def test_a_sound_compiler_breaks_none():
    assert broken() == []
