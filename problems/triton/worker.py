"""The child process that compiles and times one kernel: it takes a configuration and returns seconds."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import triton

from . import kernels
from .spaces import STAGES, TUNED, WARPS, Tuned

FACTS = "facts"
"""The request for facts about the GPU; any other request is a tuple of values."""
_RUN = "run the result"
_RUN_SECONDS = 30.0
_WARM, _MEASURED = 25, 100
"""Milliseconds of warm-up runs, and of measured runs."""
_TOLERANCE = {"matmul": 2e-2, "softmax": 1e-5}
"""Largest error allowed, as a share of the largest correct value."""
Enter = Callable[[str, float], None]


def serve(instance: str) -> Callable[[Any, Enter], Any]:
    """Return the handler for one kernel on the GPU."""
    return Kernel(TUNED[instance], "cuda").answer


class Kernel:
    """One kernel with its operands on a device, and the correct result, computed in float32."""

    def __init__(self, tuned: Tuned, device: str) -> None:
        self._tuned = tuned
        generator = torch.Generator(device).manual_seed(0)
        rows, columns = tuned.shape[:2]
        product = tuned.kernel == "matmul"
        shapes = [(rows, tuned.shape[2]), (tuned.shape[2], columns)] if product else [(rows, columns)]
        drawn = [torch.randn(shape, generator=generator, device=device) for shape in shapes]
        self._operands = [x.half() for x in drawn] if product else drawn
        full = [x.float() for x in self._operands]
        torch.backends.cuda.matmul.allow_tf32 = False
        self._correct = full[0] @ full[1] if product else torch.softmax(full[0], 1)
        self._result = torch.empty((rows, columns), dtype=self._operands[0].dtype, device=device)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - facts, seconds, or why there are none
        """Return the facts, or the median seconds of a run of a configuration, or a status and a reason."""
        if request == FACTS:
            return {"GPU": torch.cuda.get_device_name(), "Triton": triton.__version__, "PyTorch": torch.__version__}
        try:
            self.clear()
            self.run(request)
            torch.cuda.synchronize()
            enter(_RUN, _RUN_SECONDS)
            if wrong := self.wrong():
                return "wrong_result", wrong
            run = lambda: self.run(request)  # noqa: E731
            return triton.testing.do_bench(run, _WARM, _MEASURED, return_mode="median") / 1000
        except triton.runtime.errors.OutOfResources as error:
            return "compile_error", str(error)[:200]
        except RuntimeError as error:
            if "CUDA" in str(error):  # the process cannot use the GPU any more
                print(error, flush=True)
                os._exit(1)
            return "compile_error", str(error)[:200]

    def run(self, request: tuple[int, ...]) -> None:
        """Run the kernel once."""
        chosen = dict(zip(self._tuned.values, request, strict=True))
        warps, stages = chosen.pop(WARPS), chosen.pop(STAGES)
        tiles = triton.cdiv(self._tuned.shape[0], chosen["ROWS"])
        if self._tuned.kernel == "matmul":
            tiles *= triton.cdiv(self._tuned.shape[1], chosen["COLUMNS"])
        launch = getattr(kernels, self._tuned.kernel)[(tiles,)]
        launch(*self._operands, self._result, *self._tuned.shape, **chosen, num_warps=warps, num_stages=stages)

    def clear(self) -> None:
        """Overwrite the result with NaN, so that an element that the next run does not write is wrong."""
        self._result.fill_(float("nan"))

    def wrong(self) -> str:
        """Return by how much the result is wrong, empty if it is correct."""
        most = (self._result.float() - self._correct).abs().max() / self._correct.abs().max()
        allowed = _TOLERANCE[self._tuned.kernel]
        return "" if most <= allowed else f"differs by {float(most):.3g} of the largest value, not {allowed:g} at most"
