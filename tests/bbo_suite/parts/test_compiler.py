import os
from pathlib import Path

import numba

import bbo_problems.tensor_compiler.compiled as package
from bbo_suite.parts import compiler as module
from bbo_suite.parts.compiler import Compiler, prepare_folder, sources_hash


def test_an_edit_in_a_subfolder_changes_the_folder(tmp_path):
    source = tmp_path / "package" / "room" / "code.py"
    source.parent.mkdir(parents=True)
    source.write_text("VALUE = 1\n")
    before = sources_hash(tmp_path / "package")
    assert sources_hash(tmp_path / "package") == before
    source.write_text("VALUE = 2\n")
    assert sources_hash(tmp_path / "package") != before


def test_the_folder_in_use_is_that_of_all_sources_of_the_package():
    folder, engine = Path(package.__file__).parent, Path(module.__file__).parent
    assert package.COMPILER._folder.name == f"compiled-{sources_hash(folder, engine)}"
    assert folder not in package.COMPILER._folder.parents


def test_only_the_folders_used_last_are_kept(tmp_path):
    for number in range(20):
        folder = prepare_folder(tmp_path, str(number))
        (folder / "code.nbi").write_bytes(b"")
        os.utime(folder, (number, number))
    prepare_folder(tmp_path, "0")
    assert {path.name for path in tmp_path.iterdir()} == {f"compiled-{i}" for i in (0, *range(13, 20))}


def test_a_folder_that_cannot_be_made_turns_the_cache_off(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert prepare_folder(tmp_path / "file", "0") is None
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file"))
    double = Compiler(tmp_path).function()(lambda x: 2 * x)
    assert double(3) == 6 and isinstance(double._cache, numba.core.caching.NullCache)


def test_the_folder_is_used_for_the_package_only(tmp_path):
    compiler, before = Compiler(tmp_path), numba.config.CACHE_DIR
    compiler.function()(sources_hash)
    assert before == numba.config.CACHE_DIR
