"""Imports run one way: strategies -> bbo_suite <- problems; and nothing heavy is imported before it is used."""

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"bbo_suite": "bbo_suite", "bbo_strategies": "strategies", "bbo_problems": "problems"}
MAY = {"bbo_suite": set(), "bbo_strategies": {"bbo_suite"}, "bbo_problems": {"bbo_suite"}}
HEAVY = ("pandas", "sklearn", "matplotlib", "numba", "jax", "scipy", "joblib", "optuna", "nevergrad", "torch")
LIGHT = ("annealing", "evolution", "exhaustive", "random")


def imported(text, package):
    """Return the absolute names of all modules that a file of a package imports, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            yield ".".join([*base, *([node.module] if node.module else [])])
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
            yield from [str(node.args[0].value)] if called in ("import_module", "__import__") else []


def files(package):
    root = ROOT / FOLDERS[package]
    for path in sorted(root.rglob("*.py")):
        yield path, ".".join([package, *path.relative_to(root).parent.parts])


@pytest.mark.parametrize("package", FOLDERS)
def test_imports_run_one_way(package):
    seen = list(files(package))
    assert len(seen) > 3
    for path, own in seen:
        for name in imported(path.read_text(encoding="utf-8"), own):
            root = name.split(".")[0]
            assert root not in ("strategies", "problems"), f"{path} imports {name} by its folder's name"
            assert root == package or root not in MAY or root in MAY[package], f"{path} imports {name}"


def test_the_reader_of_imports_sees_all_kinds():
    text = "import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\ndef h():\n    __import__('i')\n"
    assert list(imported(text, "p.q")) == ["a.b", "c", "p.q", "p.f", "i"]


def loaded_by(code):
    code = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import bbo_suite",
        f"from bbo_suite.registry import Registry\nfor name in {LIGHT}: Registry().strategy(name)",
        "from bbo_suite.registry import Registry\nprint(len(Registry().strategies()), len(Registry().families()))",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code):
    loaded = loaded_by(code)
    assert "numpy" in loaded
    assert not loaded & set(HEAVY)


def test_every_entry_point_names_a_file_of_its_folder():
    for group, package in (("bbo_suite.strategies", "bbo_strategies"), ("bbo_suite.problems", "bbo_problems")):
        points = [point for point in entry_points(group=group) if point.module.split(".")[0] in FOLDERS]
        assert points and all(point.module.split(".")[0] == package for point in points)
