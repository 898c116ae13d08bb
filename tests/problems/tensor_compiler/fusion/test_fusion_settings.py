"""Settings of single kernels in the fusion pass: the same costs as the tile and flags tasks have."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bbo_suite
from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, SLOTS, TILE_SLOTS, compile_kernels
from bbo_problems.tensor_compiler.tasks.programs import program

from ..small_programs import V5E, laid_out

pytestmark = pytest.mark.slow  # compiles long


@cache
def rnn() -> SimpleNamespace:
    """Return the fusion of a program with its kernels, loaded by the first test and not while tests are collected."""
    laid = laid_out(read_graph(program("rnn")))
    fusion = Fusion(laid, V5E)
    default = fusion.default()
    kernels = fusion.kernels(default)
    return SimpleNamespace(
        laid=laid,
        fusion=fusion,
        default=default,
        nodes=len(fusion.arrays.kind),
        kernels=kernels,
        compiled=compile_kernels(kernels.rows, kernels.runs, V5E),
        plain=fusion.seconds(default[None])[0],
    )


def number(value: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the numbers of values: 0 for the chosen one, then the others in order."""
    return np.where(value == chosen, 0, np.where(value < chosen, value + 1, value))


def cost(rows: np.ndarray) -> tuple[float, int]:
    """Return the cost of the default fusion with `(n, 9)` settings."""
    seconds, overflowing = rnn().fusion.tuned_seconds(rnn().default[None], rows[None])
    return float(seconds[0]), int(overflowing[0])


@pytest.mark.parametrize("family", ["tile", "flags"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_costs_are_those_of_the_task_that_tunes_kernels_alone(family: str, seed: int) -> None:
    slots = TILE_SLOTS if family == "tile" else FLAG_SLOTS
    alone = bbo_suite.problem(f"{family}/rnn")
    rng = np.random.default_rng(seed)
    row = np.where(rng.random(len(alone.space)) < 0.03, alone.space.sample(1, rng)[0], alone.default)
    rows = np.zeros((rnn().nodes, len(SLOTS)), np.int8)
    rows[np.ix_(alone.results, slots)] = number(row, alone.default).reshape(len(alone.results), -1)
    seconds, overflowing = cost(rows)
    found = alone.evaluate(row[None])
    untuned = rnn().plain - alone.evaluate(alone.default[None]).values[0]  # kernels that no tile fits
    assert seconds == pytest.approx(found.values[0] + untuned, rel=1e-12)
    assert (overflowing >= 0) == bool(found.status[0])
    if overflowing >= 0:
        assert rnn().laid.name(overflowing) in found.reasons[0]


def test_settings_of_one_kernel_do_not_affect_others() -> None:
    chosen = rnn().kernels.result[rnn().compiled.fits][::2]
    alone, together = np.zeros((len(chosen), rnn().nodes, 9), np.int8), np.zeros((rnn().nodes, 9), np.int8)
    alone[np.arange(len(chosen)), chosen, 4] = together[chosen, 4] = 1
    gains = [cost(rows)[0] - rnn().plain for rows in alone]
    assert np.count_nonzero(gains) > 1
    assert cost(together)[0] - rnn().plain == pytest.approx(sum(gains), rel=1e-6)


def test_the_first_kernel_that_overflows_fails_the_candidate() -> None:
    rows = np.zeros((rnn().nodes, 9), np.int8)
    tall = [k for k in np.flatnonzero(rnn().compiled.fits) if rnn().kernels.rows[k, :7].sum() > 1e9]
    rows[rnn().kernels.result[tall], :3] = 127  # clipped to the whole extent
    assert cost(rows) == (np.inf, rnn().kernels.result[tall[0]])
