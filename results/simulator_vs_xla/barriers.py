"""Variants of a model with barriers behind some of its operations, over which neither compiler fuses.

A fifth of the operations has one, chosen at random: about as many in all variants, so that it is not their number that
is ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from bbo_suite import Problem

SHARE = 0.2


def variants(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    simulator: Callable[..., tuple[Problem, str]],
    rng: np.random.Generator,
) -> Iterator[tuple[float, Callable[..., Any]]]:
    """Yield variants without end: each its seconds here by default, and the function for XLA:TPU to compile."""
    traced = jax.make_jaxpr(function)(*arguments)
    while True:
        variant = with_barriers(traced, SHARE, rng)
        problem, _ = simulator("fusion", variant, arguments)
        yield float(problem.evaluate(problem.default_row()[None]).values[0]), variant


def with_barriers(traced: ClosedJaxpr, share: float, rng: np.random.Generator) -> Callable[..., Any]:
    """Return the function of a traced program with barriers behind a share of its operations."""
    chosen: dict[int, bool] = {}

    def run(jaxpr: Any, constants: list[Any], arguments: list[Any], place: tuple[int, ...]) -> list[Any]:  # noqa: ANN401
        """Evaluate a program operation by operation; `place` tells the calls that lead to it."""
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
        for i, equation in enumerate(jaxpr.eqns):
            taken = [v.val if isinstance(v, Literal) else values[v] for v in equation.invars]
            if equation.primitive.name in ("jit", "pjit"):
                inner = equation.params["jaxpr"]
                made = run(inner.jaxpr, inner.consts, taken, (*place, i))
            else:
                settings = equation.primitive.get_bind_params(equation.params)
                made = equation.primitive.bind(*taken, **settings)
                made = made if equation.primitive.multiple_results else [made]
                if chosen.setdefault(hash((*place, i)), bool(rng.random() < share)):
                    made = jax.lax.optimization_barrier(made)
            values |= dict(zip(equation.outvars, made, strict=True))
        return [v.val if isinstance(v, Literal) else values[v] for v in jaxpr.outvars]

    return lambda *leaves: run(traced.jaxpr, traced.consts, list(leaves), ())
