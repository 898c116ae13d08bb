"""The option that names a file: its path and a digest of its content, so that a run is tied to both."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ..errors import UserError
from .reading import read_bounded

LARGEST = 1 << 26
"""Most bytes of such a file; those of today have fewer than a million."""
_MARK = re.compile(r"(?P<path>.+)#(?P<digest>[0-9a-f]{16})", re.DOTALL)


class PinnedFile(str):
    """`path#digest` of a file, made from its path; empty for none.

    This text is stored as the option. So a run resumes only with the file that it began with: another content at the
    same path gives another option.
    """

    __slots__ = ()

    def __new__(cls, text: str = "") -> PinnedFile:
        """Return the text with the digest of the file's content.

        Raises:
          UserError: the file cannot be read.
        """
        complete = not text or _MARK.fullmatch(text)
        return super().__new__(cls, text if complete else f"{text}#{_digest(_read(text))}")


def content(text: str) -> tuple[str, bytes]:
    """Return the path and the content of the file that a `PinnedFile` or a plain path names.

    Raises:
      UserError: the file cannot be read, or its content has changed.
    """
    mark = _MARK.fullmatch(text)
    path = mark["path"] if mark else text
    data = _read(path)
    if mark and _digest(data) != mark["digest"]:
        raise UserError(f"{path} has changed since the run began; restore it or choose another --study")
    return path, data


def _read(path: str) -> bytes:
    try:
        return read_bounded(Path(path), LARGEST)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
