"""Hostile files cost neither memory nor a traceback; the cache folder, whose code is executed, is its user's alone."""

import gzip
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.exchange.table import CSV
from bbo_suite.files.cache import cache_folder
from bbo_suite.files.reading import parse_json, read_bounded


@pytest.fixture(scope="module")
def bomb():
    """Return 2 MB that unpack to 2 GiB of spaces."""
    return gzip.compress(b" " * (1 << 24), mtime=0) * 128


@pytest.fixture
def memory():
    """Fail if the test holds more than 100 MB at a time."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(
    "family", ["recorded", *(pytest.param(name, marks=pytest.mark.slow) for name in ("llvm", "xla-passes"))]
)
def test_a_bomb_is_refused_in_little_memory(family, tmp_path, bomb, memory):
    (tmp_path / "bomb.gz").write_bytes(bomb)
    with pytest.raises(UserError, match="unpacks to more than"):
        bbo_suite.problem(f"{family}:{tmp_path / 'bomb.gz'}")


@pytest.mark.slow
def test_a_table_that_is_a_bomb_is_refused_in_little_memory(tmp_path, bomb, memory):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"evaluation,value\n") + bomb)
    with pytest.raises(ValueError, match="unpacks to more than"):
        next(CSV.read(tmp_path / "t.csv.gz"))


def test_a_line_without_an_end_is_refused_in_little_memory(tmp_path, memory):
    with (tmp_path / "t.csv").open("wb") as file:
        file.write(b"evaluation,value\n")
        file.truncate(1 << 28)  # zeros, on a disk that need not hold them
    with pytest.raises(ValueError, match="it has a line of more than"):
        next(CSV.read(tmp_path / "t.csv"))


def test_arrays_that_are_a_bomb_are_refused_in_little_memory(tmp_path, memory):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as packed, packed.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 23,)})
        for _ in range(64):
            file.write(bytes(1 << 20))
    with pytest.raises(UserError, match="unpacks to more than"):
        bbo_suite.problem(f"recorded:{tmp_path / 'bomb.npz'}")


def test_what_is_small_or_packs_well_is_read(tmp_path):
    text = b" " * (1 << 22)
    (tmp_path / "small.gz").write_bytes(gzip.compress(text))
    assert read_bounded(tmp_path / "small.gz", 1 << 22) == text
    digits = np.random.default_rng(0).integers(48, 58, 1 << 20, np.uint8).tobytes()
    (tmp_path / "honest.gz").write_bytes(gzip.compress(digits + text))
    assert read_bounded(tmp_path / "honest.gz", 1 << 23) == digits + text


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "", "{", "\ud800"])
def test_hostile_json_is_one_sort_of_error(text):
    with pytest.raises(ValueError, match=r"^[^\n]{5,200}$"):
        parse_json(text)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_in_wide_characters_is_refused_by_its_name(tmp_path, coding, packed):
    data = '{"results": []}'.encode(coding)
    (tmp_path / "wide").write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(ValueError, match="text in UTF-16 or UTF-32; save it as UTF-8"):
        read_bounded(tmp_path / "wide", 1000)


def test_a_pipe_a_device_and_a_folder_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero")):
        with pytest.raises(OSError, match="it is a pipe or a device; write its content to a file"):
            read_bounded(path, 1000)
    with pytest.raises(OSError, match="Is a directory"):
        read_bounded(tmp_path, 1000)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/bbo_suite"


def test_only_its_owner_may_enter_the_cache_folder(folder):
    assert cache_folder("a") == folder / "a" and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)  # as it was made before
    cache_folder()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_cache_folder_that_others_can_write_to_or_own_is_refused(folder, monkeypatch):
    cache_folder()
    for mode in (0o777, 0o770):
        folder.chmod(mode)
        with pytest.raises(UserError, match="other users can write"):
            cache_folder()
    folder.chmod(0o700)
    owner = os.geteuid() or 1
    os.chown(folder, owner, -1) if os.geteuid() == 0 else None
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(UserError, match="belongs to another user"):
        cache_folder()


def test_a_relative_cache_folder_is_ignored_and_no_home_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/bbo_suite" and not (tmp_path / "here").exists()
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(UserError, match="there is no home folder"):
        cache_folder()
