"""A small model for tasks of one kernel."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_problems.tensor_compiler.tasks.kernel_families import TileFamily
from bbo_strategies.one_shot import OneShot
from bbo_suite import Level
from bbo_suite.core.evaluation import default_value
from bbo_suite.pretraining import Lesson


def lesson(problem, level=Level.STRUCTURE):
    return Lesson(problem.task(level), default_value(problem), lambda rows: problem.evaluate(rows).values)


@pytest.fixture(scope="session")
def lesson_of():
    """Return what makes a lesson of a problem."""
    return lesson


@pytest.fixture(scope="session")
def problems():
    family, rng = TileFamily("uniform"), np.random.default_rng(0)
    drawn = [family.sample(rng) for _ in range(8)]
    for number, problem in enumerate(drawn):
        problem.id = f"tile/uniform #{number}"
    return drawn


@pytest.fixture(scope="session")
def lessons(problems):
    return [lesson(problem) for problem in problems]


@pytest.fixture(scope="session")
def model(lessons, tmp_path_factory):
    """Return the file of a small model, and the messages of its training."""
    out, told = tmp_path_factory.mktemp("models") / "m.npz", []
    options = OneShot.Options(steps=50)
    OneShot.pretrain(lessons, 8 * 64, np.random.default_rng(1), options, out, lambda n, words: told.append((n, words)))
    return out, told
