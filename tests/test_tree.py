"""The tree stays light, so that a shallow clone is quick; and a wheel holds all of it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE_BYTES, TREE_BYTES = 1_000_000, 10_000_000


TOP = {"bbo_suite", "docs", "problems", "results", "strategies", "tests", ".ci", ".gitignore"}
TOP |= {"CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "setup.py"}


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


@pytest.mark.slow
def test_a_wheel_holds_every_folder_and_every_file_of_data(tmp_path):
    roots = {"bbo_suite": "bbo_suite", "strategies": "bbo_strategies", "problems": "bbo_problems"}
    names = [Path(name) for name in tracked() if name.split("/")[0] in roots and not name.endswith(".md")]
    for name in [*names, Path("setup.py"), Path("pyproject.toml"), Path("README.md"), Path("LICENSE")]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    build = [sys.executable, "setup.py", "-q", "build", "--build-lib", "built"]
    subprocess.run(build, cwd=tmp_path, check=True)
    built = {str(path.relative_to(tmp_path / "built")) for path in (tmp_path / "built").rglob("*") if path.is_file()}
    assert built == {str(Path(roots[name.parts[0]], *name.parts[1:])) for name in names}
