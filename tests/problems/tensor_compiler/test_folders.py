"""The folders of the tensor compiler import one another in one direction."""

import ast
from pathlib import Path

import pytest

import bbo_problems.tensor_compiler as package

ORDER = ("hlo", "models", "hardware", "graph", "layout", "fusion", "passes", "structure", "tasks", "calibration")
"""A folder, or the module `passes`, imports only what stands before it."""
ROOT = Path(package.__file__).parent


def imported(path: Path) -> set[str]:
    """Return the folders and modules of the root that a file imports, wherever in the file it does."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    outside = [node for node in found if node.level == (1 if path.parent == ROOT else 2)]
    names = [node.module.split(".")[0] if node.module else node.names[0].name for node in outside]
    return set(names)


@pytest.mark.parametrize("name", ORDER)
def test_a_folder_imports_only_what_stands_before_it(name: str) -> None:
    files = sorted((ROOT / name).glob("*.py")) or [ROOT / f"{name}.py"]
    for path in files:
        assert imported(path) <= set(ORDER[: ORDER.index(name)]), path
        assert "bbo_problems" not in path.read_text().replace("python -m bbo_problems", ""), path


def test_every_folder_has_its_place_in_the_order() -> None:
    modules = [path.stem for path in ROOT.glob("*.py") if path.stem not in ("__init__",)]
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} | set(modules) == set(ORDER)
