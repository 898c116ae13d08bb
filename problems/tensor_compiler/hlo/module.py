"""The parts of an HLO module, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

# The attributes that name computations; `select` and `scatter` are those of select-and-scatter.
COMPUTATION_ATTRIBUTES = (
    "to_apply",
    "calls",
    "condition",
    "body",
    "true_computation",
    "false_computation",
    "branch_computations",
    "called_computations",
    "select",
    "scatter",
)

_KNOWN_TRIPS = re.compile(r'known_trip_count"?\s*:?\s*\{\s*"?n"?\s*:\s*"?(\d{1,18})\b')

_FIELD = re.compile(r"(\w+)=\s*([\w-]+)")

FAULTS = (KeyError, IndexError, ValueError, TypeError, AttributeError)
"""The exceptions raised when an operand, an attribute or a dimension is missing."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The element type and extents of an array, or the shapes in a tuple (dtype "tuple").

    ``layout`` lists the dimensions from the fastest varying to the slowest; None if that is from the last to the first,
    as where the text states no layout.
    """

    dtype: str
    dims: tuple[int, ...] = ()
    elements: tuple[Shape, ...] = ()
    layout: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``operands`` are positions in its computation, ``attributes`` hold their text as printed.

    ``literal`` is the text of a constant, cut to 64 characters; ``parameter_number`` is set for parameters only.
    """

    name: str
    opcode: str
    shape: Shape
    operands: tuple[int, ...]
    attributes: dict[str, str]
    literal: str | None
    parameter_number: int | None

    @property
    def called_computations(self) -> tuple[str, ...]:
        """The names of the computations that this instruction applies: of branches, that for true comes first."""
        values = [self.attributes[key] for key in COMPUTATION_ATTRIBUTES if key in self.attributes]
        return tuple([name for value in values for name in computation_names(value)])

    @property
    def window(self) -> dict[str, list[str]]:
        """The fields of its window, such as `size` and `pad`, each with one value per axis; empty without a window."""
        fields = {key: values.split("x") for key, values in _FIELD.findall(self.attributes.get("window", ""))}
        if len({len(values) for values in fields.values()}) > 1:
            raise Unfit("its window has fields of different lengths")
        return fields

    def numbers(self, attribute: str) -> list[int]:
        """Return the numbers of an attribute such as `dimensions={0,3}`, none if it is missing."""
        return [int(n) for n in re.findall(r"-?\d+", self.attributes.get(attribute, ""))]

    @property
    def known_trips(self) -> int | None:
        """How often XLA noted that this loop runs, in JSON or in a string of it; None if it noted nothing."""
        noted = _KNOWN_TRIPS.search(self.attributes.get("backend_config", "").replace("\\", ""))
        return int(noted[1]) if noted else None


@dataclass(frozen=True, slots=True)
class Computation:
    """Instructions in the order of the text; ``root`` is the position of the one that gives the result."""

    name: str
    instructions: tuple[Instruction, ...]
    root: int


@dataclass(frozen=True, slots=True)
class Module:
    """All computations of a program by name; ``entry`` names the one that runs first.

    ``parameters`` have the layouts in which the entry takes arrays, if the module fixes them. Its layouts of results
    are left out, because JAX writes there how they happen to be computed. ``partitioned`` is set if every
    device runs this one program, each on its part of the arrays.
    """

    name: str
    computations: dict[str, Computation]
    entry: str
    parameters: Shape = Shape("tuple")
    partitioned: bool = False

    def instructions(self) -> list[Instruction]:
        """Return all instructions in the order of the text."""
        return [instruction for computation in self.computations.values() for instruction in computation.instructions]

    def with_instructions(self, instructions: Iterable[Instruction]) -> Module:
        """Return the module with other instructions, which stand in the order of the text."""
        rest, computations = iter(instructions), {}
        for name, computation in self.computations.items():
            own = tuple(islice(rest, len(computation.instructions)))
            computations[name] = replace(computation, instructions=own)
        return replace(self, computations=computations)


class Unfit(ValueError):
    """Says in words what does not fit in an instruction."""


class Malformed(Exception):
    """Says which instruction is not well-formed, and why."""

    def __init__(self, name: str, opcode: str, error: Exception) -> None:
        super().__init__(f"instruction {name!r} ({opcode}) is not well-formed: {reason(error)}")


def reason(error: Exception) -> str:
    """Return in words why one of `FAULTS` was raised for an instruction."""
    if isinstance(error, Unfit):
        return str(error)
    missing = isinstance(error, KeyError) and isinstance(error.args[0], str)
    return f"it has no {error.args[0]}" if missing else "an operand, an attribute or a dimension does not fit"


def computation_names(value: str) -> list[str]:
    """Return the names in the value of a computation attribute, such as ``a`` or ``{a, b}``."""
    return value.strip("{}").replace(",", " ").split()
