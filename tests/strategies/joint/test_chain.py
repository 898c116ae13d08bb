import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_strategies.joint.chain import Chain, GlobalStore
from bbo_suite import Decisions

from .toy_compiler import ToyCompiler

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
