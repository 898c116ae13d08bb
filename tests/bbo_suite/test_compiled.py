import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

import bbo_problems.tensor_compiler.layout.variables as compiled_module
import bbo_suite
from bbo_suite.compiled import (
    Compiler,
    compiled_for,
    family_of,
    handle,
    load,
    name_of_type,
    prepare_folder,
    sources_hash,
)

ENGINE = Path(bbo_suite.__file__).parent


def test_an_edit_in_a_subfolder_changes_the_folder(tmp_path):
    source = tmp_path / "package" / "room" / "code.py"
    source.parent.mkdir(parents=True)
    source.write_text("VALUE = 1\n")
    before = sources_hash(tmp_path / "package")
    assert sources_hash(tmp_path / "package") == before == sources_hash(source)
    source.write_text("VALUE = 2\n")
    assert sources_hash(tmp_path / "package") != before


def test_a_family_is_the_folder_in_the_outermost_package(tmp_path):
    deep = tmp_path / "outermost" / "family" / "room" / "code.py"
    for folder in deep.parents[:3]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    assert family_of(deep) == tmp_path / "outermost" / "family"
    for alone in (tmp_path / "outermost" / "code.py", tmp_path / "plugin.py"):
        assert family_of(alone) == alone


def test_the_folder_in_use_is_that_of_all_sources_of_the_family_and_of_the_engine():
    family = Path(compiled_module.__file__).parents[1]
    folder = compiled_module.compiled.folder
    assert family.name == "tensor_compiler" and family not in folder.parents
    assert folder.name == f"compiled-{family.name}-{sources_hash(family, ENGINE / 'compiled.py', ENGINE / 'parts')}"


def test_of_each_family_only_the_folders_used_last_are_kept(tmp_path):
    for number in range(20):
        for family in ("fusion", f"other{number}"):
            folder = prepare_folder(tmp_path, family, str(number))
            (folder / "code.nbi").write_bytes(b"")
            os.utime(folder, (number, number))
    prepare_folder(tmp_path, "fusion", "0")
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {f"compiled-other{i}-{i}" for i in range(20)} | {f"compiled-fusion-{i}" for i in (0, 18, 19)}


def test_a_folder_that_cannot_be_made_turns_the_cache_off(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert prepare_folder(tmp_path / "file", "fusion", "0") is None
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file"))
    compiler = Compiler(tmp_path)
    assert compiler.folder is None and compiler()(lambda x: 2 * x)(3) == 6


def twice(x):
    return 2 * x


SIGNATURE = numba.float64(numba.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: bytes(len(data)),
        lambda data: data[: len(data) // 3] + bytes([data[len(data) // 3] ^ 1]) + data[len(data) // 3 + 1 :],
    ],
)
def test_damaged_code_is_compiled_again_and_replaced(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiler = Compiler(Path(__file__))

    def results():
        return compiler()(twice)(3), compiler.callback(SIGNATURE)(twice).ctypes(3.0)

    assert results() == (6, 6.0)
    files = sorted(compiler.folder.rglob("*.nb[ci]"))
    assert {file.suffix for file in files} == {".nbc", ".nbi"} and numba.core.dispatcher.FunctionCache is FunctionCache
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
        assert results() == (6, 6.0)
        content, end = file.read_bytes()[:-32], file.read_bytes()[-32:]
        assert hashlib.sha256(content).digest() == end
        stamp = file.stat().st_mtime_ns
        assert results() == (6, 6.0) and file.stat().st_mtime_ns == stamp  # now it is read


def test_only_what_python_calls_unpacks_its_objects(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiled = Compiler(Path(__file__))
    double = compiled()(twice)
    four_times = compiled()(lambda number: double(double(number)))
    assert four_times(3) == 12 and four_times.twin.signatures and not double.twin.signatures
    assert double(x=5.0) == 10 and len(double.twin.signatures) == 1


class Inner(NamedTuple):
    matrix: np.ndarray
    empty: np.ndarray


class Outer(NamedTuple):
    costs: np.ndarray
    inner: Inner
    fixed: np.ndarray


KEPT = Outer(
    np.arange(6.0)[::2], Inner(np.arange(12, dtype=np.int32).reshape(3, 4).T, np.empty((0, 2), bool)), np.eye(3)
)
KEPT.fixed.flags.writeable = False
KIND = name_of_type(KEPT)


@compiled_for(__file__)(runtime=False)
def looked_up(address, out):
    value = load(address, KIND)
    out[0], out[1], out[2] = value.costs[2], value.inner.matrix[3, 1], value.fixed[1, 1]
    out[3], out[4] = len(value.inner.empty), value.inner.empty.shape[1]
    value.costs[0] = 7


def test_compiled_code_finds_the_arrays_of_a_handle():
    out, memory = np.zeros(5), handle(KEPT)
    looked_up(memory.ctypes.data, out)
    assert out.tolist() == [4, 7, 1, 0, 2] and KEPT.costs.tolist() == [7, 2, 4]
