"""The child process that runs XLA:TPU: it takes decisions and returns estimates."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from bbo_suite.supervised import PARTS, PartRow

from ..tensor_compiler.calibration.compiler import ENVIRONMENT, device_of
from ..tensor_compiler.calibration.estimates import Estimates, estimates
from ..tensor_compiler.hardware.machine import one_core
from .decisions import Decisions, Order

DESCRIBE, ESTIMATE = "describe", "estimate"
"""Requests that are not candidates: for a `Description`, and `(ESTIMATE, decisions)` for `Estimates`."""
LEAST_SECONDS, TIMES = 120.0, 20
"""Time limit of a candidate: the larger of a number of seconds, and a multiple of what the default takes."""
TOLERANCE = 1.01
"""Largest roofline of a win, in multiples of the default's: layouts may pad a little more."""
Enter = Callable[[str, float], None]


def serve(path: str, name: str, machine: str) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program on one machine.

    Args:
      path, name: of a Python file and a function in it, see `programs.load`.
      machine: one of `MACHINES`.

    Raises:
      ValueError: there is no such program, or JAX cannot trace it.
    """
    os.environ.update(ENVIRONMENT)
    return Compiler(path, name, machine).answer


class Compiler:
    """One program, and the estimates of the default, which candidates are compared with."""

    def __init__(self, path: str, name: str, machine: str) -> None:
        import jax

        from .programs import describe, load

        self._program = load(path, name)
        self._description = describe(self._program, path, name)
        self._sharding, self._machine = device_of(machine), one_core(machine)
        self._jax: Any = jax

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - a description, estimates, or what a candidate costs
        """Return the answer to a request; for decisions the cost and a remark, or a status and a reason."""
        if request == DESCRIBE:
            return self._description
        with_parts = isinstance(request, tuple) and request[0] == PARTS
        decisions = request[1] if with_parts else request
        if isinstance(decisions, tuple):
            enter("compile", 10 * LEAST_SECONDS)
            return self.estimate(decisions[1])
        enter("compile the default", 10 * LEAST_SECONDS)
        default, seconds = self._default
        enter("compile", max(LEAST_SECONDS, TIMES * seconds))
        found = self.estimate(decisions) if decisions != Decisions() else default
        outcome = cost_and_remark(found, default)
        return (outcome, parts_of(found, outcome[0])) if with_parts else outcome

    @cached_property
    def _default(self) -> tuple[Estimates, float]:
        started = time.perf_counter()
        return self.estimate(Decisions()), time.perf_counter() - started

    def estimate(self, decisions: Decisions) -> Estimates:
        """Compile with decisions and return the compiler's estimates."""
        try:
            compiled = self._lowered(decisions).compile(compiler_options=dict(decisions.flags))
            return estimates(compiled.as_text(), self._machine, _memory(compiled.memory_analysis()))
        finally:
            self._jax.clear_caches()  # each compilation keeps megabytes

    def _lowered(self, decisions: Decisions) -> Any:  # noqa: ANN401 - jax.stages.Lowered
        from .marks import rewritten

        jax, (function, arguments) = self._jax, self._program
        changed = rewritten(function, decisions.barriers, dict(decisions.layouts))
        leaves, structure = jax.tree.flatten(arguments)
        entry = self._formats(len(leaves), decisions.arguments)
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=f) for a, f in zip(leaves, entry, strict=True)]

        def flat(*values: Any) -> list[Any]:  # noqa: ANN401 - traced arrays
            return jax.tree.leaves(changed(*jax.tree.unflatten(structure, values)))

        results = self._formats(len(self._description.results), decisions.results)
        return jax.jit(flat, out_shardings=results, keep_unused=True).lower(*shapes)

    def _formats(self, count: int, orders: Sequence[tuple[int, Order]]) -> list[Any]:
        from jax.experimental.layout import Format, Layout

        known = dict(orders)
        return [Format(Layout(known[i]), self._sharding) if i in known else self._sharding for i in range(count)]


def cost_and_remark(found: Estimates, default: Estimates) -> Any:  # noqa: ANN401 - a cost and a remark, or a status and a reason
    """Return a candidate's cost and a remark, from its estimates and those of the default.

    If a candidate is estimated to take fewer cycles than the default, but its roofline is more than 1 % worse, it is
    not a win: its cost is the default's times the ratio of the rooflines.
    """
    if found.unknown_loops > default.unknown_loops:
        return "compile_error", "the compiler made a loop of which the trips cannot be read"
    roofline, memory = _change(found.roofline, default.roofline), _change(found.memory, default.memory)
    remark = f"roofline {roofline}, peak memory {memory}"
    if found.cycles < default.cycles and found.roofline > TOLERANCE * default.roofline:
        estimated = f"estimated {_change(found.cycles, default.cycles)}"
        return default.cycles * found.roofline / default.roofline, f"contradicted: {estimated}, but {remark}"
    return found.cycles, remark


def parts_of(found: Estimates, cost: float | str) -> list[PartRow]:
    """Return the kernels, and a part of no name with what a contradicted candidate costs beyond them."""
    if isinstance(cost, str):
        return []
    beyond = cost - found.cycles
    return [*found.kernels, ("", b"", 1.0, beyond)] if beyond else list(found.kernels)


def _change(new: float, old: float) -> str:
    return f"{new / old - 1:+.1%}" if old else "unknown"


def _memory(analysis: Any) -> float:  # noqa: ANN401 - jaxlib's CompiledMemoryStats
    sides = analysis.argument_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    return float(max(analysis.peak_memory_in_bytes, sides + analysis.temp_size_in_bytes))
