"""Barriers and layouts inside a JAX function, by the names of its values, without touching its source.

The function is traced once and its operations are bound again one by one, each named value passing through what was
decided for it. Calls are inlined, which the compiler does anyway; bodies of loops are rebuilt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .description import Value

Program = tuple[Callable[..., Any], Sequence[Any]]
"""A JAX function and its arguments, arrays or `jax.ShapeDtypeStruct`."""
Act = Callable[[str, Any], Any]

MOST = 16
"""Values that are tuned in a function that names none: the largest."""
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr"}
_CALLS |= dict.fromkeys(("closed_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr")
_BODIES = {"scan": "jaxpr", "while": "body_jaxpr"}
_LIGHT = ("broadcast_in_dim", "reshape", "iota", "convert_element_type", "squeeze", "slice", "copy")


def rewritten(
    function: Callable[..., Any],
    barriers: Sequence[str] = (),
    layouts: Mapping[str, tuple[int, ...]] | None = None,
) -> Callable[..., Any]:
    """Return the function with decisions about the values that it names by `jax.ad_checkpoint.checkpoint_name`.

    A value that was not named goes by its operation and a number, as `dot_general.2`.

    Args:
      barriers: names of values that are not fused into what uses them (`jax.lax.optimization_barrier`).
      layouts: the order in which a value's dimensions lie in memory, the slowest first.
    """
    from jax.experimental.layout import Layout, with_layout_constraint

    def act(name: str, value: Any) -> Any:  # noqa: ANN401 - a traced array
        if layouts and name in layouts:
            value = with_layout_constraint(value, Layout(layouts[name]))
        return jax.lax.optimization_barrier(value) if name in barriers else value

    def again(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the function takes and returns
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        results = _run(closed.jaxpr, closed.consts, jax.tree.leaves(arguments), act, Counter())
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return again


def _run(jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Any], act: Act, seen: Counter[str]) -> list[Any]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))

    def read(variable: Any) -> Any:  # noqa: ANN401 - a variable or a literal
        return variable.val if isinstance(variable, Literal) else known[variable]

    for operation in jaxpr.eqns:
        results = _bind(operation, [read(v) for v in operation.invars], act, seen)
        known.update(zip(operation.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _bind(operation: JaxprEqn, values: list[Any], act: Act, seen: Counter[str]) -> list[Any]:
    word, settings = operation.primitive.name, dict(operation.params)
    if inner := settings.get(_CALLS.get(word, "")):
        return _run(inner.jaxpr, inner.consts, values, act, seen)
    if word in _BODIES:
        settings[_BODIES[word]] = _rebuilt(settings[_BODIES[word]], act, seen)
    bound = operation.primitive.get_bind_params(settings)
    functions, settings = bound if isinstance(bound, tuple) else ((), bound)  # a pair up to JAX 0.9
    results = operation.primitive.bind(*functions, *values, **settings)
    if operation.primitive.multiple_results:
        return list(results)
    return [act(label(operation, seen), results)]


def _rebuilt(body: ClosedJaxpr, act: Act, seen: Counter[str]) -> ClosedJaxpr:
    return jax.make_jaxpr(lambda *values: _run(body.jaxpr, body.consts, values, act, seen))(*body.in_avals)


def label(operation: JaxprEqn, seen: Counter[str]) -> str:
    """Return the name of an operation's result, unlike all that were `seen` before."""
    word = operation.primitive.name
    word = operation.params["name"] if word == "name" else word
    seen[word] += 1
    return f"{word}.{seen[word]}" if seen[word] > 1 or operation.primitive.name != "name" else word


def marks(closed: ClosedJaxpr) -> tuple[list[Value], list[tuple[int, int]]]:
    """Return the values that can be tuned, and which of them flow into which without another between.

    The ends of a flow are numbers: the function's arguments first, then the marks, then the results.
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
    """Walk as `_run` does, over the marks that each value comes from."""
    known = dict(zip(jaxpr.invars, values, strict=True))

    def read(variable: Any) -> frozenset[int]:  # noqa: ANN401 - a variable or a literal
        return frozenset() if isinstance(variable, Literal) else known.get(variable, frozenset())

    for operation in jaxpr.eqns:
        word, sources = operation.primitive.name, [read(v) for v in operation.invars]
        inner = operation.params.get((_CALLS | _BODIES).get(word, ""))
        every = frozenset().union(*sources)
        if inner is None:
            own = None if operation.primitive.multiple_results else note(operation, label(operation, seen), every)
            results = [own or every] * len(operation.outvars)
        else:  # what enters a loop's condition beside its body comes first
            results = _trace(inner.jaxpr, sources[len(sources) - len(inner.jaxpr.invars) :], seen, note)
        known.update(zip(operation.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _chosen(found: Mapping[str, JaxprEqn]) -> list[str]:
    """Return the names that were given, or else those of the largest results that are some work."""
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
