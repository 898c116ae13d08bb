"""HLO text to plain data: modules, their computations and the instructions in them.

The text is not trusted: every step takes linear time in the text it consumes, and there is no recursion.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, NoReturn

from bbo_suite.errors import UserError

from .attributes import expected, lacking
from .module import COMPUTATION_ATTRIBUTES, Computation, Instruction, Module, Shape, computation_names

MAX_TUPLE_DEPTH = 64
MAX_RANK = 32
MAX_ELEMENTS = 1 << 62  # XLA counts bytes in 64 bits

MAX_LITERAL_LENGTH = 64
REMEDY = "print the whole module again, for example with jax.jit(f).lower(x).compiler_ir('hlo').as_hlo_text()"
SIZES = "print the module for arguments of fixed sizes, such as jax.ShapeDtypeStruct((8, 128), 'float32')"

# Possessive repeats (`*+`) never backtrack: a pattern that fails costs no more than the text it looked at.
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
NAME = r"[\w.\-]++"
LEFT_OUT = "{...}"
"""What XLA prints for a large constant if it is not asked for its numbers."""

# An unclosed string or comment comes last: it matches only if the text ends before the close.
_COMMENT = re.compile(rf'({STRING}|"[\s\S]*+)|/\*(?:[^*]|\*(?!/))*+\*/|//[^\n]*+|(/\*[\s\S]*+)', re.DOTALL)
_SPACE = re.compile(r"\s*+")
_ATTRIBUTE = re.compile(rf"\s*+,\s*+({NAME})\s*+=\s*+")
_PLAIN = re.compile(r'[^\s,"(){}\[\]]*+')
_MORE = re.compile(r"[ \t]*+(?=[({\[\"])")
# The `b` of a buffer says where the array lies, not what it is.
_SHAPE_PART = re.compile(
    r"[\s,]*+(?:([()])|(b\()?([A-Za-z]\w*+)\[([^\[\]\n]*+)\](?:\{([\d,\s]*+)(?::[^{}\n]*+)?\})?(?(2)\)))"
)
_INTEGER = re.compile("[0-9]{1,18}")
_BRACKET = re.compile(rf'[(){{}}\[\]]|{STRING}|"', re.DOTALL)
_CLOSERS = {"(": ")", "{": "}", "[": "]"}


class Scanner:
    """A position in HLO text; every method moves it past what it reads. A mistake is a UserError with its line."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.position = 0

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match that begins here, or None without moving."""
        found = pattern.match(self.text, self.position)
        self.position = found.end() if found else self.position
        return found

    def take(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Return the match that begins here; ``expected`` describes it for the message if there is none."""
        found = self.match(pattern)
        if found is None:
            self.match(_SPACE)  # so that the message gives the line of the culprit
            ending = "the text ends where it should have" if self.position == len(self.text) else "expected"
            self.fail(f"{ending} {expected}")
        return found

    def fail(self, problem: str, position: int | None = None, remedy: str = REMEDY) -> NoReturn:
        """Raise a UserError for the problem at a position in the text, by default the current one."""
        line = self.text.count("\n", 0, self.position if position is None else position) + 1
        raise UserError(f"{self.source}, line {line}: {problem}; {remedy}.")

    def brackets(self) -> None:
        """Pass the bracketed group, or the quoted string, that begins here."""
        start = self.position
        closers: list[str] = []
        for token in _BRACKET.finditer(self.text, start):
            mark = token[0]
            if mark in _CLOSERS:
                closers.append(_CLOSERS[mark])
            elif mark == '"' or (mark in ")}]" and closers.pop() != mark):
                break
            if not closers:
                self.position = token.end()
                return
        self.fail(f"the {self.text[start]!r} is not closed properly", start)

    def attributes(self) -> dict[str, tuple[str, int]]:
        """Return the raw value of each ``, key=value`` from here on, with the position of its key."""
        attributes = {}
        while key := self.match(_ATTRIBUTE):
            if key[1] == "literal" and not self.text.startswith("(", self.position):  # `literal=s32[] 1`
                self.shape()
                self.match(_SPACE)
            attributes[key[1]] = (self.value(), key.start(1))
        return attributes

    def value(self) -> str:
        """Return the text up to the next comma, or up to a space before anything but a bracket or string."""
        start = self.position
        self.match(_PLAIN)
        while self.match(_MORE):
            self.brackets()
            self.match(_PLAIN)
        return self.text[start : self.position]

    def shape(self) -> Shape:
        """Return the shape of an array, or of a tuple of at most 64 levels."""
        shape, open_tuples = None, [list[Shape]()]
        while shape is None or len(open_tuples) > 1:
            part = self.take(_SHAPE_PART, "a shape such as `f32[8,128]{1,0}`")
            if part[1] == "(":
                open_tuples.append([])
                if len(open_tuples) > MAX_TUPLE_DEPTH:
                    self.fail(f"a tuple shape nests {MAX_TUPLE_DEPTH} levels or more")
                continue
            if part[1] and len(open_tuples) == 1:
                self.fail("a tuple shape closes that was not open")
            shape = Shape("tuple", (), tuple(open_tuples.pop())) if part[1] else self._array_shape(part)
            open_tuples[-1].append(shape)
        return shape

    def _array_shape(self, part: re.Match[str]) -> Shape:
        shape = _array_shape(part[3], part[4], part[5])
        if shape is None and "?" in part[4]:
            why = "is not a shape with bounded dimensions: `?` is not supported"
            self.fail(f"{part[0].strip()[:64]!r} {why}", None, SIZES)
        if shape is None:
            good = f"a shape with bounded dimensions, at most {MAX_RANK}, and a layout of each of them"
            self.fail(f"{part[0].strip()[:64]!r} is not {good}")
        return shape


