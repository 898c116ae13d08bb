"""Programs for the compiler: modules in HLO or StableHLO text, read into plain data."""

from __future__ import annotations

from pathlib import Path

from bbo_suite.errors import UserError
from bbo_suite.files.reading import read_bounded

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
    try:
        return read_bounded(Path(path), MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text; give {FORMATS}.") from None
    except (OSError, ValueError) as error:  # also a null character in the path
        raise UserError(
            f"{path} cannot be read ({getattr(error, 'strerror', None) or error}); give {FORMATS}."
        ) from None


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
