"""The tree stays light, so that a shallow clone is quick."""

import shutil
import subprocess
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
