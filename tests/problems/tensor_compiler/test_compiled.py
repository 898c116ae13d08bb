import os
from pathlib import Path

import numba

import bbo_problems.tensor_compiler.compiled as module
from bbo_problems.tensor_compiler.compiled import compiled, prepare_folder, sources_hash


def test_an_edit_in_a_subfolder_changes_the_folder(tmp_path):
    source = tmp_path / "package" / "room" / "code.py"
    source.parent.mkdir(parents=True)
    source.write_text("VALUE = 1\n")
    before = sources_hash(tmp_path / "package")
    assert sources_hash(tmp_path / "package") == before
    source.write_text("VALUE = 2\n")
    assert sources_hash(tmp_path / "package") != before


def test_the_folder_in_use_is_that_of_all_sources_of_the_package():
    package = Path(module.__file__).parent
    assert module._FOLDER.name == f"compiled-{sources_hash(package)}"
    assert package not in module._FOLDER.parents


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
    monkeypatch.setattr(module, "_FOLDER", None)
    double = compiled()(lambda x: 2 * x)
    assert double(3) == 6 and isinstance(double._cache, numba.core.caching.NullCache)


def test_the_folder_is_used_for_the_package_only(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_FOLDER", tmp_path)
    before = numba.config.CACHE_DIR
    compiled()(sources_hash)
    assert before == numba.config.CACHE_DIR