@lru_cache(maxsize=4096)
def _array_shape(dtype: str, dims: str, layout: str | None) -> Shape | None:
    """Return the shape, the same object for the same text; None if the dimensions or the layout are invalid."""
    sizes = integers(dims.replace("<=", ""))
    order = None if layout is None else integers(layout)
    if sizes is None or len(sizes) > MAX_RANK or math.prod(sizes) > MAX_ELEMENTS:
        return None
    if layout is not None and (order is None or sorted(order) != list(range(len(sizes)))):
        return None
    return Shape(dtype, sizes, (), None if order == tuple(reversed(range(len(sizes)))) else order)


def integers(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a list such as ``8,128``, or None if one is not a number of at most 18 digits."""
    found = [part.strip() for part in text.split(",")] if text.strip() else []
    return tuple(map(int, found)) if all(map(_INTEGER.fullmatch, found)) else None


_LAYOUT = "entry_computation_layout"
_MODULE = re.compile(r"\s*+HloModule\s++([^\s,]++)")
_COMPUTATION = re.compile(rf"\s*+(ENTRY\s++)?%?({NAME})\s*+(?=[({{])")
_ARROW = re.compile(r"\s*+->")
_OPEN = re.compile(r"\s*+{")
_CLOSE = re.compile(r"\s*+}")
_INSTRUCTION = re.compile(rf"\s*+(ROOT\s++)?%?({NAME})\s*+=")
_OPCODE = re.compile(rf"\s*+({NAME})\s*+(?=\()")
_END = re.compile(r"\s*+\Z")
# Newer XLA prints these tables of source positions after the header.
_TABLE = re.compile(r"\s*+(?:FileNames|FunctionNames|FileLocations|StackFrames)[ \t\r]*+\n(?:[0-9][^\n]*+\n?)*+")
_SEPARATOR = re.compile(r"[,(){}\[\]]")


def parse_hlo(text: str, source: str) -> Module:
    """Return the module that HLO text prints; a UserError names the source, the line and the remedy."""
    return _Parser(_COMMENT.sub(_uncommented, text), source).module()


def _uncommented(found: re.Match[str]) -> str:
    """Return a string or an unclosed comment as it is, and for a comment a space with its line breaks."""
    return found[0] if found[1] or found[2] else " " + "\n" * found[0].count("\n")


class _Draft(NamedTuple):
    """An instruction whose operands are still text, because they may be defined further down."""

    position: int
    name: str
    opcode: str
    shape: Shape
    inner: str  # the text in the parentheses
    attributes: dict[str, str]


class _Parser(Scanner):
    """The grammar of a module; ``calls`` holds a position in the text for each computation that is called."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source)
        self.calls: dict[str, int] = {}

    def module(self) -> Module:
        """Read the whole module."""
        name = self.take(
            _MODULE, "a module that begins with `HloModule <name>`, such as *before_optimizations.txt of XLA's dumps"
        )[1]
        header = self.attributes()
        computations: dict[str, Computation] = {}
        entries = []
        while not self.match(_END):
            if self.match(_TABLE):
                continue
            head = self.take(_COMPUTATION, "a computation such as `ENTRY %main (x: f32[2]) -> f32[2] {`")
            if head[2] in computations:
                self.fail(f"the computation {head[2]!r} is defined twice")
            entries += [head[2]] if head[1] else []
            computations[head[2]] = self.computation(head[2])
        if len(entries) != 1:
            self.fail(f"the module has {len(entries)} ENTRY computations where it should have one")
        self.check_calls(computations)
        fixed = self.parameters(*header[_LAYOUT]) if _LAYOUT in header else Shape("tuple")
        return Module(name, computations, entries[0], fixed, "num_partitions" in header)

    def parameters(self, text: str, position: int) -> Shape:
        """Return the shapes of all parameters, as a tuple, in a text such as `{(f32[8])->f32[8]}`."""
        part = Scanner(text, self.source)
        try:
            part.take(_OPEN, "`{`")
            return part.shape()
        except UserError:
            self.fail(f"{_LAYOUT} is not a list of shapes, `->` and a shape", position)

    def check_calls(self, computations: dict[str, Computation]) -> None:
        """Check that every called computation exists and that none calls itself, directly or through others."""
        for name, position in self.calls.items():
            if name not in computations:
                self.fail(f"the called computation {name!r} is not in the module", position)
        calls = {
            name: [called for instruction in computation.instructions for called in instruction.called_computations]
            for name, computation in computations.items()
        }
        if _has_cycle(calls):
            self.fail("the computations call each other in a circle")

    def computation(self, name: str) -> Computation:
        """Read a computation after its name."""
        start = self.position
        if self.text.startswith("(", start):
            self.brackets()
            self.take(_ARROW, "`->` and the result shape of the computation")
            self.shape()
        self.take(_OPEN, "`{` and the instructions of the computation")
        drafts, roots = self.drafts(name)
        self.attributes()  # a computation may end in `}, execution_thread="host"`
        if not drafts or len(roots) > 1:
            self.fail(f"the computation {name!r} has no instruction or more than one ROOT", start)
        instructions = self.resolve(drafts, name)
        numbers = [one.parameter_number for one in instructions if one.parameter_number is not None]
        if sorted(numbers) != list(range(len(numbers))):
            self.fail(f"the parameters of the computation {name!r} are not numbered 0, 1 and so on, each once", start)
        # Without a ROOT the last instruction gives the result, as in XLA's own parser.
        return Computation(name, instructions, roots[0] if roots else len(drafts) - 1)

    def drafts(self, computation: str) -> tuple[list[_Draft], list[int]]:
        """Return the instructions up to the closing brace, and the positions of those marked ROOT."""
        start = self.position
        drafts: list[_Draft] = []
        roots = []
        while not self.match(_CLOSE):
            if self.match(_END):
                self.fail(f"the text ends within the computation {computation!r}", start)
            head = self.take(_INSTRUCTION, "an instruction such as `%y = f32[2] add(%a, %b)`")
            roots += [len(drafts)] if head[1] else []
            drafts.append(self.instruction(head[2], head.start(2)))
        return drafts, roots

    def instruction(self, name: str, position: int) -> _Draft:
        """Read an instruction after its name, which stands at `position`."""
        shape = self.shape()
        opcode = self.take(_OPCODE, "an opcode and its operands in parentheses")[1]
        start = self.position + 1
        self.brackets()
        inner = self.text[start : self.position - 1]
        return _Draft(position, name, opcode, shape, inner, self.instruction_attributes(name))

    def instruction_attributes(self, name: str) -> dict[str, str]:
        """Read the attributes of the instruction with this name, and note the computations that it calls."""
        attributes = self.attributes()
        attributes.pop("metadata", None)  # source positions: most of the text, and not used here
        values = {key: value for key, (value, _) in attributes.items()}
        for key, (value, position) in attributes.items():
            if what := expected(key, value):
                self.fail(f"`{key}={' '.join(value.split())[:64]}` of instruction {name!r} is not {what}", position)
        for key in COMPUTATION_ATTRIBUTES:
            if key in values:
                values[key] = values[key].replace("%", "")
                self.calls.update(dict.fromkeys(computation_names(values[key]), attributes[key][1]))
        return values

    def resolve(self, drafts: list[_Draft], computation: str) -> tuple[Instruction, ...]:
        """Return the instructions with operands as positions."""
        index: dict[str, int] = {}
        for draft in drafts:
            if draft.name in index:
                self.fail(f"the instruction {draft.name!r} is defined twice", draft.position)
            index[draft.name] = len(index)
        instructions = tuple([self.resolve_one(draft, index) for draft in drafts])
        operands = {position: instruction.operands for position, instruction in enumerate(instructions)}
        # Only an operand that is defined further down can close a circle.
        if any(max(each, default=-1) >= position for position, each in operands.items()) and _has_cycle(operands):
            self.fail(f"instructions of computation {computation!r} use each other in a circle", drafts[0].position)
        return instructions

    def resolve_one(self, draft: _Draft, index: dict[str, int]) -> Instruction:
        """Return one instruction; `index` has the position of every name in the computation."""
        position, name, opcode, shape, inner, attributes = draft
        if opcode == "constant":
            return Instruction(name, opcode, shape, (), attributes, inner[:MAX_LITERAL_LENGTH], None)
        if opcode == "parameter":
            return Instruction(name, opcode, shape, (), attributes, None, self.parameter_number(draft))
        operands = _operand_names(inner)
        for operand in operands:
            if operand not in index:
                self.fail(f"the operand {operand[:64]!r} of instruction {name!r} is not defined", position)
        if what := lacking(opcode, len(operands), attributes):
            self.fail(f"the instruction {name!r} ({opcode}) {what}", position)
        return Instruction(name, opcode, shape, tuple([index[operand] for operand in operands]), attributes, None, None)

    def parameter_number(self, draft: _Draft) -> int:
        """Return the number in the parentheses of a parameter."""
        numbers = integers(draft.inner)
        if numbers is None or len(numbers) != 1:
            self.fail(f"the parameter {draft.name!r} has no number", draft.position)
        return numbers[0]


def _operand_names(text: str) -> list[str]:
    """Return the names in an operand list: ``f32[2]{0} %a, b`` has ``a`` and ``b``."""
    # The name is the last word of an operand; a shape may stand before it.
    words = [operand.split()[-1:] for operand in _split(text)] if text.strip() else []
    return ["".join(word).removeprefix("%") for word in words]


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, start, depth = [], 0, 0
    for mark in _SEPARATOR.finditer(text):
        if mark[0] != ",":
            depth += 1 if mark[0] in "({[" else -1
        elif depth == 0:
            parts.append(text[start : mark.start()])
            start = mark.end()
    return [*parts, text[start:]]


def _has_cycle(graph: Mapping[Any, Iterable[Any]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False
