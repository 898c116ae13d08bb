"""Bounded reading: packed files that unpack to far more than they are, and JSON that is not what it should be."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import UserError

GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""

_RATIO = 200
"""A file that unpacks to more than this many times its size is a bomb; honest ones reach 75."""

_SMALL = 1 << 22
"""A file that unpacks to at most this many bytes is none, whatever its ratio."""


class DamagedFile(UserError):
    """The content of a file is not what this suite writes, for example because power was lost."""


def read_bounded(path: Path, most: int) -> bytes:
    """Return the content of a file, unpacked if it is gzipped.

    Raises:
      OSError: it cannot be read.
      ValueError: it is damaged, or larger than `most` bytes, packed or unpacked.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size or most + 1) if size <= most else b""  # a device has no size and may have no end
    if max(size, len(data)) > most:
        raise ValueError(f"it is larger than {most >> 20:,} MiB; give a smaller one")
    return unpacked(io.BytesIO(data), most).read() if data[:2] == GZIP else data


def unpacked(packed: BinaryIO, most: int) -> gzip.GzipFile:
    """Return a reader of a gzipped file, which is unpacked once before, without being kept, to see how large it is.

    Raises:
      ValueError: it is damaged, or unpacks to more than `most` bytes or to far more than its size.
    """
    size, allowed = 0, largest_unpacked(packed.seek(0, os.SEEK_END), most)
    packed.seek(0)
    reader = gzip.GzipFile(fileobj=packed)
    try:
        while chunk := reader.read(1 << 20):
            size += len(chunk)
            if size > allowed:
                raise ValueError(f"it unpacks to more than {allowed >> 20:,} MiB; unpack it and look what it holds")
    except (EOFError, OSError, zlib.error):
        raise ValueError("it is a gzip file that is truncated or damaged; copy it again") from None
    reader.seek(0)
    return reader


def largest_unpacked(packed: int, most: int) -> int:
    """Return how many bytes a file of `packed` bytes may unpack to: at most `most`, and fewer if it is small."""
    return min(most, max(_SMALL, _RATIO * packed))


def parse_json(text: str | bytes, **options: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what JSON text holds.

    Args:
      options: of `json.loads`.

    Raises:
      ValueError: it is not JSON, nested too deeply, or holds an integer of thousands of digits.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("its lists and objects are nested too deeply") from None
    except ValueError as error:
        if "int_max_str_digits" in str(error):  # Python's own advice is to its programmer
            raise ValueError("it holds an integer of thousands of digits") from None
        raise


def read_json(file: Path) -> dict[str, Any]:
    """Return a JSON object from a file of a study.

    Raises:
      DamagedFile: it holds something else.
      UserError: it cannot be read.
    """
    try:
        content = parse_json(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except ValueError:
        raise _not_json(file, "valid JSON") from None
    if not isinstance(content, dict):
        raise _not_json(file, "a JSON object")
    return content


def _not_json(file: Path, what: str) -> DamagedFile:
    return DamagedFile(f"{file} is not {what}; restore it, or run the study again, which writes it anew from its rows")
