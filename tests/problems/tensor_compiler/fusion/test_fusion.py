"""The fusion pass: its semantics on programs small enough to think through, and against a slow second version."""

from __future__ import annotations

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import Tally
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel
from bbo_problems.tensor_compiler.hlo.opcodes import Kind
from bbo_problems.tensor_compiler.layout.arrays import Place
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.models import MODELS
from bbo_problems.tensor_compiler.tasks.programs import program as shipped

from ..small_programs import V5E, graph_of

SIZE = "f32[1024,1024]{1,0}"


def program(*lines: str, parameters: int = 2) -> Fusion:
    """Return the pass on an entry computation over 1024 x 1024 parameters p0, p1, ..."""
    given = [f"p{i} = {SIZE} parameter({i})" for i in range(parameters)]
    layout = LayoutPass(graph_of(*given, *lines), V5E)
    laid = layout.apply(layout.default())
    made = Fusion(laid, V5E)
    made.names = [layout.fusion_name(column).replace(" -> ", "-") for column in made.columns]
    made.laid = laid
    return made


def kernels(fusion: Fusion, *fused: str) -> dict[str, int]:
    """Return how many operations compute each stored result, guests included, when only the named edges are fused."""
    assert set(fused) <= set(fusion.names), fusion.names
    fusion.seconds(np.array([name in fused for name in fusion.names], np.int8)[None])
    operations = fusion.state.tally[:, Tally.FUSED]
    return {fusion.laid.name(r): int(operations[r]) for r in np.flatnonzero(operations)}


DIAMOND = (
    f"e = {SIZE} exponential(p0)",
    f"n = {SIZE} negate(e)",
    f"m = {SIZE} multiply(e, p1)",
    f"ROOT t = ({SIZE}, {SIZE}) tuple(n, m)",
)


@pytest.mark.parametrize(
    ("fused", "found"),
    [
        pytest.param(("e-n", "e-m"), {"n": 2, "m": 2}, id="computed in both, never stored"),
        pytest.param(("e-n",), {"e": 1, "n": 2, "m": 1}, id="stored once for the one that reads it"),
        pytest.param((), {"e": 1, "n": 1, "m": 1}, id="each is a kernel"),
    ],
)
def test_a_producer_of_two_consumers(fused: tuple[str, ...], found: dict[str, int]) -> None:
    assert kernels(program(*DIAMOND), *fused) == found


def test_a_matrix_product_is_never_computed_twice() -> None:
    fusion = program(
        f"d = {SIZE} dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        f"n = {SIZE} negate(d)",
        f"s = {SIZE} sine(d)",
        f"ROOT t = ({SIZE}, {SIZE}) tuple(n, s)",
    )
    assert kernels(fusion, "d-n", "d-s") == {"d": 1, "n": 1, "s": 1}


def test_a_matrix_product_takes_one_epilogue_if_all_of_it_ends_in_one_kernel() -> None:
    fusion = program(
        f"d = {SIZE} dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        f"n = {SIZE} negate(d)",
        f"s = {SIZE} sine(d)",
        f"ROOT m = {SIZE} multiply(n, s)",
    )
    assert kernels(fusion, "d-n", "d-s", "n-m", "s-m") == {"m": 4}
    assert kernels(fusion, "d-n", "d-s", "n-m") == {"d": 1, "s": 1, "m": 2}


def test_two_matrix_products_do_not_share_a_kernel() -> None:
    dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    fusion = program(f"d = {SIZE} dot(p0, p1), {dot}", f"e = {SIZE} dot(p1, p0), {dot}", f"ROOT a = {SIZE} add(d, e)")
    assert len(kernels(fusion, "d-a", "e-a")) == 2


def test_a_reduction_ends_a_fusion() -> None:
    fusion = program(
        "z = f32[] constant(0)",
        f"e = {SIZE} exponential(p0)",
        "r = f32[1024]{0} reduce(e, z), dimensions={1}, to_apply=add",
        "l = f32[1024]{0} log(r)",
        f"b = {SIZE} broadcast(l), dimensions={{0}}",
        f"ROOT m = {SIZE} multiply(e, b)",
    )
    everything = kernels(fusion, "e-r", "e-m", "r-l", "l-b", "b-m")
    assert everything == {"l": 3, "m": 5} or everything == {"r": 2, "m": 4}
    assert "l-b" in fusion.names
    assert "r-b" not in fusion.names


def test_outputs_are_stored_even_if_fused() -> None:
    fusion = program(f"e = {SIZE} exponential(p0)", f"n = {SIZE} negate(e)", f"ROOT t = ({SIZE}, {SIZE}) tuple(e, n)")
    assert kernels(fusion, "e-n") == {"e": 1, "n": 2}


