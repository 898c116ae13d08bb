"""The tuning of a Triton kernel on this machine's GPU as a problem."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError, product, scale
from bbo_suite.core.libraries import refusal, require
from bbo_suite.supervised import COMPILE, GPU_ADDRESSES, Answer, LiveProblem, Service, Workers

from .spaces import LIBRARY, STATISTICS, TUNED

_NEEDED = ("triton", "torch")
_PAIRS = 20
"""Of runs of PyTorch and of the default, for the baseline."""


class TritonProblem(LiveProblem):
    """Tiles, warps and pipeline stages of matrix products, softmax and attention in Triton, on this machine's GPU.

    The cost is the time of a run over the default's, measured in turns; the GPU's cache is emptied before each run.
    Each result is compared with one computed in float32, and a difference is a wrong result. A candidate that needs
    more shared memory or registers than the GPU has is a compile error. Candidates with the same machine code share one
    measurement. The default is that of the well-known tutorial kernels; PyTorch's own time is a baseline. With several
    workers, these compile, and one more child measures. Times vary from run to run, so nothing is cached. Another GPU
    or another Triton is another problem.
    """

    variant_marks: ClassVar[str] = ""
    instances: ClassVar[tuple[str, ...]] = tuple(TUNED)
    unit = "times the default"
    noisy = timed = True
    statistics = STATISTICS
    decision = "tiles, warps, stages of GPU kernels"
    costs = "measured time over the default's"
    time_per_candidate = "0.6 s and more"
    extra = "triton"

    def __init__(self, instance: str) -> None:
        self._tuned = TUNED[instance]
        self._environment = _environment()
        self.space = product(*(scale(name, values) for name, values in self._tuned.values.items()))
        places = [v.index(x) for v, x in zip(self._tuned.values.values(), self._tuned.default, strict=True)]
        self.default = np.array(places, np.int64)
        service = Service(f"{__package__}.worker:serve", (instance,), 60.0, GPU_ADDRESSES, name="Triton")
        self._serve(service)
        self._timer = Workers(service)
        sources = "".join(Path(__file__).with_name(f"{name}.py").read_text() for name in ("kernels", "worker"))
        self._identify(f"{sources}|{self._environment}|{self.space.digest()}")

    @classmethod
    def available(cls) -> str:
        """Return whether a GPU or a library is missing."""
        return refusal(_environment)

    def request(self, config: NDArray) -> tuple[int, ...]:
        """Return the value of each parameter of a candidate."""
        return tuple(int(values[i]) for values, i in zip(self._tuned.values.values(), config, strict=True))

    def _answers(self, asked: Sequence[Any]) -> list[Answer]:
        """Let the workers compile, whose results Triton keeps on disk, and one more child measure what compiled."""
        if self.workers < 2:
            return self._timer.map(asked)
        compiled = self._workers.map([(COMPILE, request) for request in asked], self.workers)
        works = [request for request, answer in zip(asked, compiled, strict=True) if not answer.failure]
        measured = iter(self._timer.map(works))
        return [answer if answer.failure else next(measured) for answer in compiled]

    def ratios(self, config: NDArray, reference: NDArray | str, first: int, count: int) -> list[float]:
        """Return logarithms of ratios of two candidates' times, or of one and PyTorch's, measured in turns."""
        theirs = reference if isinstance(reference, str) else self.request(reference)
        return self._ratios(self.request(config), theirs, first, count)

    def baselines(self) -> dict[str, float]:
        """Return the cost of what PyTorch has for the kernel; inf if the default fails."""
        logs = self.ratios(self.default_row(), LIBRARY, 0, _PAIRS)
        return {LIBRARY: math.exp(-float(np.median(logs)))}

    def paste(self, config: NDArray) -> str:
        """Return the candidate as a `triton.Config`, for Triton's autotuner."""
        chosen = dict(zip(self._tuned.values, self.request(config), strict=True))
        warps, stages = chosen.pop("warps"), chosen.pop("stages")
        return f"triton.Config({chosen}, num_warps={warps}, num_stages={stages})"

    def usage(self) -> str:
        """Return where the configuration belongs."""
        environment = ", ".join(self._environment.split("|"))
        return f"in `triton.autotune(configs=[...])` of a kernel with these tiles; measured with {environment}"

    def facts(self) -> dict[str, str]:
        """Return the GPU, the versions, the default's time and what PyTorch costs."""
        return self.query("facts") | {"by PyTorch": f"{self.baselines()[LIBRARY]:.3g} {self.unit}"}


def _environment() -> str:
    """Return the GPU and the versions of the libraries, separated by `|`."""
    gpu = gpu_name()  # first: without a GPU it does not help to install the packages
    for library in _NEEDED:
        require(library, "triton/...", "bbo_suite[triton]")
    return "|".join((gpu, *(f"{library} {version(library)}" for library in _NEEDED)))


def gpu_name() -> str:
    """Return the name of the first NVIDIA GPU, as the driver gives it.

    Raises:
      UserError: there is none.
    """
    name = ctypes.create_string_buffer(100)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        failed = driver.cuInit(0) or driver.cuDeviceGetName(name, len(name), 0)
    except OSError:
        failed = True
    if failed:
        raise UserError("triton/... needs an NVIDIA GPU and its driver; none was found. recorded/... needs no GPU")
    return name.value.decode(errors="replace")
