"""The one exception for mistakes that a user can fix, and the boundary that turns other exceptions into it."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MOST = 30
"""The most names that a message lists."""


class UserError(Exception):
    """One clear sentence that names the input and the remedy; the command line prints it and exits with 1."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or the list of known names if none is close."""
    names = sorted(set(known))
    if not names:
        return " There are none yet."
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    close = close or difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    if close:
        return f" Did you mean {close[0]!r}?"
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return f" Known: {', '.join(names[:_MOST])}{more}."


_noted: set[str] | None = None


@contextmanager
def noting_what_is_left_out() -> Iterator[set[str]]:
    """Yield a set to which `leave_out` adds its sentences; those that it has already are not printed again."""
    global _noted
    before, _noted = _noted, set()
    try:
        yield _noted
    finally:
        _noted = before


def leave_out(what: object) -> None:
    """Say on standard error that something damaged is left out; a command goes on and then ends with exit code 1."""
    sentence = f"left out: {what}"
    if _noted is None or sentence not in _noted:
        print(sentence, file=sys.stderr)
    if _noted is not None:
        _noted.add(sentence)


def unfit_name(name: str) -> str:
    """Return why a plugin may not use a name, which is stored in tables and printed; empty if it may."""
    if not name:
        return "is empty"
    if "," in name or not name.isprintable():
        return "has a comma, a line break or another character that cannot be printed"
    return ""


@contextmanager
def in_this_folder() -> Iterator[None]:
    """Come back to the current folder in the end: paths keep their meaning, whatever folder a plugin enters."""
    here = _current_folder()
    try:
        yield
    finally:
        if here and _current_folder() != here:
            with suppress(OSError):  # it is gone
                os.chdir(here)


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - it is called for each batch
    except OSError:  # it is gone
        return ""


@contextmanager
def error_boundary(owner: str, step: str) -> Iterator[None]:
    """Turn an exception that a strategy or a problem raises into a `UserError`; its cause keeps the traceback.

    The current folder is in the end what it was before.

    Args:
      owner: what raised it, such as `strategy random`.
      step: what it was doing, such as `ask`.
    """
    try:
        with in_this_folder():
            yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a plugin that calls sys.exit must not end the study
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise UserError(f"{owner} raised {type(error).__name__} in {step} ({place}): {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line."""
    return " ".join(str(error).split()) or "without a message"
