"""Bounded reading, atomic and durable writes, locks, folder names, the cache folder, disk errors as one sentence."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import UserError

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy

GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""
_RATIO = 200
"""A file that unpacks to more than this many times its size is a bomb; honest ones reach 75."""
_SMALL = 1 << 22
"""A file that unpacks to at most this many bytes is none, whatever its ratio."""


class DamagedFile(UserError):
    """The content of a file is not what this suite writes, for example because power was lost."""


class disk_errors:
    """A context that turns an `OSError` into a `UserError` of one sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError):
            remedy = "fix this, then run the same command again: stored rows are kept"
            raise UserError(f"cannot write {self._path}: {error.strerror or error}; {remedy}") from None


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


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object to disk; a reader sees the old file or the new one, never a part, even after a power loss."""
    with replacing(file) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
        _sync(unfinished)  # before it takes its name: else the name may survive a power loss and the content not
    with suppress(OSError):  # not every file system can do this to a folder
        _sync(file.parent)


def _sync(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces the file when the block succeeds; if it fails, the old file stays."""
    if file.exists() and not file.is_file():  # a device or a pipe, such as /dev/null, cannot be replaced
        yield file
        return
    real = file.resolve()  # a link stays a link
    unfinished = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        yield unfinished
        unfinished.replace(real)
    finally:
        unfinished.unlink(missing_ok=True)


def acquired(file: Path, content: str, seconds: float = 0) -> AcquireReturnProxy:
    """Acquire the lock of a file until the returned context ends, or the process.

    Args:
      content: what the lock protects, for the error.
      seconds: to wait for another process that holds it.

    Raises:
      UserError: another process holds it, or its file system has no locks.
      OSError: the file cannot be written.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    lock = FileLock(file, timeout=seconds)
    try:
        return lock.acquire()
    except Timeout:
        advice = "wait for it or choose another --study"
        if isinstance(lock, SoftFileLock):  # a file system without locks: the file itself is the lock
            advice += f"; if that process has died, delete {file}"
        raise UserError(f"another process is writing {content}; {advice}") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        raise UserError(f"the file system of {file.parent} has no locks; choose --results on another one") from None


def cache_folder(*parts: str) -> Path:
    """Return a folder for results that can be recomputed: `$XDG_CACHE_HOME/bbo_suite/...`, or below `~/.cache`.

    Code that it holds is executed, so only its owner may enter `bbo_suite`. What is below it may not exist yet; nothing
    exists if the disk cannot be written.

    Raises:
      UserError: another user owns the folder or can write to it.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(home) if home else Path.home() / ".cache") / "bbo_suite"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _keep_private(folder)
    return folder.joinpath(*parts)


def _keep_private(folder: Path) -> None:
    try:
        state = folder.stat()
    except OSError:  # it cannot be made: then nothing is read from it either
        return
    owner, mode = os.geteuid(), stat.S_IMODE(state.st_mode)
    advice = "delete it, or set XDG_CACHE_HOME to a folder of your own"
    if state.st_uid not in (owner, 0):
        raise UserError(f"the cache folder {folder} belongs to another user, who could plant code in it; {advice}")
    if mode & 0o022:
        raise UserError(f"other users can write to the cache folder {folder}, which holds code; {advice}")
    if mode != 0o700 and state.st_uid == owner:
        with suppress(OSError):  # a disk that is only read
            folder.chmod(0o700)


def folder_name(*parts: str) -> str:
    """Return a readable folder name for any text; different texts give different names.

    `fusion/a, annealing, 0` is `fusion--a__annealing__0`; where the text cannot be recovered, it ends in a hash.
    """
    marked = (part.replace("/", "--") for part in parts)
    plain = "__".join(re.sub(r"[^\w.@+-]+", "-", part, flags=re.ASCII).strip("-.") or "x" for part in marked)
    exact = tuple(part.replace("--", "/") for part in plain.split("__")) == parts and len(plain) < 120
    return plain if exact else f"{plain[:100]}={hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"
