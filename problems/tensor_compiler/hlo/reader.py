"""Programs for the compiler: modules in HLO or StableHLO text, read into plain data."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from bbo_suite.errors import UserError

from .module import Computation, Instruction, Module, Shape
from .parser import parse_hlo
from .stablehlo import is_stablehlo, named, to_hlo

__all__ = ["Computation", "Instruction", "Module", "Shape", "parse", "read", "read_hlo_text"]

MAX_BYTES = 1 << 28
FORMATS = "the path of HLO or StableHLO text, plain or gzip"


def read(path: str | Path) -> Module:
    """Return the module in a file of HLO or StableHLO text, plain or gzip; a UserError says what is wrong with it."""
    return parse(_text(path), str(path))


def read_hlo_text(path: str | Path) -> str:
    """Return the HLO text in a file of HLO or StableHLO text, plain or gzip; a UserError says why there is none."""
    return _as_hlo(_text(path), str(path))[0]


def _text(path: str | Path) -> str:
    data = _unpack(_read_bytes(path), path)
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} holds more than {MAX_BYTES >> 20} MiB of text; give a smaller program.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text; give {FORMATS}.") from None


def parse(text: str, source: str = "HLO text") -> Module:
    """Return the module that HLO or StableHLO text prints; ``source`` names the text in a UserError.

    Instructions have the names that they have in the text.
    """
    hlo, names = _as_hlo(text, source)
    return parse_hlo(text, source) if hlo is text else named(parse_hlo(hlo, f"{source} as HLO"), names)


def _as_hlo(text: str, source: str) -> tuple[str, list[str]]:
    """Return HLO text, and if it was StableHLO, the names of its instructions there."""
    if not text.strip():
        raise UserError(f"{source} is empty; give {FORMATS}.")
    return to_hlo(text, source) if is_stablehlo(text) else (text, [])


def _read_bytes(path: str | Path) -> bytes:
    """Return the file, or just enough of it to see that it is too large (a device has no end)."""
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be read ({reason}); give {FORMATS}.") from None


def _unpack(data: bytes, path: str | Path) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}); copy or pack it again.") from None
