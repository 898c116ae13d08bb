"""The chain of passes and the joint task agree with the tasks of single passes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bbo_suite
from bbo_problems.tensor_compiler.fusion.state import Counter, Known
from bbo_problems.tensor_compiler.hardware.kernel_settings import SLOTS, compile_kernels, number_of_choices, override
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.passes import PASSES, row_keys
from bbo_suite import Status

pytestmark = pytest.mark.slow  # compiles long


def joint():
    """Return the task, loaded when the first test needs it and not while tests are collected."""
    return bbo_suite.problem("joint/rnn")


@cache
def chain():
    return joint().structure().passes


def default():
    return joint().default_row()


@cache
def cost():
    return joint().evaluate(default()[None]).values[0]


def graphs(row: np.ndarray) -> dict[str, object]:
    """Return the graph before each pass."""
    found, graph = {}, chain().source
    for name in PASSES:
        found[name], graph = graph, chain().apply(name, graph, row)
    return found


@pytest.mark.parametrize("family", ["layout", "fusion"])
def test_the_default_has_the_same_cost_in_the_tasks_of_graph_passes(family: str) -> None:
    alone = bbo_suite.problem(f"{family}/rnn")
    assert alone.evaluate(alone.default[None]).values[0] == cost()


@pytest.mark.parametrize("family", ["tile", "flags"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_settings_of_kernels_have_the_costs_of_the_tasks_for_single_kernels(family: str, seed: int) -> None:
    alone, rng = bbo_suite.problem(f"{family}/rnn"), np.random.default_rng(seed)
    before = graphs(default())
    decided, laid = chain().decisions(family, before[family]), before["fusion"].laid
    movable = np.flatnonzero(alone.space.sizes > 1)
    at = rng.integers(len(movable))
    value = int(rng.integers(alone.space.sizes[movable[at]]))
    chosen = int(alone.default[movable[at]])
    single, flat = alone.default.copy(), default().copy()
    single[movable[at]] = value
    copies = np.flatnonzero(laid.origin[alone.results[movable // len(alone.slots)]] < 0)
    if at in copies:
        return
    column = decided.columns[at - np.searchsorted(copies, at)]
    flat[column] = 0 if value == chosen else value + 1 if value < chosen else value
    base = alone.evaluate(alone.default[None]).values[0]
    here, there = joint().evaluate(flat[None]), alone.evaluate(single[None])
    assert here.status[0] == there.status[0]
    if here.status[0] == Status.OK:
        assert here.values[0] - cost() == pytest.approx(there.values[0] - base, abs=1e-9 * cost())


@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.02, 0.5, 1.0]))
@settings(max_examples=25, deadline=None)
def test_updates_equal_sweeps_in_any_layout(seed: int, share: float) -> None:
    """A node may have copies in several layouts, all of which one column decides."""
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((6, len(default()))) < share, joint().space.sample(6, rng), default())
    rows[1:] = rows[0]
    rows[np.arange(6), rng.integers(chain().flat.span["fusion"].start, len(default()), 6)] = 1
    together = joint().evaluate(rows.astype(np.int8)).values
    graph = chain().apply("layout", chain().source, rows[0])
    for row, value in zip(rows, together, strict=True):
        graph.fusion.state.counter[Counter.KNOWN] = Known.NOTHING
        assert joint().evaluate(row[None].astype(np.int8)).values[0] == value


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_every_number_is_another_value_and_zero_is_the_compilers_choice(seed: int) -> None:
    kernels = graphs(default())["tile"].kernels
    compiled = compile_kernels(kernels.rows, kernels.runs, MACHINES["v5e"])
    rng = np.random.default_rng(seed)
    k = int(rng.choice(np.flatnonzero(compiled.fits)))
    slot = int(rng.integers(len(SLOTS)))
    made = []
    for number in range(number_of_choices(kernels.rows)[k, slot]):
        tile, flags = compiled.chosen[k, :3].copy(), compiled.chosen[k, 3:].copy()
        numbers = np.zeros(len(SLOTS), np.int64)
        numbers[slot] = number
        override(numbers, kernels.rows[k], tile, flags)
        made.append(float(np.append(tile, flags)[slot]))
    assert made[0] == compiled.chosen[k, slot]
    assert sorted(made) == compiled.values(k, slot).tolist()


def test_kernels_of_equal_content_have_equal_keys_and_others_do_not() -> None:
    rows = graphs(default())["tile"].kernels.rows
    _, number = np.unique(rows, axis=0, return_inverse=True)
    _, by_key = np.unique(row_keys(rows), return_inverse=True)
    pairs = set(zip(number.tolist(), by_key.tolist(), strict=True))
    assert len(pairs) == len(set(number.tolist())) == len(set(by_key.tolist())) > 10


@pytest.mark.parametrize("name", ["layout", "fusion"])
def test_a_pass_refuses_a_row_that_does_not_decide_it(name: str) -> None:
    row, first = default(), chain().columns(name)[0]
    graph = graphs(row)[name]
    column = first if name == "layout" else graph.decisions.columns[0]
    for wrong in (row[:column], row.astype(float), row + 100 * (np.arange(len(row)) == column), -1 - row):
        with pytest.raises((ValueError, IndexError)):
            chain().apply(name, graph, wrong)
