"""The tree stays light, so that a shallow clone is quick; and a wheel holds all of it."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE_BYTES, TREE_BYTES = 1_000_000, 10_000_000


TOP = {"bbo_suite", "docs", "problems", "results", "strategies", "tests", ".ci", ".gitignore"}
TOP |= {"CITATION.cff", "LICENSE", "README.md", "pyproject.toml"}


def tracked() -> list[str]:
    """Return the names of the files of the tree."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


def test_the_top_level_shows_the_architecture_and_nothing_else():
    assert {name.split("/")[0] for name in tracked()} <= TOP


def test_no_large_file_and_a_small_tree():
    files = [ROOT / name for name in tracked()]
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in files if path.is_file()}
    assert len(sizes) > 100
    assert {name: size for name, size in sizes.items() if size > FILE_BYTES} == {}
    assert sum(sizes.values()) <= TREE_BYTES


def test_a_wheel_holds_every_folder_and_every_file_of_data():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    roots = {folder: package for package, folder in declared["package-dir"].items()}
    files = [Path(name) for name in tracked() if name.split("/")[0] in roots]
    folders = {".".join([roots[path.parts[0]], *path.parent.parts[1:]]) for path in files if path.suffix == ".py"}
    assert folders == set(declared["packages"])
    places = {package: ROOT / folder for folder, package in roots.items()}
    data = {
        path
        for package, patterns in declared["package-data"].items()
        for pattern in patterns
        for path in places[package.split(".")[0]].joinpath(*package.split(".")[1:]).glob(pattern)
    }
    assert {ROOT / path for path in files if path.suffix not in (".py", ".md")} <= data
