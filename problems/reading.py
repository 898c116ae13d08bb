"""What is said about a user's file that cannot be used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bbo_suite import UserError


@contextmanager
def explained(path: Path, wanted: str) -> Iterator[None]:
    """Turn every failure while a file is read into one sentence.

    Args:
      path: of the file.
      wanted: what it must be.

    Raises:
      UserError: the file cannot be read or used; the sentence says what is wrong and where.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, MemoryError, RecursionError, OverflowError) as error:
        raise UserError(f"cannot use {path}: {_reason(error, wanted)}") from None


def _reason(error: Exception, wanted: str) -> str:
    match error:
        case UnicodeDecodeError():
            return f"it is not text in UTF-8 (byte {error.start}); it must be {wanted}"
        case json.JSONDecodeError():
            where = f"line {error.lineno}, column {error.colno}"
            return f"it is not JSON, or truncated or damaged ({where}: {error.msg}); copy it again"
        case ValueError():
            return str(error)
    return f"it is too large or too deep ({type(error).__name__})"


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; as `object_pairs_hook` it refuses keys of which the last would silently win.

    Raises:
      ValueError: a key occurs twice.
    """
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"key {twice[:60]!r} occurs twice in one object; drop one of the two")
    return document
