"""Which values inside a JAX function can be tuned, and how they flow into one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .description import Value
from .marks import BODIES, CALLS, label

MOST = 16
"""How many values are tuned in a function that names none: the largest ones."""
_LIGHT = ("broadcast_in_dim", "reshape", "iota", "convert_element_type", "squeeze", "slice", "copy")
_INNER = CALLS | BODIES


def marks(closed: ClosedJaxpr) -> tuple[list[Value], list[tuple[int, int]]]:
    """Return the values that can be tuned, and the direct flows between them.

    A flow is a pair of numbers. They count the function's arguments first, then the marks, then the results.
    """
    first: dict[str, JaxprEqn] = {}

    def keep(operation: JaxprEqn, name: str, sources: frozenset[int]) -> None:
        first[name] = operation

    _trace(closed.jaxpr, [frozenset()] * len(closed.jaxpr.invars), Counter(), keep)
    chosen = _chosen(first)
    numbers = {name: len(closed.jaxpr.invars) + i for i, name in enumerate(chosen)}
    flows: set[tuple[int, int]] = set()

    def note(operation: JaxprEqn, name: str, sources: frozenset[int]) -> frozenset[int] | None:
        if name not in numbers:
            return None
        flows.update((source, numbers[name]) for source in sources)
        return frozenset([numbers[name]])

    sources = [frozenset([i]) for i in range(len(closed.jaxpr.invars))]
    ends = _trace(closed.jaxpr, sources, Counter(), note)
    last = len(sources) + len(chosen)
    flows.update((source, last + i) for i, end in enumerate(ends) for source in end)
    return [_mark(name, first[name]) for name in chosen], sorted(flows)


def _trace(jaxpr: Jaxpr, values: Sequence[frozenset[int]], seen: Counter[str], note: Any) -> list[frozenset[int]]:  # noqa: ANN401
    """Walk over the operations as `marks._run` does; a value is the set of marks that it comes from."""
    known = dict(zip(jaxpr.invars, values, strict=True))

    def read(variable: Any) -> frozenset[int]:  # noqa: ANN401 - a variable or a literal
        return frozenset() if isinstance(variable, Literal) else known.get(variable, frozenset())

    for operation in jaxpr.eqns:
        primitive, sources = operation.primitive.name, [read(v) for v in operation.invars]
        inner = operation.params.get(_INNER.get(primitive, ""))
        every = frozenset().union(*sources)
        if inner is None:
            own = None if operation.primitive.multiple_results else note(operation, label(operation, seen), every)
            results = [own or every] * len(operation.outvars)
        else:  # the constants of a loop's condition come first
            results = _trace(inner.jaxpr, sources[len(sources) - len(inner.jaxpr.invars) :], seen, note)
        known.update(zip(operation.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _chosen(found: Mapping[str, JaxprEqn]) -> list[str]:
    """Return the names that the user gave, otherwise those of the largest results that are not cheap to compute."""
    named = [name for name, operation in found.items() if operation.primitive.name == "name"]
    if named:
        return named
    heavy = [n for n, o in found.items() if o.primitive.name not in _LIGHT and len(_array(o).shape) > 1]
    largest = set(sorted(heavy, key=lambda n: -_bytes(found[n]))[:MOST])
    return [name for name in found if name in largest]


def _array(operation: JaxprEqn) -> Any:  # noqa: ANN401 - an abstract array
    return operation.outvars[0].aval


def _bytes(operation: JaxprEqn) -> int:
    return int(np.prod(_array(operation).shape)) * _array(operation).dtype.itemsize


def _mark(name: str, operation: JaxprEqn) -> Value:
    from jax._src import source_info_util

    array = _array(operation)
    return Value(name, tuple(array.shape), str(array.dtype), source_info_util.summarize(operation.source_info))
