"""Ehrlich functions, compared with a direct implementation of their definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_problems.ordering.ehrlich_problem import EhrlichProblem
from bbo_suite import Status

PROBLEM = EhrlichProblem("32x32-a")


def cost(problem: EhrlichProblem, row: list[int]) -> float:
    """Return the cost by the definition, one element at a time."""
    if not all(problem.follows[a][b] for a, b in pairwise(row)):
        return float("inf")
    value = 1.0
    for motif, offsets in zip(problem.motifs.tolist(), problem.offsets.tolist(), strict=True):
        places = range(len(row) - offsets[-1])
        value *= max(sum(row[i + o] == m for m, o in zip(motif, offsets, strict=True)) for i in places) / len(motif)
    return 2 - value


def best(problem: EhrlichProblem) -> np.ndarray:
    """Return a sequence with every motif: its elements at their distances; repeated elements fill the gaps."""
    room = len(problem.space) // len(problem.motifs)
    row = np.empty(len(problem.space), np.int64)
    for number, (motif, offsets) in enumerate(zip(problem.motifs, problem.offsets, strict=True)):
        for element, offset in zip(motif, offsets, strict=True):
            row[number * room + offset :] = element
    return row


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_costs_follow_the_definition(data: st.DataObject) -> None:
    """Tried on random walks along allowed transitions, some of which start like an optimal sequence."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    row = best(PROBLEM) if data.draw(st.booleans()) else PROBLEM.default.copy()
    for place in range(data.draw(st.integers(1, 31)), 32):
        row[place] = rng.choice(np.flatnonzero(PROBLEM.follows[row[place - 1]]))
    if data.draw(st.booleans()):
        row[data.draw(st.integers(0, 31))] = data.draw(st.integers(0, 31))
    assert PROBLEM.evaluate(row[None]).values[0] == cost(PROBLEM, row.tolist())


@pytest.mark.parametrize("instance", EhrlichProblem.instances)
def test_the_optimum_is_reached_and_the_default_is_far_from_it(instance: str) -> None:
    problem = EhrlichProblem(instance)
    values = problem.evaluate(np.stack([best(problem), problem.default])).values
    assert values[0] == problem.optimum == 1.0
    assert 1.7 < values[1] <= 2


def test_a_forbidden_transition_is_a_compile_error_that_names_it() -> None:
    before, after = np.argwhere(~PROBLEM.follows)[0]
    row = PROBLEM.default.copy()
    row[:] = before
    row[7] = after
    result = PROBLEM.evaluate(row[None])
    assert result.status[0] == Status.COMPILE_ERROR and result.values[0] == np.inf
    assert result.reasons == {0: f"{after} may not follow {before} (slot 7)"}


@pytest.mark.parametrize(
    ("instance", "stored"),
    [
        ("32x32-a", "6a4a933a382a0380"),
        ("64x32-a", "f7a4532104b23ce6"),
        ("128x32-a", "0220e7bf293cde58"),
        ("32x32-a#1", "2c57a267ad833921"),
        ("64x32-a#2", "6e81c49c8dddfb08"),
        ("128x32-a#7", "a9fea645c3ded52e"),
    ],
)
def test_fingerprints_are_those_of_stored_runs(instance: str, stored: str) -> None:
    assert EhrlichProblem(instance).fingerprint() == stored
