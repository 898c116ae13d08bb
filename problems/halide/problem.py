"""The schedule of a Halide pipeline as a problem."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite.core.libraries import refusal, require
from bbo_suite.core.task import Structure
from bbo_suite.core.variants import split_variant
from bbo_suite.supervised import LiveProblem, Service

from .schedules import PIPELINES, default, source, space, structure

AUTOSCHEDULERS: dict[str, tuple[tuple[str, str], ...]] = {
    "Mullapudi2016": (),
    "Li2018": (),
    "Adams2019 greedy": (("beam_size", "1"),),
    "Adams2019": (),
}
"""Halide's autoschedulers for CPUs, with their settings."""
_SLOW = "Adams2019"
"""Takes minutes, so `show` leaves it out."""
_REPEATS = 9


class HalideProblem(LiveProblem):
    """How Halide computes a pipeline: `halide/pipeline` on one thread, `halide/pipeline@parallel` on all cores.

    `halide/pipeline@settled` measures on one thread, too, but ends when the mean of the measurements is settled. That
    is what AdaTune adds to a search (Li et al. 2020).

    A candidate is a schedule. It says for each stage where in the output's loops it is computed and stored, and how its
    own loops are tiled, ordered, vectorised, unrolled and laid out in memory. The cost is the time of a run divided by
    the time of the default. Both are measured in turns, because times drift more than schedules differ. On one thread
    the cost is the pseudo-median ratio; on several it is the ratio of the least times, and nothing else should use the
    cores.

    The default is what an expert writes first: narrow or flat tiles that stay in a cache, stages computed inside them,
    register blocks for products, vectors of the machine's width. Halide's own default inlines everything on scalars,
    which is far too slow to compare with. `show` compares its autoschedulers, whose schedules are mostly outside the
    space: Mullapudi2016 is at best as fast, and several times slower on products; Adams2019 is as fast on matmul and
    faster on blur. A result that differs from the default's is a wrong result. Another version of Halide, or other
    features of the processor, make another problem.
    """

    variant_marks: ClassVar[str] = "@"
    instances: ClassVar[tuple[str, ...]] = tuple(PIPELINES)
    unit = "times the default"
    noisy = timed = True
    decision = "schedules of Halide pipelines"
    costs = "measured time over the default's"
    time_per_candidate = "1 to 7 s"
    extra = "halide"

    def __init__(self, instance: str) -> None:
        name, variant = split_variant(instance, ("parallel", "settled"))
        _require()
        target, width = machine()
        is_parallel, until_settled = variant == "parallel", variant == "settled"
        self._threads = (os.cpu_count() or 1) if is_parallel else 1
        self._pipeline = PIPELINES[name]
        self.space = space(self._pipeline, is_parallel)
        self.default = default(self._pipeline, is_parallel, width)
        self._compiler = f"Halide {version('halide')}, {target}"
        start = self.request(self.default)
        algorithm = Path(__file__).with_name("algorithms.py").read_text(encoding="utf-8")
        content = f"{self._compiler}|{self._threads}|{self.space.digest()}|{self._values()}|{start}|{name}|{algorithm}"
        content += "|least" if self._threads > 1 else ""  # several threads are timed in another way
        content += "|settled" if until_settled else ""
        arguments = (name, self._pipeline.extents, self._pipeline.output.name, start, self._threads, until_settled)
        self._serve(Service(f"{__package__}.worker:serve", arguments, memory=8 << 30, name=f"Halide on {name}"))
        self._identify(content)

    @classmethod
    def available(cls) -> str:
        """Return whether Halide is missing."""
        return refusal(_require)

    def _values(self) -> str:
        return repr([(self.space.name(i), tuple(self.space.values(i))) for i in range(len(self.space))])

    def request(self, config: NDArray) -> str:
        """Return a candidate's schedule as Python."""
        return source(self._pipeline, self.space.describe(config))

    def paste(self, config: NDArray) -> str:
        """Return the schedule of a `(d,)` row as Python, to paste after the algorithm and `import halide as hl`."""
        return self.request(config)

    def structure(self) -> Structure:
        """Return the pipeline as a graph, and which parameters belong to the same or to neighbouring stages."""
        return structure(self._pipeline, self.space)

    def usage(self) -> str:
        """Return where the schedule belongs."""
        return (
            f"this Python code after the algorithm of the pipeline, with {self._compiler}; the algorithms are in"
            f" {Path(__file__).with_name('algorithms.py')}"
        )

    def baselines(self) -> dict[str, float]:
        """Return the costs of the schedules of Halide's autoschedulers, without one that takes minutes."""
        return {f"{name} autoscheduler": self.autoscheduled(name)[0] for name in AUTOSCHEDULERS if name != _SLOW}

    def facts(self) -> dict[str, str]:
        """Return the compiler, the default's time, the costs of the autoschedulers, and how much repeats differ."""
        repeats = self.evaluate_again(self.default_row(), _REPEATS)
        reached = {f"by {name}": self._reached(name) for name in AUTOSCHEDULERS if name != _SLOW}
        return {
            "compiler": self._compiler,
            "threads": f"{self._threads}",
            "default takes": f"{1e3 * self.query('seconds'):.3g} ms",
            **reached,
            "repeats differ by": f"{100 * np.std(repeats) / np.mean(repeats):.1f} % (standard deviation of {_REPEATS})",
            "results": "compared with those of the default",
        }

    def evaluate_again(self, config: NDArray, times: int) -> NDArray[np.float64]:
        """Return `(times,)` costs of one `(d,)` row, measured one after another."""
        return np.concatenate([self.evaluate(config[None]).values for _ in range(times)])

    def autoscheduled(self, name: str) -> tuple[float, str]:
        """Return the cost of an autoscheduler's schedule, or inf and the reason: it may crash or take minutes.

        Args:
          name: one of `AUTOSCHEDULERS`.
        """
        (outcome,), _ = self._outcomes([("autoscheduler", name.split()[0], AUTOSCHEDULERS[name])])
        return outcome[0], outcome[2]

    def _reached(self, autoscheduler: str) -> str:
        cost, reason = self.autoscheduled(autoscheduler)
        return f"{cost:.3g} {self.unit}" if np.isfinite(cost) else f"none: {reason}"


def _require() -> None:
    require("halide", "halide/...", "bbo_suite[halide]")


def machine() -> tuple[str, int]:
    """Return the target, which names the features of the processor, and how many float32 one vector has."""
    import halide as hl

    target = hl.get_host_target()
    return str(target), int(target.natural_vector_size(hl.Float(32)))
