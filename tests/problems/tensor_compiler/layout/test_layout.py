"""The layout pass: the program stays the same program, and layouts agree wherever data flows."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.hlo.opcodes import Kind
from bbo_problems.tensor_compiler.layout.arrays import Edge
from bbo_problems.tensor_compiler.layout.layout_pass import LaidOutProgram, LayoutPass
from bbo_problems.tensor_compiler.tasks.programs import program

from ..small_programs import V5E, graph_of

pytestmark = pytest.mark.slow  # compiles long

SHIPPED = ("mobilenet", "resnet50", "rnn", "transformer")


@cache
def shipped(name: str) -> LayoutPass:
    return LayoutPass(read_graph(program(name)), V5E)


def compiled(*lines: str) -> LayoutPass:
    return LayoutPass(graph_of(*lines), V5E)


def drawn(layout: LayoutPass, seed: int, share: float) -> np.ndarray:
    """Return the default with a share of its choices drawn anew."""
    rng, config = np.random.default_rng(seed), layout.default()
    changed = rng.random(len(config)) < share
    config[changed] = rng.integers(0, layout.options)[changed]
    return config


def producers(laid: LaidOutProgram) -> np.ndarray:
    return np.repeat(np.arange(len(laid.origin)), np.diff(laid.arrays.starts))


def contracted(laid: LaidOutProgram) -> tuple[Counter, Counter]:
    """Return the edges of the first graph without what only renames, and those of the laid-out one without copies."""
    graph, there = laid.graph, set(laid.origin.tolist())
    root = np.arange(len(graph))
    for v in range(len(graph)):
        if v not in there:
            assert graph.renamed[v] >= 0, "only what renames may be left out"
            root[v] = root[graph.renamed[v]]
    first = zip(graph.producers.tolist(), graph.users.tolist(), strict=True)
    before = Counter((int(root[p]), c) for p, c in first if c in there)
    starts, users = producers(laid), laid.arrays.edge[:, Edge.CONSUMER]
    given_by = {int(c): int(p) for p, c in zip(starts, users, strict=True) if laid.origin[c] < 0}
    ends = zip(starts.tolist(), users.tolist(), strict=True)
    pairs = ((given_by.get(p, p), c) for p, c in ends if laid.origin[c] >= 0)
    return before, Counter((int(laid.origin[p]), int(laid.origin[c])) for p, c in pairs)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(SHIPPED), st.integers(0, 99), st.sampled_from([0.0, 0.1, 1.0]))
def test_a_program_with_layouts_is_the_original_with_copies(name: str, seed: int, share: float) -> None:
    layout = shipped(name)
    laid = layout.apply(drawn(layout, seed, share))
    before, after = contracted(laid)
    assert before == after
    assert (producers(laid) < laid.arrays.edge[:, Edge.CONSUMER]).all()
    copies = np.flatnonzero(laid.origin < 0)
    assert (np.bincount(laid.arrays.edge[:, Edge.CONSUMER], minlength=len(laid.origin))[copies] == 1).all()


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(SHIPPED), st.integers(0, 99), st.sampled_from([0.1, 1.0]))
def test_layouts_agree_on_both_ends_of_every_edge_and_at_every_output(name: str, seed: int, share: float) -> None:
    layout = shipped(name)
    graph, tables, config = layout.graph, layout.graph.tables, drawn(layout, seed, share)
    laid, state = layout.apply(config), layout.states(config)
    assert (state[layout.nodes] == config).all()
    lies = tables.result[tables.first[graph.signature] + state]
    copied = {}
    for i in np.flatnonzero(laid.origin < 0):
        u = -1 - laid.origin[i]
        copied[int(i)] = int(laid.arrays.row[i] - tables.array[graph.signature[u]])
        assert copied[int(i)] != lies[u]
    given_here = {(-1 - int(laid.origin[i]), lay): laid.arrays.output[i] for i, lay in copied.items()}
    seen = 0
    for p, (c, column, *_) in zip(producers(laid), laid.arrays.edge, strict=True):
        if 0 <= column < len(layout.fused) and graph.renamed[laid.origin[c]] < 0:
            e = layout.fused[column]
            sort, v = graph.signature[graph.users[e]], graph.producers[e]
            at = tables.wants[sort] + state[graph.users[e]] * tables.places[sort] + graph.operand[e]
            seen += 1
            assert tables.wanted[at] in (-1, copied.get(int(p), lies[v]))
    for u in np.flatnonzero(graph.output & (graph.kind > Kind.FREE)):
        compact = tables.compact[graph.signature[u]]
        assert lies[u] == compact or given_here[int(u), int(compact)]
    assert seen > 100


CONVOLUTIONS = (
    "x = f32[64,32,32,128]{3,2,1,0} parameter(0)",
    "w = f32[3,3,128,128]{3,2,1,0} parameter(1)",
    "a = f32[64,30,30,128]{3,2,1,0} convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f",
    "n = f32[64,30,30,128]{3,2,1,0} negate(a)",
    "b = f32[64,28,28,128]{3,2,1,0} convolution(n, w), window={size=3x3}, dim_labels=b01f_01io->b01f",
    "c = f32[64,28,28,128]{3,2,1,0} convolution(n, w), window={size=3x3}, dim_labels=b01f_01io->b01f",
    "ROOT s = f32[64,28,28,128]{3,2,1,0} add(b, c)",
)


def copies(layout: LayoutPass, config: list[int]) -> Counter:
    laid = layout.apply(np.array(config))
    return Counter(laid.name(i) for i in np.flatnonzero(laid.origin < 0))


def test_consumers_that_want_the_same_share_a_copy() -> None:
    layout = compiled(*CONVOLUTIONS)
    texts = [layout.graph.choices[layout.graph.signature[v]] for v in layout.nodes]
    features = [t.index("{3,0} from {3,0} {3,2}") for t in texts]
    assert copies(layout, features) == {"copy of x": 1}
    batch = texts[1].index("{0,3} from {0,3} {2,3}")
    found = copies(layout, [features[0], batch, batch])
    assert found["copy of a"] + found["copy of n"] == 1


def branches(rng: np.random.Generator) -> LayoutPass:
    """Return a program of two branches of products, its text in some order."""
    shape, dot = "f32[256,512]{1,0}", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = []
    steps = [
        [
            f"p{i} = {shape} parameter({2 * i})",
            f"w{i} = f32[512,512]{{1,0}} parameter({2 * i + 1})",
            f"d{i} = {shape} dot(p{i}, w{i}), {dot}",
            f"e{i} = {shape} tanh(d{i})",
            f"f{i} = {shape} dot(e{i}, w{i}), {dot}",
        ]
        for i in range(3)
    ]
    while any(steps):
        lines.append(steps[rng.choice([i for i, s in enumerate(steps) if s])].pop(0))
    return compiled(*lines, f"x = {shape} add(f0, f1)", f"ROOT y = {shape} add(x, f2)")


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 99), st.integers(0, 99))
def test_the_cost_does_not_depend_on_the_order_of_the_text(order: int, choice: int) -> None:
    costs = []
    for seed in (0, order):
        layout = branches(np.random.default_rng(seed))
        names = [layout.graph.names[v] for v in layout.nodes]
        picked = dict(zip(sorted(names), np.random.default_rng(choice).integers(0, 8, len(names)), strict=True))
        fusion = Fusion(
            layout.apply(np.array([picked[n] % o for n, o in zip(names, layout.options, strict=True)])), V5E
        )
        costs.append(fusion.seconds(fusion.default()[None])[0])
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)
