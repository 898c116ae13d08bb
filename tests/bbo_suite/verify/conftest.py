"""A stored study that each test changes as it likes."""

import shutil
from pathlib import Path

import pytest

import bbo_suite

PLUGINS = [Path(__file__).parents[1] / "plugins" / name for name in ("toy.py", "pick.py")]


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """Return a folder with a study of two strategies on the toy problem."""
    results = tmp_path_factory.mktemp("stored")
    settings = {"budget": 60, "batch": 8, "study": "s", "results": results, "plugins": PLUGINS, "jobs": 1}
    bbo_suite.run(["pick", "annealing"], "toy/small", quiet=True, **settings)
    return results


@pytest.fixture
def study(stored, toy, tmp_path):
    """Copy the study and return the arguments that see it."""
    shutil.copytree(stored, tmp_path / "results")
    return ("s", *toy)
