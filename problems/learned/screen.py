"""Costs that a learned model predicts for candidates of the simulated compiler; they cost no evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.core.versions import content
from bbo_suite.jax_settings import configure_jax

from ..tensor_compiler.hardware.machine import Machine
from ..tensor_compiler.tasks.program_problem import CandidateKernels
from .kernels import KernelGraphs, KernelReader
from .model_file import CostModel, load
from .prices import Prices
from .programs import SHIPPED


def read_model(name: str, program: str, machine: str) -> CostModel:
    """Return the model in a file, or the one that ships if the name is `learned`, for a program on a machine.

    Args:
      program: its name in the catalogue; empty for a user's file.

    Raises:
      UserError: the file cannot be read or is no model, or the model was trained on the program or for another machine.
    """
    configure_jax()
    try:
        path, data = content(str(SHIPPED) if name == "learned" else name)
    except UserError as error:
        raise UserError(f"{error}; a model is estimate, learned, or a file of `bbo_problems.learned train`") from None
    model = load(data, path)
    if model.machine != machine:
        raise UserError(f"model {path} is for {model.machine}, not {machine}; train one on data of that machine")
    if program in model.programs:
        raise UserError(f"model {path} was trained on {program}, so it has seen costs of it; train one without it")
    return model


class LearnedScreen:
    """Predicts the costs of candidates.

    Args:
      model: predicts kernels.
      machine: what they run on.
      reader: of the program's kernels.
      compile: compiles a `(d,)` candidate.
    """

    def __init__(
        self, model: CostModel, machine: Machine, reader: KernelReader, compile: Callable[[NDArray], CandidateKernels]
    ) -> None:
        self._prices, self._reader, self._compile = Prices(model, machine), reader, compile

    def __call__(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` predicted seconds of `(n, d)` candidates; inf if the windows of a kernel overflow."""
        numbers, runs, values, new = [], [], [], []
        for config in configs:
            made = self._compile(config)
            own, unknown = self._prices.numbers(made.rows)
            if len(unknown):
                new.append(self._reader.read(made.laid, made.fusion, made.result[unknown]))
            numbers.append(own)
            runs.append(made.runs)
            values.append(made.values)
        if new:
            self._prices.learn(KernelGraphs.joined(new))
        every, counts = np.concatenate(numbers), np.concatenate(runs)
        owners = np.repeat(np.arange(len(configs)), [len(own) for own in numbers])
        return np.bincount(owners, counts * self._seconds(every, values), len(configs)).astype(np.float64)

    def _seconds(self, numbers: NDArray[np.int64], values: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
        given = [own for own in values if own is not None]
        return self._prices.seconds(numbers, np.concatenate(given) if given else None)
