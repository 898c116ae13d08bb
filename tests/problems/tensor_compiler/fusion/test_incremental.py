"""Updating the fusion pass from one candidate to the next gives what a sweep gives, bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import MOST_COPIES, Counter, Known, Tally
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.tasks.programs import program

from ..small_programs import fusion_of, graph_of

MATRIX, VECTOR = "f32[512,512]{1,0}", "f32[512]{0}"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
MOVES = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12)


GIVEN = ("z = f32[] constant(0)", f"p = {MATRIX} parameter(0)", f"q = {MATRIX} parameter(1)")


@cache
def tangle(seed: int) -> ProgramGraph:
    """Return a program in which many products and reductions compete for the kernels of few consumers."""
    rng, lines, known = np.random.default_rng(seed), [], ["p", "q"]
    for i in range(120):
        a, b = (known[max(0, len(known) - 1 - int(rng.exponential(4)))] for _ in range(2))
        if rng.random() < 0.25:
            lines += [f"d{i} = {MATRIX} dot({a}, {b}), {DOT}"]
        elif rng.random() < 0.15:
            lines += [f"r{i} = {VECTOR} reduce({a}, z), dimensions={{1}}, to_apply=add"]
            lines += [f"s{i} = {VECTOR} sqrt(r{i})", f"d{i} = {MATRIX} broadcast(s{i}), dimensions={{0}}"]
        else:
            lines += [f"d{i} = {MATRIX} {rng.choice(['add', 'multiply'])}({a}, {b})"]
        known.append(f"d{i}")
    return graph_of(*GIVEN, *lines, f"ROOT t = ({MATRIX}, {MATRIX}) tuple({known[-1]}, {known[-2]})")


@cache
def chain() -> ProgramGraph:
    """Return a program that fills the largest kernel there may be more than once, in two ways."""
    lines = [f"e0 = {MATRIX} add(p, q)"]
    for i in range(1, 300):
        lines += [f"f{i} = {MATRIX} negate(q)", f"e{i} = {MATRIX} multiply(e{i - 1}, f{i})"]
    return graph_of(*GIVEN, *lines, f"ROOT t = {MATRIX} negate(e299)")


@cache
def fan() -> ProgramGraph:
    """Return a program with a producer of as many kernels as may copy it, and a few more."""
    lines = [f"e = {MATRIX} exponential(p)"]
    lines += [f"m{i} = {MATRIX} multiply(e, q)" for i in range(MOST_COPIES + 3)]
    lines += [f"s{i} = {MATRIX} add({f'm{i - 1}' if i == 1 else f's{i - 1}'}, m{i})" for i in range(1, MOST_COPIES + 3)]
    return graph_of(*GIVEN, *lines, f"ROOT t = {MATRIX} negate(s{MOST_COPIES + 2})")


def swept(fusion: Fusion, config: np.ndarray, rows: np.ndarray) -> tuple[float, int]:
    """Return what a sweep says that knows nothing of earlier candidates."""
    fusion.state.counter[Counter.KNOWN] = Known.NOTHING
    seconds, overflowing = fusion.tuned_seconds(config[None], rows[None])
    return float(seconds[0]), int(overflowing[0])


def check(graph: ProgramGraph, moves: list[int], share: float, most: int) -> None:
    """Compare on a walk from a random candidate, of at most so many changes a move."""
    updated, fusion = fusion_of(graph), fusion_of(graph)
    d, n, rng = len(fusion.columns), len(fusion.arrays.kind), np.random.default_rng(moves)
    config, rows = (rng.random(d) < share).astype(np.int8), np.zeros((n, 9), np.int8)
    for seed in moves:
        move = np.random.default_rng(seed)
        config[move.integers(0, d, move.integers(0, most + 1))] ^= 1
        if seed % 3 == 0:
            rows[move.integers(0, n), 3 + move.integers(0, 6)] = move.integers(0, 4)
        seconds, overflowing = updated.tuned_seconds(config[None], rows[None])
        assert (float(seconds[0]), int(overflowing[0])) == swept(fusion, config, rows)
        for name in ("cycles", "sums"):
            assert np.array_equal(getattr(updated.state, name), getattr(fusion.state, name))
        stored = np.flatnonzero(fusion.state.tally[:, Tally.FUSED])
        assert np.array_equal(updated.state.tally[stored], fusion.state.tally[stored])
        assert np.array_equal(updated.state.load[stored], fusion.state.load[stored])


@pytest.mark.slow
@given(seed=st.integers(0, 20), moves=MOVES, share=st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]))
@settings(max_examples=120, deadline=None)
def test_updates_equal_sweeps_where_heavy_operations_compete(seed: int, moves: list[int], share: float) -> None:
    check(tangle(seed), moves, share, 3)


@pytest.mark.slow
@given(seed=st.integers(0, 20), share=st.sampled_from([0.0, 0.3, 0.7]))
@settings(max_examples=30, deadline=None)
def test_no_kernel_waits_for_itself(seed: int, share: float) -> None:
    fusion = fusion_of(tangle(seed))
    config = np.random.default_rng(seed).random(len(fusion.columns)) < share
    assert (fusion.kernels(config.astype(np.int8)).rows[:, Kernel.OPERATIONS] > 0).all()
    edges = fusion.last_program().edges
    while len(edges):
        ready = ~np.isin(edges[:, 0], edges[:, 1])  # kernels for which nothing has to run first
        assert ready.any()
        edges = edges[~ready]


@given(moves=MOVES, share=st.sampled_from([0.95, 0.99, 1.0]))
@settings(max_examples=25, deadline=None)
def test_updates_equal_sweeps_where_kernels_reach_the_largest_size(moves: list[int], share: float) -> None:
    check(chain(), moves, share, 2)


@given(moves=MOVES)
@settings(max_examples=25, deadline=None)
def test_updates_equal_sweeps_where_a_producer_has_the_most_copies(moves: list[int]) -> None:
    check(fan(), moves, 0.7, 2)


@pytest.mark.slow
@pytest.mark.parametrize("instance", ["rnn", "resnet50", "transformer"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_updates_equal_sweeps_on_real_programs(instance: str, share: float) -> None:
    check(read_graph(program(instance)), list(range(60)), share, 12)


def test_updates_do_not_run_out_of_space() -> None:
    """A node whose memberships grow moves to the end of their store, which a sweep tidies up."""
    fusion = fusion_of(fan())
    d, room = len(fusion.columns), len(fusion.state.member)
    rows = np.ones((2 * room * d, d), np.int8)
    flipped = np.repeat(np.arange(d), room)
    rows[2 * np.arange(room * d), flipped] = 0
    seconds = fusion.seconds(rows).reshape(d, -1, 2)
    assert (seconds == seconds[:, :1]).all()
    assert fusion.state.counter[Counter.FILLED] <= room


@pytest.mark.parametrize("seed", range(8))
def test_what_the_default_tries_and_takes_back_leaves_the_cycles_of_a_sweep(seed: int) -> None:
    chosen, analytical = fusion_of(tangle(seed)), MACHINES["v5e"].analytical_model()
    layout = LayoutPass(tangle(seed), MACHINES["v5e"])
    fresh, config = Fusion(layout.apply(layout.default()), analytical), chosen.default()
    fresh.seconds(config[None])
    for name in ("cycles", "sums"):
        assert np.array_equal(getattr(chosen.state, name), getattr(fresh.state, name))
