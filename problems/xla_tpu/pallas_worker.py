"""The child process that compiles Pallas kernels: it takes tiles and returns how much code runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..tensor_compiler.calibration.compiler import ENVIRONMENT, device_of
from ..tensor_compiler.calibration.estimates import Estimates
from ..tensor_compiler.hardware.machine import one_core
from .worker import LEAST_SECONDS, Enter, cost_and_remark

Tiles = tuple[tuple[str, Any], ...]


def serve(name: str, default_tiles: Tiles, machine: str) -> Callable[[Tiles, Enter], Any]:
    """Return the handler for one kernel on one machine.

    Args:
      name: of a function in `kernels`.
      default_tiles: its default tiles.
      machine: one of `MACHINES`.
    """
    os.environ.update(ENVIRONMENT)
    return Kernels(name, default_tiles, machine).answer


class Kernels:
    """One kernel, and the cost of its default tiles."""

    def __init__(self, name: str, default_tiles: Tiles, machine: str) -> None:
        import jax

        from . import kernels

        self._sharding, self._machine = device_of(machine), one_core(machine)
        self._make, self._default_tiles, self._jax = getattr(kernels, name), default_tiles, jax

    def answer(self, tiles: Tiles, enter: Enter) -> Any:  # noqa: ANN401 - a cost and a remark, or a status and a reason
        """Return the cost of tiles and a remark, or a status and a reason."""
        enter("compile", LEAST_SECONDS)
        return cost_and_remark(self._estimate(tiles), self._default)

    @cached_property
    def _default(self) -> Estimates:
        return self._estimate(self._default_tiles)

    def _estimate(self, tiles: Tiles) -> Estimates:
        kernel = self._make(dict(tiles))
        shapes = [self._jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=self._sharding) for a in kernel.arguments]
        try:
            compiled: Any = self._jax.jit(kernel.call).lower(*shapes).compile()
        finally:
            self._jax.clear_caches()
        memory = compiled.memory_analysis()
        roofline = max(kernel.bytes / self._machine.memory, kernel.flops / self._machine.matrix)
        memory_bytes = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
        return Estimates(float(kernel.steps * memory.generated_code_size_in_bytes), roofline, float(memory_bytes))
