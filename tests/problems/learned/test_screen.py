"""Predicted costs of candidates of the simulated compiler: by its own estimates, and by the model that ships."""

import numpy as np
import pytest

from bbo_problems.learned import model
from bbo_problems.learned.dataset import SHIPPED
from bbo_problems.learned.kernels import KernelGraphs
from bbo_problems.learned.screen import read_model
from bbo_suite import Moves, UserError
from bbo_suite.registry import Registry

FAMILIES = ("fusion", "layout", "tile", "flags", "joint")


def candidates(problem, changes=6):
    rng = np.random.default_rng(0)
    base = np.repeat(problem.default_row()[None], 30, axis=0)
    return Moves(problem.space).mutate(base, rng.integers(0, changes, 30), rng)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=[pytest.mark.thorough] if name in FAMILIES[1:4] else []) for name in FAMILIES]
)
def test_the_compiler_s_own_estimate_ranks_candidates(family):
    problem = Registry().problem(f"{family}/rnn")
    rows = candidates(problem)
    costs, predicted = problem.evaluate(rows).values, problem.screen("estimate")(rows)
    works = np.isfinite(costs)
    assert np.corrcoef(np.argsort(np.argsort(costs[works])), np.argsort(np.argsort(predicted[works])))[0, 1] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_that_ships_predicts_costs_and_failures(family):
    problem = Registry().problem(f"{family}/rnn")
    rows = candidates(problem)
    screen, costs = problem.screen("learned"), problem.evaluate(rows).values
    predicted = screen(rows)
    works = np.isfinite(costs)
    assert np.array_equal(works, np.isfinite(predicted))
    assert np.abs(predicted[works] / costs[works] - 1).mean() < 0.1
    assert np.array_equal(predicted, screen(rows))  # what it remembers is what it predicted


def test_the_model_that_ships_is_small_and_of_this_version():
    assert SHIPPED.stat().st_size < 1_000_000
    assert model.load(SHIPPED.read_bytes(), "learned").machine == "v5e"


def test_a_model_is_not_used_on_what_it_was_trained_on():
    with pytest.raises(UserError, match="was trained on transformer"):
        read_model("learned", "transformer", "v5e")


def test_a_file_that_is_missing_is_named():
    with pytest.raises(UserError, match=r"nowhere\.npz cannot be read"):
        Registry().problem("fusion/rnn").screen("nowhere.npz")


def test_a_kernel_that_is_too_large_is_cut_to_what_is_near_its_result():
    chain = np.column_stack([np.arange(9), np.arange(1, 10)]).astype(np.int16)
    graphs = KernelGraphs(np.array([0, 10]), np.arange(10, dtype=np.int16), np.zeros((10, 1)), np.array([0, 9]), chain)
    small = graphs.cut(4)
    assert small.opcodes.tolist() == [6, 7, 8, 9] and small.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
