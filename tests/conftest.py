"""Lets all tests, and the processes they start, share caches of compiled code, whatever their XDG_CACHE_HOME is."""

import gc
import os
from pathlib import Path

import pytest

# As in a stored run, one thread: tests run in parallel, and threads that wait for one another take ten times as long.
for _library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from bbo_suite.files.cache import cache_folder  # noqa: E402 - it may load numpy

os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
# The models of tests are small: nearly all of their time is compilation.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder("jax")))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
gc.set_threshold(20_000)  # else collecting garbage takes a twentieth of the time


_COMPILED = [Path(__file__).parent / "problems" / family for family in ("learned", "tensor_compiler")]


def pytest_collection_modifyitems(items):
    """Begin with tests that need much compiled code: one of the processes compiles it, and the others find it."""
    items.sort(key=lambda item: not any(folder in item.path.parents for folder in _COMPILED))


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache of results, so that a test neither reads nor writes the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
