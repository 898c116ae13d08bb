"""File formats of other tools, one per file: `export` writes studies in them, `import` reads runs from them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..errors import UserError
from .formats import Format

MODULES = {
    "ioh": "ioh",
    "coco": "coco",
    "t4": "t4",
    "kernel-tuner": "kernel_tuner",
    "parquet": "parquet_table",
    "csv": "csv_table",
    "optuna": "optuna_journal",
    "digests": "digest_table",
}
"""The module of each format by the name that `--to` takes; to add one, add a line here and a file in this folder."""


def named(name: str) -> Format:
    """Return the format of a name in `MODULES`."""
    return import_module(f".{MODULES[name]}", __name__).FORMAT


def recognised(path: Path) -> tuple[str, Format]:
    """Return the name and the format of a file or folder, recognised by its content.

    Raises:
      UserError: it cannot be read, or has no known format.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except IsADirectoryError:
        start = b""
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    for name in MODULES:
        if (found := named(name)).recognises(path, start):
            return name, found
    if not start and not path.is_dir():
        raise UserError(f"cannot import {path}: it is empty")
    if why := import_module(f".{MODULES['csv']}", __name__).lacks(path, start):
        raise UserError(f"cannot import {path}: {why}")
    tables = "CSV or Parquet with a row for each evaluation, the columns evaluation and value at least"
    known = f"IOHprofiler data, {tables}, or an Optuna storage"
    raise UserError(f"cannot import {path}: it is not {known}")
