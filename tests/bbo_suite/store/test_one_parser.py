"""Only `store` reads the files of a run, and `watch`, which follows files that grow: nobody else knows their names."""

import ast
from pathlib import Path

import bbo_suite

ROOT = Path(bbo_suite.__file__).parent
WATCH = {"watch.py", "run_view.py"}
FILES = {"RUN", "ROWS", "END", "ERROR", "DIAGNOSTICS", "PLANNED"}


def names_of_files(text):
    """Return the names of a run's files that a module imports from the store."""
    imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom))
    return {
        alias.name for node in imports if "store." in f"{node.module}." for alias in node.names if alias.name in FILES
    }


def test_no_other_room_knows_the_files_of_a_run():
    assert names_of_files("from ..store.folders import RUN, run_folders") == {"RUN"}
    others = [
        path for path in ROOT.rglob("*.py") if "store" not in path.relative_to(ROOT).parts and path.name not in WATCH
    ]
    assert len(others) > 50
    assert {str(path): found for path in others if (found := names_of_files(path.read_text(encoding="utf-8")))} == {}
