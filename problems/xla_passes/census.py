"""The values of a slot, counts of the operations of a module in canonical text, and what a candidate may cost.

The passes of a sequence are XLA:CPU's `PASSES` and `LOWERINGS`. The lowerings that a sequence leaves out run after it,
so that a sequence gains nothing by skipping necessary work. A search can choose when they run. The passes of
`PREPARATION` run once before every sequence, as in XLA. Those of `NEVER` come after the count. No count needs a run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..pass_order.state import Operation
from ..tensor_compiler.hlo.passes import LOWERINGS, PASSES

NOTHING = "nothing"
PIPELINE = "pipeline"
"""All passes and lowerings in XLA's order, with its loops over them, repeated until nothing changes."""
ACTIONS = (NOTHING, *PASSES, *LOWERINGS, PIPELINE)
SLOTS = 16

MEMORY = 8 << 30
"""Largest address space of a child, in bytes."""


FREE = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})
"""Instructions that compute nothing."""
_OPCODE = re.compile(r" = (?:\(.*?\)|\S+) ([a-z][\w-]*)\(")
_NAME = re.compile(r"\btmp_\d+\b")
_FLOW = re.compile(
    r"(?:condition|body|true_computation|false_computation|branch_computations)=\{?$| call\(.* to_apply=$"
)


def census(text: str) -> Counter[str]:
    """Return the number of operations of each kind in the entry, and in its loops, branches and calls.

    The function that a reduction, a scatter or a sort applies to single numbers is part of that operation and does not
    count. A function that is called twice counts twice; the body of a loop counts once.
    """
    return Counter(opcode for _, opcode, _ in operations(text))


def computations(text: str) -> list[list[str]]:
    """Return the lines of the operations that `census` counts, for each computation that has any."""
    lines: dict[int, list[str]] = {}
    for place, _, line in operations(text):
        lines.setdefault(place, []).append(line)
    return list(lines.values())


def graph(text: str) -> Iterator[Operation]:
    """Yield the operations that `census` counts with their operands, for the description of a state."""
    for place, opcode, line in operations(text):
        name, _, value = line.removeprefix("ROOT ").partition(" = ")
        yield (place, name), opcode, [(place, operand) for operand in _NAME.findall(value)]


@lru_cache(4)  # a module is counted, costed and described
def operations(text: str) -> tuple[tuple[int, str, str], ...]:
    """Return the number of the computation, the kind and the line of each operation that counts."""
    found = []
    runs, before = [True], ""  # for each open brace: whether its content counts
    places, opened = [0], 0  # and the number of its computation
    for line in map(str.strip, text.splitlines()[1:]):
        if line.startswith("}"):
            runs.pop()
            places.pop()
        if runs[-1] and (operation := _OPCODE.search(line)) and operation[1] not in FREE:
            found.append((places[-1], operation[1], line))
        if line.endswith("={"):  # a list of branches
            runs.append(runs[-1] and bool(_FLOW.search(line)))
        elif line == "{":
            listed = before == "}," or before.endswith("={")
            runs.append(runs[-1] and (listed or bool(_FLOW.search(before))))
        elif line.endswith("{"):
            runs.append(True)
        if len(runs) > len(places):
            opened += 1
            places.append(opened)
        before = line
    return tuple(found)


OPERATIONS = "operations"
_NO_KERNEL = frozenset({"bitcast", "while", "conditional", "call"})
"""Operations of a fused module that move no data themselves."""
_SHAPE = re.compile(r"\b(pred|bf16|[suf]\d+|c\d+)(?:e\d\w*)?\[([\d,]*)\]")
_ATTRIBUTES = re.compile(r"\), \w+=")


@dataclass(frozen=True)
class Objective:
    """A count of a module in canonical text, and its unit.

    Attributes:
      fused: whether XLA:CPU must first assign layouts and fuse.
    """

    unit: str
    count: Callable[[str], float]
    fused: bool = False


def kernels(text: str) -> int:
    """Return the operations of a fused module that run as a kernel: fusions, and what is not fused."""
    return sum(count for kind, count in census(text).items() if kind not in _NO_KERNEL)


def moved_bytes(text: str) -> int:
    """Return the bytes that the kernels of a fused module read and write, if each operand and result moves once.

    This is the roofline of memory. The body of a loop counts once; a kernel that reads a slice counts all of its
    operand.
    """
    lines = (line for _, kind, line in operations(text) if kind not in _NO_KERNEL)
    return sum(_bytes(*shape) for line in lines for shape in _SHAPE.findall(_ATTRIBUTES.split(line)[0]))


def _bytes(kind: str, sizes: str) -> int:
    bits = 8 if kind == "pred" else int(kind.lstrip("bcfsu"))
    number = (bits + 7) // 8
    for size in filter(None, sizes.split(",")):
        number *= int(size)
    return number


OBJECTIVES = {
    OPERATIONS: Objective("operations", lambda text: census(text).total()),
    "computations": Objective("computations", lambda text: len(computations(text))),
    "kernels": Objective("kernels", kernels, fused=True),
    "bytes": Objective("bytes", moved_bytes, fused=True),
}


OPCODES = tuple(
    re.findall(
        r"\S+",
        """
    abs add and batch-norm-grad batch-norm-training bitcast-convert broadcast call clamp compare concatenate conditional
    convert convolution copy cosine divide dot dynamic-slice dynamic-update-slice erf exponential floor gather iota log
    log-plus-one logistic map maximum minimum multiply negate not or pad power reduce reduce-window remainder reshape
    reverse rsqrt scatter select select-and-scatter sign sine slice sort sqrt subtract tanh transpose while xor
    """,
    )
)
