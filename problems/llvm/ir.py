"""Programs as LLVM text: those that ship, and a user's."""

from __future__ import annotations

import re
from pathlib import Path

from bbo_suite import UserError
from bbo_suite.files.reading import read_bounded

FOLDER = Path(__file__).parent / "ir"
LARGEST = 1 << 28
"""Largest text in bytes."""
_EMPTY = '"bbo-empty"'  # a group of attributes may not be empty


def names() -> tuple[str, ...]:
    """Return the names of the programs that ship."""
    return tuple(sorted(path.name.removesuffix(".ll.gz") for path in FOLDER.glob("*.ll.gz")))


def shipped(name: str) -> str:
    """Return the text of a program that ships."""
    return read(FOLDER / f"{name}.ll.gz")


def read(path: Path) -> str:
    """Return the text of a module, plain or gzipped.

    Raises:
      UserError: it cannot be read, or is too large.
    """
    try:
        return read_bounded(path, LARGEST).decode()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not LLVM text; make it with clang -S -emit-llvm") from None
    except ValueError as error:
        raise UserError(f"cannot read {path}: {error}") from None


def without_size(text: str) -> str:
    """Return a module without the attributes of functions that ask for small code."""

    def plain(group: re.Match[str]) -> str:
        kept = re.sub(r"\b(minsize|optsize)\b ?", "", group[2])
        return f"{group[1]}{{ {kept.strip() or _EMPTY} }}"

    return re.sub(r"^(attributes #\d+ = )\{(.*)\}$", plain, text, flags=re.MULTILINE)
