"""The child that compiles and times one kernel: it takes a configuration and returns its time over the default's."""

from __future__ import annotations

import hashlib
import math
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bbo_suite.supervised import COMPILE, PAIRS, RUN
from bbo_suite.timing import Ratios, SharedCosts, pair

from . import kernels
from .spaces import LIBRARY, PASSED, STAGES, STATISTICS, TUNED, WARPS, Tuned

FACTS = "facts"
"""The request for facts about the GPU; others are a tuple of values, or `COMPILE` or `PAIRS` and such tuples."""
_RUN_SECONDS = 30.0
_RUNS, _MEASURED = 10, 0.005
"""Runs of one measurement, and seconds after which it ends earlier."""
_FLUSHED = 256 << 20
"""Bytes that are written before each run, so that it finds nothing in the GPU's cache."""
Enter = Callable[[str, float], None]


@dataclass(frozen=True)
class Kind:
    """What belongs to a kernel besides its parameters.

    Attributes:
      shapes: of the operands, from the sizes; all are drawn from a normal distribution.
      library: what PyTorch has for it: of the operands in float32, the correct result.
      programs: how many run, from the sizes and the parameters.
      half: whether the operands are float16, else float32.
      tolerance: largest error allowed, as a share of the largest correct value in the same row.
    """

    shapes: Callable[..., list[tuple[int, ...]]]
    library: Callable[..., Tensor]
    programs: Callable[[tuple[int, ...], dict[str, int]], tuple[int, ...]]
    half: bool
    tolerance: float


def _product_programs(shape: tuple[int, ...], chosen: dict[str, int]) -> tuple[int, ...]:
    tiles = triton.cdiv(shape[0], chosen["ROWS"]) * triton.cdiv(shape[1], chosen["COLUMNS"])
    return tiles, chosen.get("SPLIT", 1)


_KINDS = {
    "matmul": Kind(
        lambda rows, columns, depth: [(rows, depth), (depth, columns)],
        torch.matmul,
        _product_programs,
        True,
        2e-2,
    ),
    "softmax": Kind(
        lambda rows, columns: [(rows, columns)],
        lambda x: torch.softmax(x, -1),
        lambda shape, chosen: (triton.cdiv(shape[0], chosen["ROWS"]),),
        False,
        1e-5,
    ),
    "attention": Kind(
        lambda *shape: [shape] * 3,
        lambda q, k, v: scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0],
        lambda shape, chosen: (triton.cdiv(shape[1], chosen["QUERIES"]), shape[0]),
        True,
        2e-2,
    ),
}


def serve(instance: str) -> Callable[[Any, Enter], Any]:
    """Return the handler for one kernel on the GPU."""
    return Kernel(TUNED[instance], "cuda").answer


