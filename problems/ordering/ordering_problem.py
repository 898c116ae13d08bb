"""The order of passes of a synthetic compiler; a candidate takes microseconds."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Problem, permutation, product, sequence
from bbo_suite.core.variants import split_draw

VERSION = "1"
SHAPES = {
    "small-a": (12, 8, 40),
    "train-40-a": (40, 50, 200),
    "train-40-b": (40, 50, 200),
    "40x50-a": (40, 50, 200),
    "40x50-b": (40, 50, 200),
    "100x60-a": (100, 60, 300),
    "once-50-a": (50, 50, 200),
}
"""Slots, passes (one of which does nothing) and sites of each instance."""
OTHER_SITES = 1200
"""Sites of all programs together that the default is tuned on."""


class OrderingProblem(Problem):
    """Which pass a synthetic compiler runs in each slot of its pipeline.

    A program has hundreds of sites, places that passes can rewrite. Each site needs its own chain of passes: first one
    that makes it canonical, then perhaps one that copies it (unrolling, inlining), then those that shrink it. Copies
    pay only if they are cleaned up afterwards, and not if they are made too early. Some sites can only be rewritten
    after another site. A pass that lowers a site shrinks it a little and ends its chain. The cost is the number of
    instructions that are left. The default is one pipeline that was tuned on other programs of the same compiler, as
    `-O2` is. In `once` every pass runs exactly once. Use the `train` instances to tune strategies. `40x50-a#7`, with
    any whole number, is another draw of `40x50-a`.
    """

    variant_marks: ClassVar[str] = "#"
    instances = tuple(SHAPES)
    unit = "instructions"
    decision = "order of the passes of an artificial compiler"
    optimum_known = "small ones"
    time_per_candidate = "7 µs"
    optima: ClassVar[dict[str, float]] = {"small-a": 7334.0}

    def __init__(self, instance: str) -> None:
        from .compiler import (
            draw_program,
            draw_rewrites,
            pipeline,  # it imports numba, which is slow: only when a problem is made
        )

        slots, passes, sites = SHAPES[split_draw(instance)]
        rng = np.random.default_rng(list(instance.encode()))
        rewrites = draw_rewrites(2 * passes, passes, rng)
        self.program = draw_program(rewrites, sites, rng)
        once = instance.startswith("once")
        others = [draw_program(rewrites, sites, rng) for _ in range(OTHER_SITES // sites)]
        self.default = pipeline(others, slots, once)
        names = rewrites.names
        self.space = product(permutation("pass", names) if once else sequence("pass", slots, names))
        self.optimum = self.optima.get(instance)

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the instructions that are left after each order of passes."""
        return Evaluations.of(self.program.run(configs))

    def paste(self, config: NDArray) -> str:
        """Return the names of the passes in order, separated by commas."""
        return ",".join(self.space.describe(config).values())

    def usage(self) -> str:
        """Return that no real compiler has these passes."""
        return "for reading only: the compiler and its passes are synthetic"

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the passes and the default."""
        content = f"{VERSION}|{self.program.digest()}|{self.space.digest()}|{self.space.pack(self.default_row())}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def baselines(self) -> dict[str, float]:
        """Return the instructions before any pass."""
        return {"as written": float(self.program.run(self.default[None, :0])[0])}

    def facts(self) -> dict[str, str]:
        """Return the number of sites, and the instructions before any pass."""
        written = int(self.program.run(self.default[None, :0])[0])
        return {"sites": f"{len(self.program.kinds):,}", "instructions as written": f"{written:,}"}
