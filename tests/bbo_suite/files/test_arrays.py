"""Files of arrays: what is written is read again, older forms are read, and what a stranger wrote runs no code."""

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from bbo_suite import UserError
from bbo_suite.files.arrays import ArrayFile

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
