"""Programs for the compiler: modules in HLO or StableHLO text, read into plain data."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bbo_suite.errors import UserError
from bbo_suite.files.reading import read_bounded

from .module import Module
from .parser import parse_hlo

MAX_BYTES = 1 << 28
FORMATS = "the path of HLO or StableHLO text, plain or gzip"

_LARGEST_NAMED = 1 << 25
"""Characters of the longest text whose names are looked up: a longer one holds large constants, which are slow."""
# Aliases such as `#loc = loc(unknown)` may come before the module.
_STABLEHLO = re.compile(r"(?:\s|//[^\n]*+|#[^\n]*+)*+module\s*+(?:@|attributes\b|\{)")
# Without locations in the text, an instruction's metadata holds the line of the text that it comes from.
_CONVERT = """
import json, re, sys
from jaxlib import xla_client
def converted(text):
    return xla_client._xla.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
text, bare = json.load(sys.stdin)
hlo, lines = converted(text).as_hlo_text(), []
if bare:
    for found in re.finditer(r"^ +(?:ROOT )?%[^ ]+ = .*$", converted(bare).get_hlo_module().to_string(), re.M):
        line = re.search(r'source_file="-" source_line=(\\d+)', found[0])
        lines.append(int(line[1]) if line else 0)
print(json.dumps([hlo, lines]))
"""
_MLIR_ERROR = re.compile(r":(\d+):\d+: error: ([^\n]*)")
_LOCATION = re.compile(r'^(#.*)|[ ]loc\((?:#\w+|unknown|"(?:[^"\\]|\\.)*")\)', re.MULTILINE)
_FUNCTION = re.compile(r"\s*func\.func .*?@([\w.$-]+)\(")
_RESULT = re.compile(r"\s*(%[\w.$-]+)(?::\d+)? = ")


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


def is_stablehlo(text: str) -> bool:
    """Return whether a text is StableHLO, and not HLO."""
    return bool(_STABLEHLO.match(text))


def to_hlo(text: str, source: str) -> tuple[str, list[str]]:
    """Return HLO text, and for each instruction in it the name in the StableHLO text, or "" if that is not known.

    jaxlib runs in a process of its own, because bad input can crash it.

    Raises:
      UserError: jaxlib cannot convert it; `source` names the text.
    """
    bare = _LOCATION.sub(r"\1", text) if len(text) <= _LARGEST_NAMED else ""
    command, given = [sys.executable, "-P", "-c", _CONVERT], json.dumps([text, bare])
    result = subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode == 0:
        hlo, lines = json.loads(result.stdout)
        return hlo, list(_names(bare.splitlines(), lines))
    raise UserError(
        f"{source} is StableHLO that jaxlib cannot convert ({_reason(result)}); print it again with"
        " jax.jit(f).lower(x).as_text(), or print HLO text with jax.jit(f).lower(x).compiler_ir('hlo').as_hlo_text()."
    )


def named(module: Module, names: Sequence[str]) -> Module:
    """Return a module with other names of its instructions, in order of the text; "" keeps a name."""
    computations, done = {}, 0
    if sum(len(computation.instructions) for computation in module.computations.values()) != len(names):
        return module
    for key, computation in module.computations.items():
        own = names[done : done + len(computation.instructions)]
        pairs = zip(computation.instructions, own, strict=True)
        renamed = tuple([replace(instruction, name=name or instruction.name) for instruction, name in pairs])
        computations[key], done = replace(computation, instructions=renamed), done + len(own)
    return replace(module, computations=computations)


def _names(text: Sequence[str], lines: Sequence[int]) -> Iterator[str]:
    """Yield the name of the value that each line defines: `%3` in `main`, `@relu/%3` in another function."""
    prefix, names = "", [""]
    for line in text:
        if function := _FUNCTION.match(line):
            prefix = "" if function[1] == "main" else f"@{function[1]}/"
        result = _RESULT.match(line)
        names.append(f"{prefix}{result[1]}" if result else "")
    yield from (names[line] if line < len(names) else "" for line in lines)


def _reason(result: subprocess.CompletedProcess[str]) -> str:
    """Return the first complaint of the MLIR parser, or else the last line of the traceback."""
    messages = result.stderr.strip()
    error = _MLIR_ERROR.search(messages)
    if error:
        return f"line {error[1]}: {error[2]}"
    return "it crashed" if result.returncode < 0 or not messages else messages.splitlines()[-1]
