"""Makes `tests/bbo_suite/toys.py` importable as `bbo_toys`, without a folder on the path that could hide a package.

Also runs the command line in this process.
"""

import functools
import importlib.util
import resource
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from hypothesis import settings

from bbo_suite import registry
from bbo_suite.__main__ import main

typer.main.get_command = functools.cache(typer.main.get_command)  # a process of a user needs it once

settings.register_profile("untimed", deadline=None, max_examples=25)  # no time limit: machines differ in speed
settings.load_profile("untimed")

spec = importlib.util.spec_from_file_location("bbo_toys", Path(__file__).with_name("toys.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["bbo_toys"] = module
spec.loader.exec_module(module)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def suite(tmp_path, monkeypatch, capsys):
    """Return a function that runs `python -m bbo_suite` with arguments in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        if arguments[:1] == ("run",) and not {"--jobs", "--cluster"} & set(arguments):
            arguments = (*arguments, "--jobs", 1)  # other processes would keep the folder of an earlier test
        monkeypatch.setattr(sys, "argv", ["bbo_suite", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def toy():
    """Return the arguments that add the toy problem and the toy strategy."""
    folder = Path(__file__).with_name("plugins")
    return ("--plugin", folder / "toy.py", "--plugin", folder / "pick.py")


@dataclass(frozen=True)
class Point:
    """An entry point as `importlib.metadata` gives it."""

    name: str
    load: Callable


@pytest.fixture
def points(monkeypatch):
    """Return a function that adds an entry point to the strategies and to the problems."""
    added = []
    real = registry.entry_points
    monkeypatch.setattr("bbo_suite.registry.entry_points", lambda group: [*real(group=group), *added])
    return lambda name, load: added.append(Point(name, load))


@pytest.fixture
def dask(tmp_path):
    """Return a cluster of processes."""
    (tmp_path / "dask").mkdir()
    made = module.Cluster(tmp_path / "dask")
    yield made
    made.end()


@pytest.fixture
def full_disk():
    """Return a context manager that limits the size of files in bytes."""

    @contextmanager
    def limited(size):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
