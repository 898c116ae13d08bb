"""How often a loop runs: from its start, step, bound and direction, or from what XLA noted on it.

The numbers in a loop's state are followed through its condition and body as linear forms. This finds every loop whose
counters change by the same integer each time and whose bounds do not change, whatever calls, fusions or copies are
between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..hlo.module import Computation, Instruction, Module, Shape

DEEPEST_CALL = 100

Form = Mapping[int, int]
"""A sum: how often it holds each number of a loop's state, and under `ONE` a constant."""
ONE = -1
Value = Any
"""The value of an instruction: a `Form`, a `Test`, a list of values for a tuple, or None if it is not known."""

_INTEGER = re.compile(r"-?\d{1,20}")
_PASSED_ON = ("add-dependency", "bitcast", "broadcast", "convert", "copy", "domain", "opt-barrier", "reshape")
_OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_CALLS = ("call", "fusion")


class Test(NamedTuple):
    """A comparison of a form with 0, such as LT."""

    direction: str
    form: Form


def trip_count(
    module: Module, loop: Instruction, start: Sequence[int | None], step: Sequence[int | None]
) -> int | None:
    """Return how often a loop runs, None if that is not known.

    What XLA noted on the loop counts where the loop itself does not say it.

    Args:
      module: of the loop.
      loop: a `while`.
      start: the numbers in its first state, in order, None where one is not known.
      step: what each trip adds to them, as `steps` returns it.
    """
    test = _result(module, loop.attributes["condition"], [_state(loop.shape)])
    count = _count(test, start, step) if isinstance(test, Test) else None
    return loop.known_trips if count is None else count


def steps(module: Module, loop: Instruction, start: Sequence[int | None]) -> list[int | None]:
    """Return what each trip of a loop adds to each number of its state, None where that is not known."""
    after = [*_leaves(_result(module, loop.attributes["body"], [_state(loop.shape)]), loop.shape)]
    change = [_sum(form, {k: 1}, -1) if isinstance(form, Mapping) else None for k, (form, _) in enumerate(after)]
    fixed = [number if form == {} else None for number, form in zip(start, change, strict=True)]
    types = (dtype for _, dtype in after)
    return [_wrapped(_at(form, fixed), dtype) for form, dtype in zip(change, types, strict=True)]


def starts(module: Module, computation: Computation, loop: Instruction) -> list[int | None]:
    """Return the numbers in a loop's first state that follow from its computation alone."""
    first = _values(module, computation, [])[loop.operands[0]]
    return [_at(form, []) if isinstance(form, Mapping) else None for form, _ in _leaves(first, loop.shape)]


def number(instruction: Instruction, operands: Sequence[int | None]) -> int | None:
    """Return the integer that an instruction computes from integers, None if that is not known."""
    forms = [None if operand is None else _constant(operand) for operand in operands]
    form = _computed(instruction, forms) if _is_scalar(instruction.shape) else None
    return _at(form, []) if isinstance(form, Mapping) else None


