"""`export`: a stored study in the format of another tool."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..errors import UserError
from ..files.writing import disk_errors
from ..registry import Registry
from . import named
from .stored_study import stored_study


def export(study: str, to: str, out: Path | None, results: Path, registry: Registry) -> tuple[Path, list[str]]:
    """Write a study in a format of `exchange.MODULES`; return the path and a sentence for each thing left out.

    The file has the suffix `.part` until it is complete.

    Args:
      out: the file, or the folder if the format has many files; by default in the study's folder.

    Raises:
      UserError: there is no such study, it is damaged, or the path exists already.
    """
    file_format, source = named(to), stored_study(study, results, registry)
    path = (
        results / study / "export" / f"{to if not file_format.suffix else study}{file_format.suffix}"
        if out is None
        else out
    )
    part = path.with_name(f"{path.name}.part")
    if path.exists():
        raise UserError(f"{path} exists already; remove it or choose another --out")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(part)
        try:
            notes = file_format.write(source, part)
            part.replace(path)
        except ValueError as error:
            raise UserError(f"cannot export study {study!r} from {results}: {error}") from None
        finally:
            _remove(part)
    return path, notes


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
