"""Imports run one way, between and inside the three packages; and nothing heavy is imported before it is used."""

import ast
import subprocess
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"bbo_suite": "bbo_suite", "bbo_strategies": "strategies", "bbo_problems": "problems"}
MAY = {"bbo_suite": set(), "bbo_strategies": {"bbo_suite"}, "bbo_problems": {"bbo_suite"}}
HEAVY = ("pandas", "sklearn", "matplotlib", "numba", "jax", "scipy", "joblib", "optuna", "nevergrad", "torch")
LIGHT = ("annealing", "evolution", "exhaustive", "random")


def base_of(node, package):
    """Return the absolute name of the module that a `from` of a file of a package imports from."""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def imported(nodes, package):
    """Return the absolute names of all modules that a file of a package imports, wherever it does."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield base_of(node, package)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
            yield from [str(node.args[0].value)] if called in ("import_module", "__import__") else []


@cache
def nodes_of(path):
    """Return the imports and calls of a file, wherever they are."""
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in found if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]


def files(package):
    root = ROOT / FOLDERS[package]
    for path in sorted(root.rglob("*.py")):
        yield path, ".".join([package, *path.relative_to(root).parent.parts])


@pytest.mark.parametrize("package", FOLDERS)
def test_imports_run_one_way(package):
    seen = list(files(package))
    assert len(seen) > 3
    for path, own in seen:
        for name in imported(nodes_of(path), own):
            root = name.split(".")[0]
            assert root not in ("strategies", "problems"), f"{path} imports {name} by its folder's name"
            assert root == package or root not in MAY or root in MAY[package], f"{path} imports {name}"


def test_the_reader_of_imports_sees_all_kinds():
    text = "import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\ndef h():\n    __import__('i')\n"
    assert list(imported(ast.walk(ast.parse(text)), "p.q")) == ["a.b", "c", "p.q", "p.f", "i"]


def engine():
    """Return which rooms of the engine each room imports, wherever it does; a file of the root is a room of its own."""
    found = {}
    for path, own in files("bbo_suite"):
        room = own.split(".")[1] if "." in own else path.stem
        for node in nodes_of(path):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = base_of(node, own)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names if base == "bbo_suite")]
            rooms = {name.split(".")[1] for name in names if name.startswith("bbo_suite.")}
            found.setdefault(room, set()).update(rooms - {room})
    return {room: found.get(room, set()) for room in ROOMS}


ROOMS = sorted(
    path.stem for path in (ROOT / "bbo_suite").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
)


def modules(package):
    """Return which modules of its own package each module imports, wherever it does; `__init__` files are left out."""
    names = {f"{own}.{path.stem}": (path, own) for path, own in files(package) if path.stem != "__init__"}
    found = {}
    for name, (path, own) in names.items():
        needs = set()
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                base = base_of(node, own)
                needs |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        found[name] = needs & names.keys() - {name}
    return found


def circle(needs):
    """Return what is left when everything is taken away, again and again, whose needs are taken away."""
    left = dict(needs)
    while free := {name for name, own in left.items() if not own & left.keys()}:
        left = {name: own for name, own in left.items() if name not in free}
    return left


def test_the_engine_has_no_circle_between_rooms():
    rooms = engine()
    assert rooms["runs"] >= {"core", "store"} and "cli" in rooms["__main__"]
    rooms.pop("__init__")  # the public API: every import of anything runs it
    assert not circle(rooms)


@pytest.mark.parametrize("package", FOLDERS)
def test_no_package_has_a_circle_between_files(package):
    needs = modules(package)
    assert sum(map(len, needs.values())) > 20
    assert not circle(needs)


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}).keys() == {"a", "b", "c"}


def loaded_by(code):
    code = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
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


FILES_OF_A_RUN = {"RUN", "ROWS", "END", "ERROR", "DIAGNOSTICS", "PLANNED"}


def names_of_files(nodes):
    """Return the names of a run's files that a module imports from the store."""
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    names = [(node.module, alias.name) for node in imports for alias in node.names]
    return {name for module, name in names if "store." in f"{module}." and name in FILES_OF_A_RUN}


def test_only_the_store_and_watch_which_follows_files_that_grow_know_the_files_of_a_run():
    assert names_of_files(ast.walk(ast.parse("from ..store.folders import RUN, run_folders"))) == {"RUN"}
    store, watch = ROOT / "bbo_suite" / "store", {"watch.py", "run_view.py"}
    others = [path for path, _ in files("bbo_suite") if store not in path.parents and path.name not in watch]
    assert len(others) > 50
    assert {str(path): found for path in others if (found := names_of_files(nodes_of(path)))} == {}


ORDER = ("hlo", "models", "hardware", "graph", "layout", "fusion", "passes", "structure", "tasks", "calibration")
"""A folder, or the module `passes`, imports only what stands before it."""
COMPILER = ROOT / "problems" / "tensor_compiler"


def folders_imported(path: Path) -> set[str]:
    """Return the folders and modules of the root that a file imports, wherever in the file it does."""
    found = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
    outside = [node for node in found if node.level == (1 if path.parent == COMPILER else 2)]
    names = [node.module.split(".")[0] if node.module else node.names[0].name for node in outside]
    return set(names)


@pytest.mark.parametrize("name", ORDER)
def test_a_folder_imports_only_what_stands_before_it(name: str) -> None:
    for path in sorted((COMPILER / name).glob("*.py")) or [COMPILER / f"{name}.py"]:
        assert folders_imported(path) <= set(ORDER[: ORDER.index(name)]), path
        assert "bbo_problems" not in path.read_text().replace("python -m bbo_problems", ""), path


def test_every_folder_has_its_place_in_the_order() -> None:
    modules = [path.stem for path in COMPILER.glob("*.py") if path.stem not in ("__init__",)]
    assert {path.parent.name for path in COMPILER.glob("*/__init__.py")} | set(modules) == set(ORDER)