class Kernel:
    """One kernel with its operands on a device, and the correct result, computed in float32."""

    def __init__(self, tuned: Tuned, device: str) -> None:
        self._tuned, self._kind = tuned, _KINDS[tuned.kernel]
        generator = torch.Generator(device).manual_seed(0)
        shapes = self._kind.shapes(*tuned.shape)
        drawn = [torch.randn(shape, generator=generator, device=device) for shape in shapes]
        self._operands = [x.half() for x in drawn] if self._kind.half else drawn
        torch.backends.cuda.matmul.allow_tf32 = False
        self._correct = self._kind.library(*(x.float() for x in self._operands))
        self._result = torch.empty(self._correct.shape, dtype=self._operands[0].dtype, device=device)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - as LiveProblem takes it
        """Return a configuration's time over the default's, or a status and a reason; or what else is asked for."""
        if request[0] == COMPILE:
            return self._statistics(request[1])
        try:
            if request == FACTS:
                return self._facts()
            if request[0] == PAIRS:
                return self._pairs(enter, *request[1:])
            return self._cost(request, enter)
        except triton.runtime.errors.OutOfResources as error:
            return "compile_error", str(error)[:200]
        except RuntimeError as error:
            if "CUDA" in str(error):  # the process cannot use the GPU any more
                print(error, flush=True)
                os._exit(1)
            return "compile_error", str(error)[:200]

    def _cost(self, request: tuple[int, ...], enter: Enter) -> Any:  # noqa: ANN401 - as `answer`
        code = self._checked(request, enter)
        if isinstance(code, tuple):
            return code
        return self._costs.of(request, code, lambda again: self._ratios.of(lambda: self._seconds(request), again))

    @cached_property
    def _ratios(self) -> Ratios:
        self.run(self._tuned.default)
        return Ratios(lambda: self._seconds(self._tuned.default))

    @cached_property
    def _costs(self) -> SharedCosts:
        return SharedCosts(self._code(self._tuned.default), 1.0)

    def _checked(self, request: tuple[int, ...], enter: Enter) -> str | tuple[str, str]:
        """Run a configuration once; return a hash of its code, or a status and a reason."""
        self.clear()
        code = self._code(request)
        self.run(request)
        torch.cuda.synchronize()
        enter(RUN, _RUN_SECONDS)
        wrong = self.wrong()
        return ("wrong_result", wrong) if wrong else code

    def _pairs(self, enter: Enter, ours: Any, theirs: Any, first: int, count: int) -> list[float]:  # noqa: ANN401 - as below
        """Return the logarithms of the ratios of two configurations, in turns; one that fails is infinitely dear.

        Args:
          theirs: a configuration, or `LIBRARY`.
        """
        try:
            code = self._checked(ours, enter)
        except triton.runtime.errors.OutOfResources:
            return [math.inf]
        if isinstance(code, tuple):
            return [math.inf]
        if theirs != LIBRARY and code == self._code(theirs):
            return [0.0] * count
        measures = (lambda: self._seconds(ours)), (lambda: self._seconds(theirs))
        return [pair(*measures, first + i) for i in range(count)]

    def _facts(self) -> dict[str, str]:
        return {
            "GPU": torch.cuda.get_device_name(),
            "Triton": triton.__version__,
            "PyTorch": torch.__version__,
            "default takes": f"{1e3 * self._ratios.cost:.3g} ms",
            "times": f"a pair of equal kernels differs by {100 * self._ratios.noise:.2g} %",
        }

    def _statistics(self, request: tuple[int, ...]) -> list[float]:
        """Return the numbers of `STATISTICS`."""
        compiled = self._launched(request, warmup=True)
        try:
            compiled._init_handles()  # registers are counted when the code is loaded
        except triton.runtime.errors.OutOfResources:
            return [math.nan] * len(STATISTICS)
        programs = math.prod(self._kind.programs(self._tuned.shape, self._chosen(request)))
        size = len(compiled.asm["cubin"])
        return [*map(float, (compiled.n_regs, compiled.n_spills, compiled.metadata.shared, size, programs))]

    def _code(self, request: tuple[int, ...]) -> str:
        """Return a hash of the machine code and of the arguments that it is not compiled for."""
        compiled = self._launched(request, warmup=True)
        chosen = self._chosen(request)
        passed = [chosen.get(name, 1) for name in PASSED]
        programs = self._kind.programs(self._tuned.shape, chosen)
        content = compiled.asm["cubin"] + repr((programs, passed, compiled.metadata.shared)).encode()
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    def run(self, request: tuple[int, ...] | str) -> None:
        """Run the kernel, or what the library has in its place, once."""
        if request == LIBRARY:
            self._kind.library(*self._operands)
            return
        if self._chosen(request).get("SPLIT", 1) > 1:
            self._result.zero_()
        self._launched(request)

    def _launched(self, request: Any, warmup: bool = False) -> Any:  # noqa: ANN401 - Triton's own
        """Return the compiled kernel; it runs but for `warmup`."""
        chosen = self._chosen(request)
        chosen["num_warps"], chosen["num_stages"] = chosen.pop(WARPS), chosen.pop(STAGES)
        grid = self._kind.programs(self._tuned.shape, chosen)
        launch = getattr(kernels, self._tuned.kernel).run
        return launch(*self._operands, self._result, *self._tuned.shape, grid=grid, warmup=warmup, **chosen)

    def _chosen(self, request: Any) -> dict[str, int]:  # noqa: ANN401 - a tuple of values
        return dict(zip(self._tuned.values, request, strict=True))

    def _seconds(self, request: tuple[int, ...] | str) -> float:
        """Return the median time of some runs."""
        times = list[float]()
        while len(times) < _RUNS and sum(times) < _MEASURED:
            self._flushed.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            self.run(request)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1000)
        return statistics.median(times)

    @cached_property
    def _flushed(self) -> Tensor:
        return torch.empty(_FLUSHED, dtype=torch.int8, device=self._result.device)

    def clear(self) -> None:
        """Overwrite the result with NaN, so that an element that the next run does not write is wrong."""
        self._result.fill_(float("nan"))

    def wrong(self) -> str:
        """Return by how much the result is wrong, empty if it is correct."""
        differences = (self._result.float() - self._correct).abs().amax(-1)
        most, allowed = (differences / self._correct.abs().amax(-1)).max(), self._kind.tolerance
        return "" if most <= allowed else f"differs by {float(most):.3g} of the largest value, not {allowed:g} at most"