def _count(test: Test, start: Sequence[int | None], step: Sequence[int | None]) -> int | None:
    """Return how often a test holds in a row."""
    now, change = _at(test.form, start), _at({k: n for k, n in test.form.items() if k != ONE}, step)
    if now is None or change is None:
        return None
    if test.direction in ("EQ", "NE"):
        ends = 1 if test.direction == "EQ" else _quotient(-now, change)
        return 0 if (now == 0) != (test.direction == "EQ") else ends if change else None
    if test.direction in ("GT", "GE"):
        now, change = -now, -change
    now -= test.direction in ("LE", "GE")  # of integers, so that it holds while it is below 0
    if now >= 0:
        return 0
    return -(now // change) if change > 0 else None


def _quotient(distance: int, step: int) -> int | None:
    """Return how many steps lead exactly over a distance."""
    return distance // step if step and distance % step == 0 and distance // step > 0 else None


def _at(form: Form | None, numbers: Sequence[int | None]) -> int | None:
    """Return a form's value, None if it holds a number that is not known."""
    if form is None:
        return None
    parts = [n if k == ONE else (numbers[k] if k < len(numbers) else None, n) for k, n in form.items()]
    known = [part if isinstance(part, int) else None if part[0] is None else part[0] * part[1] for part in parts]
    return None if None in known else sum(n for n in known if n is not None)


def _wrapped(step: int | None, dtype: str) -> int | None:
    """Return a step as a signed number: an unsigned counter counts down by a large one."""
    if step is None or not dtype[1:].isdigit():
        return None
    size = 1 << int(dtype[1:])
    return (step + size // 2) % size - size // 2


def _state(shape: Shape) -> Value:
    """Return the value of a loop's state: the numbers in it, in order."""
    places = iter(range(1 << 62))

    def part(shape: Shape) -> Value:
        return [part(one) for one in shape.elements] if shape.dtype == "tuple" else {next(places): 1}

    return part(shape)


def _leaves(value: Value, shape: Shape) -> Iterator[tuple[Value, str]]:
    """Yield the arrays in a value, None where they are not known, and their types."""
    if shape.dtype != "tuple":
        yield value, shape.dtype
    for i, part in enumerate(shape.elements):
        yield from _leaves(value[i] if isinstance(value, list) and i < len(value) else None, part)


def _result(module: Module, name: str, arguments: list[Value], depth: int = 0) -> Value:
    computation = module.computations[name]
    return _values(module, computation, arguments, depth)[computation.root] if depth < DEEPEST_CALL else None


def _values(module: Module, computation: Computation, arguments: list[Value], depth: int = 0) -> list[Value]:
    values: list[Value] = []
    for one in computation.instructions:
        operands = [values[i] for i in one.operands]
        if one.opcode == "parameter":
            place = one.parameter_number or 0
            values.append(arguments[place] if place < len(arguments) else None)
        elif one.opcode in _CALLS and one.called_computations and (_is_scalar(one.shape) or one.shape.elements):
            values.append(_result(module, one.called_computations[0], operands, depth + 1))
        else:
            values.append(_computed(one, operands))
    return values


def _computed(one: Instruction, operands: list[Value]) -> Value:
    if one.opcode == "tuple":
        return operands
    if one.opcode == "get-tuple-element":
        return operands[0][int(one.attributes["index"])] if isinstance(operands[0], list) else None
    if not _is_scalar(one.shape) and not (one.shape.elements and one.opcode in _PASSED_ON):
        return None
    if one.opcode == "constant":
        literal = (one.literal or "").strip("{} \n")
        return _constant(int(literal)) if _INTEGER.fullmatch(literal) else None
    if one.opcode in _PASSED_ON and operands:
        return operands[0]
    if one.opcode == "not" and isinstance(operands[0], Test):
        return operands[0]._replace(direction=_OPPOSITE[operands[0].direction])
    known = [operand for operand in operands if isinstance(operand, Mapping)]
    compute = _COMPUTE.get(one.opcode)
    return compute(one, *known) if compute and len(known) == len(operands) else None


def _is_scalar(shape: Shape) -> bool:
    return shape.dtype != "tuple" and math.prod(shape.dims) == 1


def _constant(value: int) -> Form:
    return {ONE: value} if value else {}


def _sum(a: Form, b: Form, factor: int = 1) -> Form:
    total = {k: a.get(k, 0) + factor * b.get(k, 0) for k in (*a, *b)}
    return {k: n for k, n in total.items() if n}


def _product(a: Form, b: Form) -> Form | None:
    a, b = (a, b) if b.keys() <= {ONE} else (b, a)
    return _sum({}, a, b.get(ONE, 0)) if b.keys() <= {ONE} else None


_COMPUTE: dict[str, Callable[..., Value]] = {
    "add": lambda _, a, b: _sum(a, b),
    "subtract": lambda _, a, b: _sum(a, b, -1),
    "negate": lambda _, a: _sum({}, a, -1),
    "multiply": lambda _, a, b: _product(a, b),
    "compare": lambda one, a, b: Test(one.attributes["direction"], _sum(a, b, -1)),
}
