"""The rooms of the tensor compiler import one another in one direction."""

import ast
from pathlib import Path

import pytest

import bbo_problems.tensor_compiler as package

ORDER = ("models", "hlo", "hardware", "graph", "layout", "fusion", "joint", "parts", "tasks", "calibration")
"""A room imports only rooms that stand before it; all may import the root's `compiled`."""
ROOT = Path(package.__file__).parent


def imported_rooms(path: Path) -> set[str]:
    """Return the rooms that a file in a room imports, wherever in the file it does."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    outside = [node for node in found if node.level == 2]
    names = [node.module.split(".")[0] if node.module else node.names[0].name for node in outside]
    return set(names) - {"compiled"}


@pytest.mark.parametrize("room", ORDER)
def test_a_folder_imports_only_folders_before_it(room: str) -> None:
    files = sorted((ROOT / room).glob("*.py"))
    assert len(files) > 1
    for path in files:
        assert imported_rooms(path) <= set(ORDER[: ORDER.index(room)]), path
        assert "bbo_problems" not in path.read_text().replace("python -m bbo_problems", ""), path


def test_every_folder_has_its_place_in_the_order() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(ORDER)
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "compiled.py"]
