"""Families of tasks: kernels of random shapes."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel
from bbo_problems.tensor_compiler.tasks.kernel_families import FlagsFamily, Prior, SettingsFamily, TileFamily
from bbo_problems.tensor_compiler.tasks.kernel_problem import TileProblem

pytestmark = pytest.mark.slow  # compiles long


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


def test_the_prior_draws_shapes_of_the_corpus_and_crosses_them():
    rows = TileProblem("resnet50").kernels
    prior, rng = Prior(*np.unique(rows, axis=0, return_counts=True)), np.random.default_rng(0)
    drawn = np.array([prior.draw(rng) for _ in range(300)])
    known = {row.tobytes() for row in rows}
    same = [row.tobytes() in known for row in drawn]
    assert 0.2 < np.mean(same) < 1
    for size in (Kernel.ROWS, Kernel.DEPTH, Kernel.COLUMNS):
        assert set(drawn[:, size]) <= set(rows[:, size])
