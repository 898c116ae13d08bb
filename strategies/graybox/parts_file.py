"""Measured parts in a file: numpy's .npz with a header and numbers, and no pickle, so that reading one runs no code."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decomposition, UserError
from bbo_suite.core.versions import content
from bbo_suite.files.reading import parse_json

from .pretraining import PartsOfOthers

VERSION = 1
"""Raised whenever the meaning of a file changes."""
_REMEDY = "make one with `python -m bbo_suite pretrain --strategy graybox`"
_LARGEST = 1 << 26
"""Most bytes of all arrays of a file."""


def save(parts: PartsOfOthers, path: Path) -> None:
    """Write parts.

    Raises:
      UserError: the file cannot be written.
    """
    header = {"graybox": VERSION, "features": parts.names, "estimate": parts.estimate}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, features=parts.features, logs=parts.logs)
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def load(file: str, declared: Decomposition, task: str) -> PartsOfOthers:
    """Return the parts in a file, for a task that declares such parts. Nothing in the file is executed.

    Raises:
      UserError: the file holds no parts, is of another version, or has other features than the task.
    """
    path, data = content(file)
    header, features, logs = _read(path, data)
    if header["graybox"] != VERSION:
        raise UserError(f"{path} has version {header['graybox']}, but version {VERSION} is needed; pretrain it again")
    if header.get("features") != list(declared.feature_names) or header.get("estimate") != declared.estimate:
        raise UserError(f"{path} does not fit {task}: its parts have other features; pretrain on tasks of its family")
    shape = (len(logs), len(declared.feature_names))
    if features.shape != shape or not (np.isfinite(features).all() and np.isfinite(logs).all()) or not len(logs):
        raise UserError(f"{path} is damaged; {_REMEDY}")
    return PartsOfOthers(declared.feature_names, declared.estimate, features, logs)


def _read(path: str, data: bytes) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.float64]]:
    """Return the header, the features and the log costs of a file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > _LARGEST:
                raise ValueError("too large")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            header: Any = parse_json(arrays["header"].tobytes())
            features, logs = (arrays[name].astype(np.float64) for name in ("features", "logs"))
        if not isinstance(header, dict) or "graybox" not in header or features.ndim != 2 or logs.ndim != 1:
            raise ValueError("no header")
    except Exception:  # whatever a file that somebody wrote by hand makes zipfile and numpy raise
        raise UserError(f"{path} holds no parts for graybox; {_REMEDY}") from None
    return header, features, logs
