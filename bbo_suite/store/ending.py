"""How a run ended: the content of `end.json`, which its writer adds last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..files.reading import DamagedFile, read_json
from .folders import END, has_ended


def read_end(path: Path) -> dict[str, Any] | None:
    """Return the content of the `end.json` in a run's folder; None if the run has not ended.

    Raises:
      DamagedFile: it is damaged.
      UserError: it cannot be read.
    """
    return read_json(path / END) if has_ended(path) else None


def complete(path: Path, evaluations: int) -> bool:
    """Return whether the run of a folder has ended and all of its rows are still there."""
    return _end(path).get("evaluations") == evaluations


def end_reason(path: Path, evaluations: int) -> str | None:
    """Return why a complete run ended; None if it is not complete."""
    end = _end(path)
    return str(end.get("reason", "")) if end.get("evaluations") == evaluations else None


def _end(path: Path) -> dict[str, Any]:
    """Return the content of `end.json`; empty if it is missing or damaged, for a replay of the rows writes it again."""
    try:
        return read_end(path) or {}
    except DamagedFile:
        return {}
