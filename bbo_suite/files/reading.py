"""Bounded reading: packed files that unpack to far more than they are, and JSON that is not what it should be."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import json
import os
import stat
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


_SEEN = 64
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
"""How text begins that is not in UTF-8; UTF-32 of the other order begins as UTF-16 does."""


def open_input(path: Path) -> BinaryIO:
    """Open a user's file, never a pipe or a device, which may have no end and can be read only once.

    Raises:
      OSError: it is something else, or cannot be read.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        what = "it is a pipe or a device; write its content to a file and give that"
        raise OSError(errno.EINVAL, os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else what, str(path))
    return file


def read_bounded(path: Path, most: int) -> bytes:
    """Return the content of a file, unpacked if it is gzipped.

    Raises:
      OSError: it cannot be read.
      ValueError: it is damaged, larger than `most` bytes, packed or unpacked, or text in UTF-16 or UTF-32.
    """
    with open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size or most + 1) if size <= most else b""
    if max(size, len(data)) > most:
        raise ValueError(f"it is larger than {most >> 20:,} MiB; give a smaller one")
    data = unpacked(io.BytesIO(data), most).read() if data[:2] == GZIP else data
    check_encoding(data[:_SEEN])
    return data


def check_encoding(start: bytes) -> None:
    """Raise ValueError if the start of a file is that of text in UTF-16 or UTF-32."""
    halves = any(start[::2]), any(start[1::2])  # of each two bytes of English text, one is zero
    if start.startswith(_WIDE) or (len(start) >= 8 and any(halves) and not all(halves)):
        raise ValueError("it is text in UTF-16 or UTF-32; save it as UTF-8")


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