def second_version(fusion: Fusion, config: np.ndarray) -> dict[int, tuple[int, float, int]]:
    """Return operations, bytes read and operands for each stored result, worked out with sets, one at a time."""
    graph = fusion.arrays
    users, columns, where_to, straight_on = graph.edge.T
    read_of, reuse_of = graph.flow.T
    computed: dict[int, dict[int, tuple[set, float, bool]]] = {}  # node -> kernel -> places, times, aligned
    fused_in: dict[int, list[int]] = {}
    heavy_in: dict[int, int] = {}
    read: dict[int, dict[int, float]] = {}
    for v in reversed(range(len(graph.kind))):
        if graph.kind[v] == Kind.FREE:
            computed[v] = {}
            continue
        edges = range(graph.starts[v], graph.starts[v + 1])
        want: dict[int, list] = {}
        take: dict[int, set] = {}
        moved: dict[int, float] = {}
        for e in edges:
            c = int(users[e])
            for k, (places, times, aligned) in computed[c].items():
                where = places
                if graph.kind[c] == Kind.MATRIX:
                    where = {{Place.LEFT: 0, Place.RIGHT: 1, Place.LOOP: "loop"}[int(where_to[e])]}
                straight = straight_on[e] == Place.ALIGNED and aligned
                moved[k] = max(moved.get(k, 0.0), read_of[e] * min(times, 1.0))
                if columns[e] >= 0 and config[columns[e]]:
                    want.setdefault(k, []).append((where, times * reuse_of[e], straight))
                else:
                    take.setdefault(k, set()).update(where)
        heavy = graph.kind[v] in (Kind.REDUCE, Kind.MATRIX)
        reached = set(want) | set(take)
        fits = graph.kind[v] not in (Kind.SOURCE, Kind.OPAQUE) and len(reached) <= 16
        fits = fits and all(len(fused_in[k]) < 256 for k in reached)
        if heavy and fits:
            lone = len(reached) == 1 and not take and not graph.output[v]
            fits = lone and all(where == {"loop"} and straight for where, _, straight in want[next(iter(reached))])
            fits = fits and heavy_in.get(next(iter(reached))) is None
        own: dict[int, tuple[set, float, bool]] = {}
        for k, uses in want.items():
            places = set().union(*(where for where, _, _ in uses))
            if fits:
                own[k] = (places, max(times for _, times, _ in uses), all(straight for _, _, straight in uses))
                fused_in[k].append(v)
                if heavy:
                    heavy_in[k] = v
            else:
                take.setdefault(k, set()).update(places)
        for k, places in take.items():
            read[k][v] = moved[k] * len(places)
        if (take or graph.output[v]) and graph.kind[v] != Kind.SOURCE:
            own[v] = ({"loop"}, 1.0, True)
            fused_in[v], read[v] = [v], {}
            if heavy:
                heavy_in[v] = v
        computed[v] = own
    return {k: (len(fused_in[k]), sum(read[k].values()), len(read[k])) for k in fused_in}


@pytest.mark.slow
@pytest.mark.parametrize("instance", ["resnet50", "rnn"])
def test_the_sweep_agrees_with_a_second_implementation(instance: str) -> None:
    layout = LayoutPass(read_graph(shipped(instance)), V5E)
    fusion = Fusion(layout.apply(layout.default()), V5E)
    rng = np.random.default_rng(0)
    d = len(fusion.columns)
    for share in (0.0, 0.3, 0.7, 0.9, 1.0):
        config = (rng.random(d) < share).astype(np.int8)
        fusion.seconds(config[None])
        tally, read = fusion.state.tally, fusion.state.load[:, Kernel.READ : Kernel.WORK].sum(axis=1)
        mine = {
            int(r): (int(tally[r, Tally.FUSED]), pytest.approx(read[r]), int(tally[r, Tally.OPERANDS]))
            for r in np.flatnonzero(tally[:, Tally.FUSED])
        }
        assert second_version(fusion, config) == mine


@pytest.mark.slow
@pytest.mark.parametrize("instance", MODELS)
def test_the_default_beats_simple_configurations(instance: str) -> None:
    problem = bbo_suite.problem(f"fusion/{instance}")
    d = len(problem.space)
    default = problem.evaluate(problem.default[None]).values[0]
    simple = np.vstack([np.ones((1, d), np.int8), np.zeros((1, d), np.int8)])
    random = problem.space.sample(50, np.random.default_rng(0))
    assert (problem.evaluate(simple).values > 1.005 * default).all()
    assert (problem.evaluate(random).values > 1.1 * default).all()
