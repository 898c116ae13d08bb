"""The tiles of a Pallas kernel for TPUs as a problem."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import choice, product, scale
from bbo_suite.core.libraries import refusal
from bbo_suite.core.space import Parameter
from bbo_suite.supervised import LiveProblem, Service

from ..tensor_compiler.hardware.machine import split_machine
from .problem import MEMORY, libtpu_version

_FORMAT = 1
"""Increase it when the cost of a candidate changes."""
_ROWS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_LANES = (64, 128, 256, 512, 1024, 2048)
_LIMIT = (choice("limit", (16, 32, 64, 96)), 16)
_TILES: dict[str, tuple[tuple[Parameter, int | str], ...]] = {
    "matmul": (
        (scale("rows", _ROWS), 512),
        (scale("columns", _LANES), 512),
        (scale("depth", _LANES), 512),
        (choice("first", ("rows", "columns")), "rows"),
        _LIMIT,
    ),
    "attention": (
        (scale("heads", (1, 2, 4, 8)), 1),
        (scale("queries", _ROWS), 512),
        (scale("keys", _LANES), 512),
        _LIMIT,
    ),
}
"""The parameters of each kernel and their defaults: tiles of 512, as in the examples of JAX's documentation."""

_SNIPPET = """\
# {head}
from bbo_problems.xla_tpu.kernels import {name}

kernel = {name}({tiles})
# kernel.call(*arguments), for arguments like kernel.arguments; limit is the vmem_limit_bytes of CompilerParams in MiB
"""


class PallasProblem(LiveProblem):
    """Tiles of a Pallas kernel for TPUs: `pallas/kernel`, or `pallas/kernel@v4` for another machine.

    A candidate is the size of each window of the kernel, the order in which windows are visited, and how much
    scratchpad the kernel may use. If it does not fit or is not aligned, it is a compile error. The compiler does not
    estimate cycles for such kernels, so the cost is what is known: the bytes of the kernel's code, which has no loop,
    times the steps of its grid. A candidate with a lower cost than the default, but a worse roofline (bytes moved from
    and to memory, floating point operations), is not a win, as in `xla-tpu/...`.
    """

    instances: ClassVar[tuple[str, ...]] = tuple(_TILES)
    unit = "code bytes"
    decision = "tiles of a TPU kernel"
    costs = "code bytes times grid steps"
    time_per_candidate = "0.4 to 4 s"
    extra = "tpu"

    def __init__(self, instance: str) -> None:
        self._name, self._machine = split_machine(instance)
        self._libtpu = libtpu_version()
        tiles = _TILES[self._name]
        self.space = product(*(parameter for parameter, _ in tiles))
        self.default = np.array([list(parameter.values).index(default) for parameter, default in tiles])
        compiler = f"xla-tpu-{self._libtpu}"
        content = f"{_FORMAT}|{compiler}|{instance}|{self._machine}|{tiles}"
        default_tiles = self.request(self.default)
        target = f"{__package__}.pallas_worker:serve"
        service = Service(
            target, (self._name, default_tiles, self._machine), memory=MEMORY, name=f"Pallas {self._name}"
        )
        self._serve(service)
        self._identify(content, compiler)

    @classmethod
    def available(cls) -> str:
        """Return whether JAX or libtpu is missing, or too old."""
        return refusal(libtpu_version)

    def request(self, config: NDArray) -> tuple[tuple[str, int | str], ...]:
        """Return the name and value of every parameter."""
        return tuple(self.space.describe(config).items())

    def usage(self) -> str:
        """Return for which version the code is."""
        return (
            f"this Python code, for one core of {self._machine} with libtpu {self._libtpu}; costs are estimates, so"
            " measure it on the machine"
        )

    def paste(self, config: NDArray) -> str:
        """Return Python code that makes the kernel with a candidate's tiles."""
        evaluations = self.evaluate(np.stack([self.default_row(), config]))
        cost, default, remark = evaluations.values[1], evaluations.values[0], evaluations.reasons.get(1, "")
        head = (
            f"{self._name}, {self._machine}, libtpu {self._libtpu}: {cost:,.0f} code bytes, the default {default:,.0f}"
        )
        return _SNIPPET.format(head=f"{head}; {remark}", name=self._name, tiles=dict(self.request(config)))

    def facts(self) -> dict[str, str]:
        """Return the compiler, the machine, and what the costs are."""
        return {
            "compiler": f"Pallas and XLA:TPU of libtpu {self._libtpu}, ahead of time",
            "machine": f"one core of {self._machine}",
            "costs": "bytes of code times steps, not measurements; a win with a worse roofline counts as a loss",
        }
