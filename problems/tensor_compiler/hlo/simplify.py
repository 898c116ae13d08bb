"""A program as XLA:TPU's layouts and fusion find it: after XLA's own target-independent passes, run through jaxlib."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from bbo_suite.files.cache import cache_folder
from bbo_suite.files.writing import replacing

from . import reader
from .calls import LARGEST_INLINED, inlined_size
from .module import Instruction, Module
from .parser import LEFT_OUT, parse_hlo
from .passes import RECIPE

_SCHEDULED = re.compile(r"\bis_scheduled=true\b")
_CERTAIN = ("", "raised")
"""Failures that would happen again: an answer is kept, but not that a busy machine ran out of time or memory."""
_CONFIG = "backend_config"
_ADDED = "xla/"
"""Before the name of an instruction that XLA made from none in particular."""
_PLUMBING = {"parameter", "constant", "tuple", "get-tuple-element"}
_MOST_KINDS = 5


@dataclass(frozen=True)
class Simplified:
    """A module after XLA's passes.

    Attributes:
      module: its instructions have the names of those in the file that they come from.
      note: what the passes did, or why they did not run.
      ran: whether they did.
    """

    module: Module
    note: str
    ran: bool


def read_simplified(path: Path) -> Simplified:
    """Return the module in a file of HLO or StableHLO text after XLA's passes, or as written if they cannot run.

    Raises:
      UserError: the file cannot be read.
    """
    text, module, names = reader.parsed(reader.read_text(path), str(path))
    written = reader.named(module, names) if names else module
    if _SCHEDULED.search(text) or any(instruction.opcode == "fusion" for instruction in module.instructions()):
        return Simplified(written, "not run: XLA has optimised this module already", True)
    if inlined_size(module) > LARGEST_INLINED:
        return Simplified(written, "not run: the program is too large", False)
    after, origins, reason = _after_passes(text)
    if reason:
        return Simplified(written, f"not run, so the program is compiled as written: {reason}", False)
    simpler = parse_hlo(after, f"{path} after XLA's passes")
    named = zip(module.instructions(), written.instructions(), strict=True)
    own = {as_hlo.name: instruction for as_hlo, instruction in named}
    pairs = zip(simpler.instructions(), map(own.get, origins), strict=True)
    simpler = simpler.with_instructions(_of_file(*pair) for pair in pairs)
    simpler = replace(simpler, parameters=written.parameters)  # StableHLO has no layouts
    return Simplified(simpler, summary(written, simpler) + _made_up(written), True)


def _made_up(module: Module) -> str:
    """Return what to do about whole numbers and truth values that the text leaves out, which decide what is folded."""
    count = sum(one.literal == LEFT_OUT and one.shape.dtype[:1] in "psu" for one in module.instructions())
    remedy = "print them with as_hlo_text(print_large_constants=True)"
    return f"; XLA made up {count:,} constants that the text leaves out: {remedy}" if count else ""


def _of_file(instruction: Instruction, origin: Instruction | None) -> Instruction:
    """Return an instruction with the file's name of that which it comes from.

    A loop keeps its known trip count, which StableHLO does not have.
    """
    if origin is None:
        return replace(instruction, name=f"{_ADDED}{instruction.name}")
    kept = _CONFIG in origin.attributes and origin.opcode == instruction.opcode and instruction.known_trips is None
    attributes = instruction.attributes | ({_CONFIG: origin.attributes[_CONFIG]} if kept else {})
    return replace(instruction, name=origin.name, attributes=attributes)


def summary(before: Module, after: Module) -> str:
    """Return how many operations there were and are, and which kinds changed most."""
    kinds = [Counter(i.opcode for i in m.instructions() if i.opcode not in _PLUMBING) for m in (before, after)]
    old, new = kinds[0].total(), kinds[1].total()
    change = {kind: kinds[1][kind] - kinds[0][kind] for kind in kinds[0] | kinds[1]}
    largest = sorted((kind for kind in change if change[kind]), key=lambda kind: -abs(change[kind]))[:_MOST_KINDS]
    listed = "".join(f", {change[kind]:+,} {kind}" for kind in largest)
    return f"{old:,} operations became {new:,}{listed}"


def _after_passes(text: str) -> tuple[str, list[str], str]:
    """Return HLO text after the passes, what its instructions come from, and the reason if the passes cannot run.

    The answer is kept by content, so that a program is the same in every run.
    """
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json.gz"
    file = cache_folder("simplified", f"jaxlib-{version('jaxlib')}-passes-{RECIPE}", name)
    with suppress(OSError, EOFError, ValueError, zlib.error):  # it is not there, or damaged
        after, origins, reason = json.loads(gzip.decompress(file.read_bytes()))
        return after, origins, reason
    answer = reader.ask_xla("simplified", text)
    found = ("", [], answer.reason) if answer.failure else (*answer.value, "")
    if answer.failure not in _CERTAIN:
        return found
    with suppress(OSError):  # a full or read-only disk costs time only
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as unfinished:
            unfinished.write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))
    return found
