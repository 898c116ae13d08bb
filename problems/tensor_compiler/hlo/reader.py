"""Programs for the compiler: modules in HLO or StableHLO text, read into plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bbo_suite.errors import UserError
from bbo_suite.files.reading import read_bounded
from bbo_suite.supervised import Answer, Service, Workers

from .module import Module
from .parser import parse_hlo

MAX_BYTES = 1 << 28
FORMATS = "the path of HLO or StableHLO text, plain or gzip"

_BYTECODE = b"ML\xefR"
_EXPORTED = "its text with jax.export.export(jax.jit(f), platforms=['tpu'])(x).mlir_module()"
_PLATFORM = '"_platform_index"'
"""The argument that chooses a branch in a module for several platforms."""
_MEMORY = 32 << 30
_LARGEST_NAMED = 1 << 25
"""Characters of the longest text whose names are looked up: a longer one holds large constants, which are slow."""
# Comments and aliases such as `#loc = loc(unknown)` may come before the first operation; a module line may be missing.
# A computation in HLO may be called `module` too; its first line defines an instruction.
_STABLEHLO = re.compile(
    r"(?:\s|//[^\n]*+|[#!][^\n]*+)*+"
    r"(?:(?:builtin\.)?module\s*+(?:@|attributes\b|\{(?!\s*+(?:ROOT\s++)?%?[\w.-]++\s*+=\s*+\(?[a-z]\w*+\[))"
    r"|\"?\w++\.\w++(?:\"\s*+\(|\s++(?:\w++\s++)?@))"
)
_LOCATION = re.compile(r'^(#.*)|[ ]loc\((?:#\w+|unknown|"(?:[^"\\]|\\.)*")\)', re.MULTILINE)
_FUNCTION = re.compile(r"\s*(?:func\.func .*?@([\w.$-]+)\(|\"func\.func\"\(\).*?sym_name = \"([\w.$-]+)\")")
_RESULT = re.compile(r"\s*(%[\w.$-]+)(?::\d+)? = ")


def read(path: str | Path) -> Module:
    """Return the module in a file of HLO or StableHLO text, plain or gzip; a UserError says what is wrong with it."""
    return parse(read_text(path), str(path))


def read_hlo_text(path: str | Path) -> str:
    """Return the HLO text in a file of HLO or StableHLO text, plain or gzip; a UserError says why there is none."""
    return as_hlo(read_text(path), str(path))[0]


def read_text(path: str | Path) -> str:
    """Return the text in a file, plain or gzip; a UserError says why there is none."""
    try:
        data = read_bounded(Path(path), MAX_BYTES)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if data.startswith(_BYTECODE):
            raise UserError(f"{path} is MLIR bytecode, not text; print {_EXPORTED}.") from None
        raise UserError(f"{path} is not text; give {FORMATS}.") from None
    except (OSError, ValueError) as error:  # also a null character in the path
        raise UserError(
            f"{path} cannot be read ({getattr(error, 'strerror', None) or error}); give {FORMATS}."
        ) from None


def parse(text: str, source: str = "HLO text") -> Module:
    """Return the module that HLO or StableHLO text prints; ``source`` names the text in a UserError.

    Instructions have the names that they have in the text. Where our grammar ends, XLA's own reader prints the module
    again: it takes far more than XLA prints.
    """
    _, module, names = parsed(text, source)
    return named(module, names) if names else module


def parsed(text: str, source: str) -> tuple[str, Module, list[str]]:
    """Return HLO text, its module with the names there, and the names that a StableHLO text has instead."""
    hlo, names = as_hlo(text, source)
    if hlo is not text:
        return hlo, parse_hlo(hlo, f"{source} as HLO"), names
    try:
        return text, parse_hlo(text, source), []
    except UserError as error:
        printed = _printed_by_xla(text, error)
        return printed, parse_hlo(printed, f"{source} as XLA prints it"), []


def _printed_by_xla(text: str, ours: UserError) -> str:
    """Return the text as XLA's own reader prints it; if it refuses the text too, raise our error with its reason."""
    answer = ask_xla("printed", text)
    if not answer.failure:
        return str(answer.value)
    what, _, remedy = str(ours).rpartition("; ")
    raise UserError(f"{what} (XLA's reader says: {answer.reason}); {remedy}") from None


def ask_xla(what: str, *given: str) -> Answer:
    """Ask a function of `xla` in a process of its own, because bad input can crash XLA."""
    seconds = 60 + 4 * len(given[0]) / (1 << 20)
    workers = Workers(Service(f"{__package__}.xla:serve", (), seconds, _MEMORY, name="XLA's reader"))
    try:
        return workers.map([(what, *given)])[0]
    finally:
        workers.close()


def as_hlo(text: str, source: str) -> tuple[str, list[str]]:
    """Return HLO text, and if it was StableHLO, the names of its instructions there."""
    if not text.strip():
        raise UserError(f"{source} is empty; give {FORMATS}.")
    return to_hlo(text, source) if is_stablehlo(text) else (text, [])


def is_stablehlo(text: str) -> bool:
    """Return whether a text is StableHLO, and not HLO."""
    return bool(_STABLEHLO.match(text))


def to_hlo(text: str, source: str) -> tuple[str, list[str]]:
    """Return HLO text, and for each instruction in it the name in the StableHLO text, or "" if that is not known.

    Raises:
      UserError: jaxlib cannot convert it; `source` names the text.
    """
    if _PLATFORM in text and "stablehlo.case" in text:  # branches count alike, but only one platform's ever run
        raise UserError(f"{source} is a module for several platforms, of which one runs; print {_EXPORTED}.")
    bare = _LOCATION.sub(r"\1", text) if len(text) <= _LARGEST_NAMED else ""
    answer = ask_xla("converted", text, bare)
    if not answer.failure:
        hlo, lines = answer.value
        return hlo, list(_names(bare.splitlines(), lines))
    raise UserError(
        f"{source} is StableHLO that jaxlib cannot convert ({answer.reason}); print it again with"
        " jax.jit(f).lower(x).as_text(), or print HLO text with jax.jit(f).lower(x).compiler_ir('hlo').as_hlo_text()."
    )


def named(module: Module, names: Sequence[str]) -> Module:
    """Return a module with other names of its instructions, in order of the text; "" keeps a name."""
    instructions = module.instructions()
    if len(instructions) != len(names):
        return module
    pairs = zip(instructions, names, strict=True)
    return module.with_instructions(replace(instruction, name=name or instruction.name) for instruction, name in pairs)


def _names(text: Sequence[str], lines: Sequence[int]) -> Iterator[str]:
    """Yield the name of the value that each line defines: `%3` in `main`, `@relu/%3` in another function."""
    prefix, names = "", [""]
    for line in text:
        if function := _FUNCTION.match(line):
            name = function[1] or function[2]
            prefix = "" if name == "main" else f"@{name}/"
        result = _RESULT.match(line)
        names.append(f"{prefix}{result[1]}" if result else "")
    yield from (names[line] if line < len(names) else "" for line in lines)
