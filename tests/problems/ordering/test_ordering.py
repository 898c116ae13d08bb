"""The synthetic compiler, compared with a plain interpreter; Ehrlich functions, with their definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_problems.ordering.compiler import Program, draw_program, draw_rewrites
from bbo_problems.ordering.ehrlich_problem import EhrlichProblem
from bbo_problems.ordering.ordering_problem import OrderingProblem
from bbo_suite import Status


def interpret(program: Program, order: list[int]) -> tuple[int, list[int]]:
    """Return the instructions and the states of the sites after an order, one site at a time."""
    rules, state = program.rewrites, [0] * len(program.kinds)
    for p in order:
        for i, (kind, enabler) in enumerate(zip(program.kinds, program.enablers, strict=True)):
            waits = enabler != -1 and not rules.opens[program.kinds[enabler]][state[enabler]]
            if not waits:
                state[i] = int(rules.after[p][kind][state[i]])
    sizes = (int(rules.size[kind][own]) for kind, own in zip(program.kinds, state, strict=True))
    return sum(int(weight) * size for weight, size in zip(program.weights, sizes, strict=True)), state


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, list[int]]:
    """A compiler, a program, and an order of its passes."""
    passes = draw(st.integers(6, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    program = draw_program(draw_rewrites(draw(st.integers(1, 12)), passes, rng), draw(st.integers(1, 30)), rng)
    return program, draw(st.lists(st.integers(0, passes - 1), max_size=25))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(programs())
def test_the_simulator_agrees_with_a_plain_interpreter(drawn: tuple[Program, list[int]]) -> None:
    program, order = drawn
    assert program.run(np.array([order], np.int8))[0] == interpret(program, order)[0]


def test_passes_enable_and_disable_one_another() -> None:
    rules = OrderingProblem("40x50-a").program.rewrites
    lower, names = rules.role("lower"), rules.names
    moved = rules.after != np.arange(rules.after.shape[2])
    fresh = moved[:, :, 0].sum()
    assert moved.sum() > 3 * fresh, "most rewrites need another one before"
    kind = int(np.flatnonzero(moved[lower[0], :, 0])[0])
    end = rules.after[lower[0], kind, 0]
    assert not moved[:, kind, end].any(), "nothing can be done to what was lowered"
    grows = [rules.size[k, rules.after[p, k, 0]] > rules.size[k, 0] for p, k in np.argwhere(moved[:, :, 0])]
    assert any(grows) and names[0] == "none"


@pytest.mark.parametrize("instance", OrderingProblem.instances)
def test_the_default_is_hard_to_beat(instance: str) -> None:
    problem = OrderingProblem(instance)
    default = problem.evaluate(problem.default[None]).values[0]
    costs = problem.evaluate(problem.space.sample(1000, np.random.default_rng(0))).values
    assert np.mean(costs < default) < 0.01
    assert default < 0.9 * np.median(costs)


@pytest.mark.slow
def test_the_optimum_is_that_of_all_reachable_programs() -> None:
    problem = OrderingProblem("small-a")
    program, rules = problem.program, problem.program.rewrites
    key = np.random.default_rng(0).integers(1, 2**63, len(program.kinds), dtype=np.uint64)
    states = np.zeros((len(program.kinds), 1), np.int8)
    for _ in range(len(problem.space)):
        states = np.concatenate([_after(program, states, p) for p in range(len(rules.names))], axis=1)
        hashes = np.zeros(states.shape[1], np.uint64)
        for number, row in zip(key, states, strict=True):
            hashes += number * row.astype(np.uint64)
        states = states[:, np.unique(hashes, return_index=True)[1]]
    costs = sum(w * rules.size[k][row] for w, k, row in zip(program.weights, program.kinds, states, strict=True))
    assert states.shape[1] > 100_000
    assert costs.min() == problem.optimum


def _after(program: Program, states: np.ndarray, p: int) -> np.ndarray:
    """Return `(sites, m)` states after a pass, m programs at a time."""
    rules, new = program.rewrites, states.copy()
    for i, (kind, enabler) in enumerate(zip(program.kinds, program.enablers, strict=True)):
        there = rules.after[p, kind][new[i]]
        new[i] = there if enabler < 0 else np.where(rules.opens[program.kinds[enabler]][new[enabler]], there, new[i])
    return new


def test_a_number_in_the_name_draws_another_program_of_the_same_shape() -> None:
    first, second = OrderingProblem("40x50-a"), OrderingProblem("40x50-a#1")
    assert first.space.digest() == second.space.digest()
    assert first.fingerprint() != second.fingerprint()
    assert second.optimum is None


def test_once_is_a_permutation_of_all_passes() -> None:
    problem = OrderingProblem("once-50-a")
    assert sorted(problem.default.tolist()) == list(range(50))
    assert not problem.space.allowed(np.zeros((1, 50), np.int8))[0]


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


@pytest.mark.slow
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
