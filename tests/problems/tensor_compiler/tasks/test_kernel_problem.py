"""Tile and flag tasks: consistent with fusion, separable by kernel; and families of tasks, of random shapes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel
from bbo_problems.tensor_compiler.tasks.kernel_families import FlagsFamily, Prior, SettingsFamily, TileFamily
from bbo_problems.tensor_compiler.tasks.kernel_problem import TileProblem
from bbo_problems.tensor_compiler.tasks.programs import program
from bbo_suite import Problem, Status, UserError


@pytest.mark.slow
@pytest.mark.parametrize("instance", ["resnet50", "rnn", "transformer@v4"])
@pytest.mark.parametrize("family", ["tile", "flags"])
def test_the_default_has_the_cost_of_the_default_of_fusion(family: str, instance: str) -> None:
    kernels, fusion = (bbo_suite.problem(f"{f}/{instance}") for f in (family, "fusion"))
    costs = [problem.evaluate(problem.default[None]).values[0] for problem in (kernels, fusion)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


@cache
def alone(family: str, kernel: int) -> Problem:
    """Return the task on one kernel of the program `rnn`."""
    return bbo_suite.problem(f"{family}/rnn#{kernel}")


@pytest.mark.slow
@pytest.mark.parametrize("family, step", [("tile", 1), ("flags", 5)])
def test_the_cost_of_a_program_is_the_sum_of_its_kernels(family: str, step: int) -> None:
    whole = bbo_suite.problem(f"{family}/rnn")
    rng, slots = np.random.default_rng(0), len(whole.slots)
    row, change = whole.default.copy(), 0.0
    for k in range(0, len(whole.results), step):
        single = alone(family, k)
        trial = single.space.sample(20, rng)
        costs = single.evaluate(trial)
        pick = int(np.flatnonzero(costs.status == Status.OK)[0]) if (costs.status == Status.OK).any() else None
        config = single.default if pick is None else trial[pick]
        row[k * slots : (k + 1) * slots] = config
        values = single.evaluate(np.array([config, single.default])).values
        change += (values[0] - values[1]) * whole.runs[k]
    before, after = whole.evaluate(np.array([whole.default, row])).values
    assert after - before == pytest.approx(change, rel=1e-9)
    assert change != 0


@pytest.mark.parametrize("family", ["tile", "flags"])
def test_exhaustive_search_proves_the_optimum_of_one_kernel(family: str, tmp_path: Path) -> None:
    problem = bbo_suite.problem(f"{family}/resnet50#4")
    size = problem.space.cardinality
    assert 1 < size < 10_000
    (run,) = bbo_suite.run("exhaustive", problem.id, budget=10_000, results=tmp_path)
    assert run["evaluations"] == run["unique"] == size
    every = problem.evaluate(bbo_suite.Enumeration(problem.space, np.random.default_rng(0)).rows(0, size)).values
    assert run["best"] == every.min()


@pytest.mark.slow
def test_facts_name_the_kernel_and_the_slowest_one() -> None:
    whole = bbo_suite.problem("tile/rnn")
    singles = [alone("tile", k) for k in range(len(whole.results))]
    costs = [single.evaluate(single.default[None]).values[0] for single in singles] * whole.runs
    slowest = int(np.argmax(costs))
    name = singles[slowest].space.name(0).partition(": ")[0]
    assert whole.facts()["slowest kernel"] == f"#{slowest} ({name})"
    assert singles[slowest].facts()[f"kernel #{slowest}"] == name


def test_a_tile_that_does_not_fit_is_a_compile_error_with_a_reason() -> None:
    problem = bbo_suite.problem("tile/resnet50")
    largest = (problem.space.sizes - 1)[None]
    found = problem.evaluate(largest)
    assert found.status[0] == Status.COMPILE_ERROR
    assert np.isinf(found.values[0])
    assert "scratchpad" in found.reasons[0]


@pytest.mark.parametrize("kernel", ["x", "-1", "02", "100000"])
def test_a_missing_kernel_gives_one_sentence(kernel: str) -> None:
    with pytest.raises(UserError, match="kernels #0 to #"):
        bbo_suite.problem(f"tile/rnn#{kernel}")


def test_a_users_program_is_a_task(tmp_path: Path) -> None:
    file = tmp_path / "a#b@c.hlo.gz"
    file.write_bytes(program("rnn").read_bytes())
    whole, single, other = (bbo_suite.problem(f"tile:{file}{suffix}") for suffix in ("", "#2", "#2@v4"))
    assert len(single.space) == len(other.space) == 3 < len(whole.space)
    assert len({problem.fingerprint() for problem in (whole, single, other)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("family", [TileFamily, FlagsFamily, SettingsFamily])
def test_tasks_of_a_family_differ_in_shape_and_declare_the_same(family):
    made, rng = family("uniform"), np.random.default_rng(0)
    drawn = [made.sample(rng) for _ in range(10)]
    assert len({problem.fingerprint() for problem in drawn}) == 10
    assert len({problem.structure().feature_names for problem in drawn}) == 1
    for problem in drawn:
        rows = problem.space.sample(20, rng)
        costs = problem.evaluate_parts(rows)
        assert np.isfinite(problem.evaluate(problem.default[None]).values).all()
        assert np.allclose(costs.parts.sums(), costs.values)


@pytest.mark.slow
def test_the_prior_draws_shapes_of_the_corpus_and_crosses_them():
    rows = TileProblem("resnet50").kernels
    prior, rng = Prior(*np.unique(rows, axis=0, return_counts=True)), np.random.default_rng(0)
    drawn = np.array([prior.draw(rng) for _ in range(300)])
    known = {row.tobytes() for row in rows}
    same = [row.tobytes() in known for row in drawn]
    assert 0.2 < np.mean(same) < 1
    for size in (Kernel.ROWS, Kernel.DEPTH, Kernel.COLUMNS):
        assert set(drawn[:, size]) <= set(rows[:, size])
