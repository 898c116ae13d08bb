"""The stored optima of our own instances."""

import numpy as np
import pytest

from bbo_problems.sharding.known import optima
from bbo_problems.sharding.make_optima import MESHES, row, solved
from bbo_problems.sharding.sharding_problem import ShardingProblem

pytestmark = pytest.mark.slow  # compiles long

NAMES = sorted(known.name for known in optima().values())


def named(name):
    return next(known for known in optima().values() if known.name == name)


@pytest.mark.parametrize("name", [n if n == "rnn" else pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_the_stored_candidate_costs_what_is_stored(name):
    problem, known = ShardingProblem(name), named(name)
    assert problem.bound == known.bound
    assert problem.optimum == known.optimum
    assert optima()[problem.graph.digest] is known
    cost = problem.evaluate(problem.space.unpack(known.candidate)[None]).values[0]
    default = problem.evaluate(problem.default[None]).values[0]
    assert known.bound <= cost == known.cost < default
    assert problem.baselines() == ({} if known.optimum else {"exact solver": cost})


def test_only_instances_are_known():
    assert set(NAMES) <= {program + mesh for program in ShardingProblem.instances for mesh in MESHES}
    assert len(NAMES) >= 6


@pytest.mark.parametrize("name", ["rnn@4x8", "resnet50@4x8"])
def test_the_solver_finds_the_stored_optimum_again(name):
    problem = ShardingProblem(name)
    made = row(name, problem, solved(problem))
    assert made["cost"] == made["bound"] == problem.optimum


def test_a_file_and_another_mesh_have_no_optimum():
    problem = ShardingProblem("rnn@2x2")
    assert problem.optimum is None
    assert problem.bound is None
    assert np.isfinite(problem.evaluate(problem.default[None]).values[0])
