"""The lexical parts of HLO text: space, brackets, shapes and attributes.

The text is not trusted: every step takes linear time in the text it consumes, and there is no recursion.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NoReturn

from bbo_suite.errors import UserError

from .module import Shape

MAX_TUPLE_DEPTH = 64
MAX_RANK = 32
MAX_ELEMENTS = 1 << 62  # XLA counts bytes in 64 bits
REMEDY = "print the whole module again, for example with jax.jit(f).lower(x).compiler_ir('hlo').as_hlo_text()"

# Possessive repeats (`*+`) never backtrack: a pattern that fails costs no more than the text it looked at.
COMMENT = r"/\*(?:[^*]|\*(?!/))*+\*/"
SPACE = rf"(?:\s|{COMMENT}|//[^\n]*+)*+"
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
NAME = r"[\w.\-]++"

_SPACE = re.compile(SPACE)
_ATTRIBUTE = re.compile(rf"{SPACE},{SPACE}({NAME})\s*+=\s*+")
_PLAIN = re.compile(r'[^\s,"(){}\[\]]*+')
_SHAPE_PART = re.compile(
    rf"(?:[\s,]|{COMMENT})*+(?:([()])|([A-Za-z]\w*+)\[([^\[\]\n]*+)\](?:\{{([\d,\s]*+)(?::[^{{}}\n]*+)?\}})?)"
)
_INTEGER = re.compile("[0-9]{1,18}")
# An unclosed quote or comment comes last: it matches only if the text ends before the close.
_BRACKET = re.compile(rf'[(){{}}\[\]]|{STRING}|{COMMENT}|"|/\*', re.DOTALL)
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

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise a UserError for the problem at a position in the text, by default the current one."""
        line = self.text.count("\n", 0, self.position if position is None else position) + 1
        raise UserError(f"{self.source}, line {line}: {problem}; {REMEDY}.")

    def brackets(self) -> None:
        """Pass the bracketed group, or the quoted string, that begins here."""
        start = self.position
        closers: list[str] = []
        for token in _BRACKET.finditer(self.text, start):
            mark = token[0]
            if mark in _CLOSERS:
                closers.append(_CLOSERS[mark])
            elif mark in ('"', "/*") or (mark in ")}]" and closers.pop() != mark):
                break
            if not closers:
                self.position = token.end()
                return
        self.fail(f"the {self.text[start]!r} is not closed properly", start)

    def attributes(self) -> dict[str, tuple[str, int]]:
        """Return the raw value of each ``, key=value`` from here on, with the position of its key."""
        attributes = {}
        while key := self.match(_ATTRIBUTE):
            attributes[key[1]] = (self.value(), key.start(1))
        return attributes

    def value(self) -> str:
        """Return the text up to the next comma or space outside brackets and strings."""
        start = self.position
        self.match(_PLAIN)
        while self.text.startswith(("(", "{", "[", '"'), self.position):
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
        shape = _array_shape(part[2], part[3], part[4])
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
    return Shape(dtype, sizes, (), order)


def integers(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a list such as ``8,128``, or None if one is not a number of at most 18 digits."""
    found = [part.strip() for part in text.split(",")] if text.strip() else []
    return tuple(map(int, found)) if all(map(_INTEGER.fullmatch, found)) else None
