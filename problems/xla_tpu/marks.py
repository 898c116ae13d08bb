"""Adds barriers and layouts to named values inside a JAX function, without changes to its source.

The function is traced once. Then its operations are bound again one by one, and each named value gets what was decided
for it. Calls are inlined, which the compiler does anyway; bodies of loops are rebuilt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

Program = tuple[Callable[..., Any], Sequence[Any]]
"""A JAX function and its arguments, arrays or `jax.ShapeDtypeStruct`."""
Act = Callable[[str, Any], Any]

CALLS = {"jit": "jaxpr", "pjit": "jaxpr"}
CALLS |= dict.fromkeys(("closed_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr")
"""Operations that call a function, and the parameter that holds it."""
BODIES = {"scan": "jaxpr", "while": "body_jaxpr"}
"""Loops, and the parameter that holds their body."""


def rewritten(
    function: Callable[..., Any],
    barriers: Container[str] = (),
    layouts: Mapping[str, tuple[int, ...]] | None = None,
) -> Callable[..., Any]:
    """Return the function with decisions about values that it names by `jax.ad_checkpoint.checkpoint_name`.

    The name of any other value is its operation and a number, such as `dot_general.2`.

    Args:
      barriers: names of values that are not fused into their users (`jax.lax.optimization_barrier`).
      layouts: the order of a value's dimensions in memory, major to minor, by name.
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
    primitive, settings = operation.primitive.name, dict(operation.params)
    if inner := settings.get(CALLS.get(primitive, "")):
        return _run(inner.jaxpr, inner.consts, values, act, seen)
    if primitive in BODIES:
        settings[BODIES[primitive]] = _rebuilt(settings[BODIES[primitive]], act, seen)
    bound = operation.primitive.get_bind_params(settings)
    functions, settings = bound if isinstance(bound, tuple) else ((), bound)  # a pair up to JAX 0.9
    results = operation.primitive.bind(*functions, *values, **settings)
    if operation.primitive.multiple_results:
        return list(results)
    return [act(label(operation, seen), results)]


def _rebuilt(body: ClosedJaxpr, act: Act, seen: Counter[str]) -> ClosedJaxpr:
    return jax.make_jaxpr(lambda *values: _run(body.jaxpr, body.consts, values, act, seen))(*body.in_avals)


def label(operation: JaxprEqn, seen: Counter[str]) -> str:
    """Return a unique name for an operation's result; `seen` counts the names so far and is updated."""
    name = operation.primitive.name
    name = operation.params["name"] if name == "name" else name
    seen[name] += 1
    return f"{name}.{seen[name]}" if seen[name] > 1 or operation.primitive.name != "name" else name
