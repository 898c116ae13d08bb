"""Programs for the compiler: modules in HLO or StableHLO text, read into plain data."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import zlib
from pathlib import Path

from bbo_suite.errors import UserError

from .module import Computation, Instruction, Module, Shape
from .parser import parse_hlo

__all__ = ["Computation", "Instruction", "Module", "Shape", "parse", "read", "read_hlo_text"]

MAX_BYTES = 1 << 28
FORMATS = "the path of HLO or StableHLO text, plain or gzip"

# Aliases such as `#loc = loc(unknown)` may come before the module.
_STABLEHLO = re.compile(r"(?:\s|//[^\n]*+|#[^\n]*+)*+module\s*+(?:@|attributes\b|\{)")
_CONVERT = """
import sys
from jaxlib import xla_client
text = sys.stdin.buffer.read()
computation = xla_client._xla.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
sys.stdout.buffer.write(computation.as_hlo_text().encode())
"""
_MLIR_ERROR = re.compile(r":(\d+):\d+: error: ([^\n]*)")


def read(path: str | Path) -> Module:
    """Return the module in a file of HLO or StableHLO text, plain or gzip; a UserError says what is wrong with it."""
    return parse(_text(path), str(path))


def read_hlo_text(path: str | Path) -> str:
    """Return the HLO text in a file of HLO or StableHLO text, plain or gzip; a UserError says why there is none."""
    return _as_hlo(_text(path), str(path))


def _text(path: str | Path) -> str:
    data = _unpack(_read_bytes(path), path)
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} holds more than {MAX_BYTES >> 20} MiB of text; give a smaller program.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text; give {FORMATS}.") from None


def parse(text: str, source: str = "HLO text") -> Module:
    """Return the module that HLO or StableHLO text prints; ``source`` names the text in a UserError."""
    hlo = _as_hlo(text, source)
    return parse_hlo(hlo, source if hlo is text else f"{source} as HLO")


def _as_hlo(text: str, source: str) -> str:
    if not text.strip():
        raise UserError(f"{source} is empty; give {FORMATS}.")
    return _hlo_from_stablehlo(text, source) if _STABLEHLO.match(text) else text


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


def _hlo_from_stablehlo(text: str, source: str) -> str:
    """Return HLO text from jaxlib, which runs in a process of its own because bad input can crash it."""
    command = [sys.executable, "-P", "-c", _CONVERT]
    result = subprocess.run(command, input=text.encode(errors="replace"), capture_output=True, check=False)
    if result.returncode == 0:
        return result.stdout.decode()
    raise UserError(
        f"{source} is StableHLO that jaxlib cannot convert ({_reason(result)}); print it again with"
        " jax.jit(f).lower(x).as_text(), or print HLO text with jax.jit(f).lower(x).compiler_ir('hlo').as_hlo_text()."
    )


def _reason(result: subprocess.CompletedProcess[bytes]) -> str:
    """Return the first complaint of the MLIR parser, or else the last line of the traceback."""
    messages = result.stderr.decode(errors="replace").strip()
    error = _MLIR_ERROR.search(messages)
    if error:
        return f"line {error[1]}: {error[2]}"
    return "it crashed" if result.returncode < 0 or not messages else messages.splitlines()[-1]
