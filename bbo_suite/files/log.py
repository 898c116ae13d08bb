"""The form of every file that grows line by line: append-only, safe from crashes, and checked when it is read."""

from __future__ import annotations

import os
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from ..errors import UserError
from .writing import disk_errors

Content = TypeVar("Content")

REMEDY = "restore the file, or delete line {line} and all after it: these evaluations are then made again"
"""What to do about a damaged line, if a replay of the run writes it again."""


def checksummed(text: str) -> str:
    """Return text, which ends with a comma, as a line that ends with a checksum of it."""
    return f"{text}{zlib.crc32(text.encode()):08x}\n"


def without_checksum(line: str) -> str:
    """Return the text of a line that `checksummed` made.

    Raises:
      ValueError: it made another one.
    """
    text = line[:-9]
    if line != checksummed(text):
        raise ValueError("its checksum does not match")
    return text


class CheckedLog(Generic[Content]):
    """The reader and the writer of a file of lines.

    A crash may cut the last line: readers pass over it, and the next `append` removes it. Any other line that this
    suite did not write is refused with the file, the line and a remedy, and nothing is changed. There may be many
    readers, and one writer, which holds a lock elsewhere.

    Args:
      file: which may be missing; then the log is empty.
      header: the first line; empty if the file has none.
      parse: returns what a line holds, and raises a `ValueError` or `LookupError` if it is damaged. It gets the text
        without the checksum, or the line without its end where there are no checksums.
      checksums: True if every line was made by `checksummed`.
      remedy: ends the message about a damaged line; `{line}` stands for its number.

    Attributes:
      number: of the line that was read last, counted from 1 and with the header.
      length: bytes of what was read and written, without an unfinished line. The next `append` removes what is
        behind it.
    """

    def __init__(
        self,
        file: Path,
        header: str = "",
        parse: Callable[[str], Content] = str,  # type: ignore[assignment]
        *,
        checksums: bool = True,
        remedy: str = REMEDY,
    ) -> None:
        self.file, self.header, self._parse, self._checksums, self._remedy = file, header, parse, checksums, remedy
        self.number = self.length = 0
        self._size: int | None = None
        self._opened: int | None = None

    def __iter__(self) -> Iterator[Content]:
        """Return what the complete lines hold, from the beginning; each line is read when it is asked for.

        Raises:
          UserError: the file cannot be read or is damaged.
        """
        self.number = self.length = self._size = 0
        with self._reading():
            self._size = self.file.stat().st_size
        return self._contents()

    def _contents(self) -> Iterator[Content]:
        with self._reading(), self.file.open("rb") as lines:
            for line in lines:
                self.number += 1
                if self._holds_content(line):
                    content = self._content(line.decode(errors="replace"))
                    self.length += len(line)
                    yield content

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:  # an empty log
            return
        except OSError as error:
            raise UserError(f"cannot read {self.file}: {error.strerror}") from None

    def _holds_content(self, line: bytes) -> bool:
        """Return whether a line is neither the header nor unfinished; both are checked."""
        if not line.endswith(b"\n"):
            self.check_unfinished(line.rstrip(b"\0"))  # a power loss may leave zeros where data was not on disk yet
            return False
        if self.number > 1 or not self.header:
            return True
        if line != self.header.encode():
            raise self.damaged("this is not its header")
        self.length = len(line)
        return False

    def _content(self, line: str) -> Content:
        try:
            return self._parse(without_checksum(line) if self._checksums else line[:-1])
        except (ValueError, LookupError) as error:
            raise self.damaged(str(error)) from None

    def check_unfinished(self, line: bytes) -> None:
        """Check the last line, which has no end.

        Raises:
          UserError: it cannot be the beginning of a line.
        """
        if self.number == 1 and self.header and not self.header.encode().startswith(line):
            raise self.damaged("this is not its header")

    def damaged(self, why: str, line: int | None = None) -> UserError:
        """Return the error for a line, by default the one that was read last."""
        line = line or self.number
        remedy = self._remedy.format(line=line)
        return UserError(f"{self.file}, line {line} is damaged ({why}); nothing was changed: {remedy}")

    def open(self) -> None:
        """Open the file for `append`; an empty one is made if it is missing. What was not read yet is checked first.

        Raises:
          UserError: it cannot be written, or is damaged.
        """
        if self._opened is not None:
            return
        if self._size is None:
            deque(self, maxlen=0)
        with disk_errors(self.file):
            self._opened = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            self._close = weakref.finalize(self, os.close, self._opened)

    def append(self, lines: Iterable[str]) -> None:
        """Write lines, behind the header if the file is empty; then no crash of the process loses them.

        Raises:
          UserError: the file cannot be written, was moved, or was written by another process.
        """
        self.open()
        assert self._opened is not None
        with disk_errors(self.file):
            size = self._checked_size(self._opened)
            if size > self.length:
                os.ftruncate(self._opened, self.length)
            data = memoryview("".join([self.header if not self.length else "", *lines]).encode())
            self.length = self._size = self.length + len(data)
            while data:
                data = data[os.write(self._opened, data) :]

    def _checked_size(self, opened: int) -> int:
        """Return the size of the file, which nobody else has moved or written."""
        try:
            status = self.file.stat()
        except FileNotFoundError:
            raise moved(next(path for path in (*reversed(self.file.parents), self.file) if not path.exists())) from None
        if not os.path.samestat(status, os.fstat(opened)):
            raise moved(self.file.parent)
        if status.st_size != self._size:
            advice = "its file system has no locks across machines: let one machine at a time write it"
            raise UserError(f"another process has written {self.file}; {advice}")
        return status.st_size

    def sync(self) -> None:
        """Return when everything is on disk."""
        if self._opened is not None or self.file.exists():
            self.open()
            with disk_errors(self.file):
                os.fsync(self._opened)  # type: ignore[arg-type]

    def close(self) -> None:
        """Close the file; this happens also when nobody uses the log any more."""
        if self._opened is not None:
            self._close()
            self._opened = None


def moved(path: Path) -> UserError:
    """Return the error for a file or folder that is gone while it is written."""
    advice = "its rows are where it is now; put it back, and run the same command again"
    return UserError(f"{path} was moved or deleted while it was written; {advice}")
