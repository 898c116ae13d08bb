"""Files of arrays, hostile files, and the cache folder: no memory, no traceback, and no stranger's code."""

import gzip
import hashlib
import io
import json
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.exchange.table import CSV
from bbo_suite.files.arrays import ArrayFile
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


@pytest.mark.slow
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


@pytest.mark.slow
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


FILE = ArrayFile("model of toys", 3, "make one with `toys`", {"width": 8}, old_key="toys")
ARRAYS = {"0": np.arange(6.0).reshape(2, 3), "b": np.array([True])}


def packed(header, **arrays):
    """Return an .npz with a header, which may be text or bytes."""
    file = io.BytesIO()
    np.savez(file, header=header, **arrays)
    return file.getvalue()


HEADER = json.dumps({"kind": "model of toys", "version": 3, "width": 8})
ODD = [np.ones(2, complex), np.array(["x"]), np.array([b"x"]), np.array(["2020"], "M8[D]"), np.array([5], "m8[s]")]
ODD += [np.zeros(2, [("a", float)]), np.zeros(2, "V4")]


def zipped(**entries):
    """Return a zip file with any entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def as_bytes(**header):
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def lines(header, weights, digest=None):
    """Return a file of the older form."""
    header = header | {"sha256": digest or hashlib.sha256(weights).hexdigest()}
    return json.dumps(header).encode() + b"\n" + weights


def npy(array=None, shape=(), descr="<f4"):
    """Return an array as a file of numpy; without an array, only the header of one."""
    file = io.BytesIO()
    if array is not None:
        np.save(file, array, allow_pickle=True)
    else:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a file ran code",)


def test_what_is_written_is_read(tmp_path):
    FILE.save(tmp_path / "a.npz", {"names": ["x"]}, ARRAYS)
    header, arrays = FILE.load((tmp_path / "a.npz").read_bytes(), "a")
    assert header == {"kind": "model of toys", "version": 3, "width": 8, "names": ["x"]}
    assert arrays.keys() == ARRAYS.keys() and all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    with pytest.raises(UserError, match="cannot be written"):
        FILE.save(tmp_path / "no" / "a.npz", {}, ARRAYS)


@pytest.mark.parametrize(
    "content",
    [
        packed(as_bytes(toys=3, width=8), a=np.ones(2)),
        packed(np.array(json.dumps({"version": 3, "width": 8})), a=np.ones(2)),
        lines({"version": 3, "width": 8}, npy(np.ones(2)) + npy(np.zeros((1, 1)))),
    ],
    ids=["version under another key", "header as text", "a line and arrays"],
)
def test_files_that_were_written_before_are_read(content):
    header, arrays = FILE.load(content, "a")
    assert header["width"] == 8 and next(iter(arrays.values())).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a model of toys"),
        (pickle.dumps(Bomb()), "is not a model of toys"),
        (packed(np.array([Bomb()], object)), "is not a model of toys"),
        (packed(as_bytes(version=3, width=8), a=np.array([Bomb()], object)), "is not a model of toys"),
        (packed(as_bytes(width=8)), "is not a model of toys"),
        (packed(as_bytes(kind="policy", version=3, width=8)), "is not a model of toys"),
        (packed(as_bytes(version=2, width=8)), "has version 2, but 3 is needed"),
        (packed(as_bytes(version=3)), "has width None, but 8 is needed"),
        (lines({"version": 3, "width": 8}, npy(np.ones(2)), "other"), "is damaged"),
        (lines({"version": 3, "width": 8}, npy(np.ones(2))[:-1]), "is not a model of toys"),
        (lines({"version": 3, "width": 8}, npy(np.array([Bomb()], object))), "is not a model of toys"),
        (lines({"version": 3, "width": 8}, npy(shape=(10**6, 10**6))), "is not a model of toys"),
        (lines({"version": 3, "width": 8}, npy(np.ones(2) * 1j)), "'0' holds complex128"),
        *((zipped(**{"header.npy": entry}), "has no header") for entry in (b"", b"{}", HEADER.encode())),
        *((packed(odd), "has no header") for odd in (np.ones(2), np.array([1j]), np.array(["2020"], "M8[D]"))),
        (packed(as_bytes(version=3, width=8)[:9]), "is not a model of toys"),
        (packed(np.array([HEADER, HEADER])), "is not a model of toys"),
        (packed(np.array(7, np.uint8)), "is not a model of toys"),
        (zipped(**{"header.npy": npy(np.array(HEADER)), "a": b"1,2"}), "'a' is no array"),
        *((packed(np.array(HEADER), a=odd), "'a' holds .*, not real numbers") for odd in ODD),
    ],
)
def test_any_other_file_is_one_sentence_with_a_remedy(content, words):
    with pytest.raises(UserError, match=words) as error:
        FILE.load(content, "a")
    assert str(error.value).endswith("; make one with `toys`") and "\n" not in str(error.value)


def test_a_file_that_unpacks_to_too_much_is_refused():
    file = io.BytesIO()
    np.savez_compressed(file, header=as_bytes(version=3, width=8), a=np.zeros(10**5))
    small = ArrayFile("model of toys", 3, "make one with `toys`", largest=10**5)
    with pytest.raises(UserError, match="unpacks to more than"):
        small.load(file.getvalue(), "a")
