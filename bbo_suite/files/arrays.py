"""Arrays in files: numpy's .npz with a header in JSON and no pickle, so that reading a file runs none of its code."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .reading import parse_json


@dataclass(frozen=True)
class ArrayFile:
    """A kind of files.

    Attributes:
      kind: what such a file is, for the header and for messages.
      version: raised whenever the meaning of an array changes.
      remedy: what to do about a file that cannot be used.
      needs: further entries of the header that must be equal when a file is read.
      largest: most bytes that the arrays may unpack to.
      old_key: the entry of the header that held the version in files that do not name their kind.
    """

    kind: str
    version: int
    remedy: str
    needs: Mapping[str, Any] = field(default_factory=dict)
    largest: int = 1 << 26
    old_key: str = "version"

    def save(self, path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        """Write a file.

        Raises:
          UserError: it cannot be written.
        """
        text = json.dumps({"kind": self.kind, "version": self.version, **self.needs, **header})
        named: dict[str, Any] = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **named)
        try:
            path.write_bytes(buffer.getvalue())
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}") from None

    def load(self, content: bytes, path: str) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Return the header and the arrays of a file. What they mean is left to the caller to check.

        Args:
          content: of the file.
          path: its name, for messages.

        Raises:
          UserError: it is not of this kind, of another version, damaged, or too large.
        """
        try:
            header, arrays = (_lines if content[:1] == b"{" else self._packed)(content)
            _check_numbers(arrays)
        except DamagedArrays:
            raise self.damaged(path) from None
        except Exception as error:  # whatever a file that somebody wrote by hand makes zipfile and numpy raise
            raise UserError(f"{path} is not a {self.kind} ({_first_line(error)}); {self.remedy}") from None
        version = header.get("version", header.get(self.old_key))
        if header.get("kind", self.kind) != self.kind or version is None:
            raise UserError(f"{path} is not a {self.kind}; {self.remedy}")
        for key, wanted in {"version": self.version, **self.needs}.items():
            if (found := version if key == "version" else header.get(key)) != wanted:
                raise UserError(f"{self.kind} {path} has {key} {found}, but {wanted} is needed; {self.remedy}")
        return header, arrays

    def damaged(self, path: str, reason: object = None) -> UserError:
        """Return the error for a file whose arrays are not what its header says."""
        return UserError(f"{self.kind} {path} is damaged{f' ({reason})' if reason else ''}; {self.remedy}")

    def _packed(self, content: bytes) -> tuple[dict[str, Any], dict[str, NDArray]]:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > self.largest:
                raise ValueError(f"it unpacks to more than {self.largest >> 20:,} MiB")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}  # an entry that is no array is bytes
        text = arrays.pop("header", None)
        if not isinstance(text, np.ndarray) or text.dtype.kind not in "uU":
            raise ValueError("it has no header")
        return _header(text.tobytes() if text.ndim else text.item()), arrays


class DamagedArrays(Exception):
    """The arrays of a file do not have the digest that its header says."""


def _lines(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Read a file of the older form: a line of JSON, and arrays in numpy's .npy one after another."""
    first, _, rest = content.partition(b"\n")
    header = _header(first)
    if hashlib.sha256(rest).hexdigest() != header.pop("sha256"):
        raise DamagedArrays
    file, arrays = io.BytesIO(rest), dict[str, NDArray]()
    while file.tell() < len(rest):
        arrays[str(len(arrays))] = np.lib.format.read_array(file, allow_pickle=False)
    return header, arrays


def _check_numbers(arrays: Mapping[str, Any]) -> None:
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name!r} is no array")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"array {name!r} holds {array.dtype}, not real numbers")


def _header(text: str | bytes) -> dict[str, Any]:
    header = parse_json(text)
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    return header


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
