"""The techniques of OpenTuner (Ansel et al. 2014)."""

from __future__ import annotations

import argparse
import functools
import logging
import random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Strategy
from bbo_suite.core.libraries import require

from .adapter import Adapter, Coding, one_of

if TYPE_CHECKING:
    from opentuner.resultsdb.models import DesiredResult
    from opentuner.search.manipulator import ConfigurationManipulator

TECHNIQUES = (
    "AUCBanditMetaTechniqueA",
    "AUCBanditMetaTechniqueB",
    "AUCBanditMetaTechniqueC",
    "AUCBanditMutationTechnique",
    "ComposableDiffEvolution",
    "DifferentialEvolution",
    "DifferentialEvolutionAlt",
    "DifferentialEvolution_20_100",
    "GGA",
    "MultiNelderMead",
    "NormalGreedyMutation05",
    "NormalGreedyMutation10",
    "NormalGreedyMutation20",
    "PSO_GA_Bandit",
    "PSO_GA_DE",
    "PatternSearch",
    "PureRandom",
    "RandomNelderMead",
    "RegularNelderMead",
    "RightNelderMead",
    "UniformGreedyMutation05",
    "UniformGreedyMutation10",
    "UniformGreedyMutation20",
)
"""Those that run: Torczon's and annealing need Python 2. Those for permutations do the same as another one here."""
_GENERATIONS = 500
"""Generations without a new candidate after which OpenTuner gives up."""


class OpenTuner(Adapter):
    """Optimizers of another library; `show opentuner` names its techniques.

    `opentuner:AUCBanditMetaTechniqueA` is OpenTuner's default: a bandit that shares the evaluations among four
    techniques by what each has found. Scales are integers and everything else is categorical. A generation has as many
    candidates as the first batch. When 500 generations in a row have nothing new, the run ends.
    """

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return the names of the techniques that run."""
        return TECHNIQUES

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy that is one technique."""
        require("opentuner", f"strategy opentuner:{name}", "bbo_suite[opentuner]")
        return one_of(cls, "OpenTuner", name)

    def start(self, batch: int) -> None:
        """Make the tuner, with a database in memory, and give it the default to start from."""
        library = _library()
        base: Any = library.MeasurementInterface
        words = ["--no-dups", "--database=sqlite://", f"--parallelism={batch}", f"--technique={self.name}"]
        arguments = argparse.ArgumentParser(parents=library.argparsers()).parse_args(words)

        class Program(base):
            def seed_configurations(_) -> list[dict[str, int]]:
                return [dict(zip(self.coding.names, self.coding.default.tolist(), strict=True))]

            def run(self, *_: object) -> None:
                raise AssertionError("OpenTuner is only asked and told")

        program = Program(args=arguments, manipulator=_manipulator(self.coding))
        self._tuner = library.api.TuningRunManager(program, arguments)
        self._waiting: list[DesiredResult] = []

    def propose(self, n: int) -> NDArray:
        """Return what is left of a generation, or the next one with something new."""
        for _ in range(_GENERATIONS):
            if self._waiting:
                break
            self._waiting = self._tuner.get_desired_results()
        self._asked, self._waiting = self._waiting[:n], self._waiting[n:]
        rows = [[wanted.configuration.data[name] for name in self.coding.names] for wanted in self._asked]
        return np.array(rows, np.int64).reshape(-1, len(self.coding.names))

    def learn(self, costs: list[float]) -> None:
        """Tell each cost."""
        from opentuner.resultsdb.models import Result

        for wanted, cost in zip(self._asked, costs, strict=True):
            self._tuner.report_result(wanted, Result(time=cost))


@functools.cache
def _library() -> Any:  # noqa: ANN401 - it has no types
    """Import OpenTuner, which would log to a file in the working directory, and make it repeatable."""
    formatter = logging.Formatter
    import opentuner
    import opentuner.api
    from opentuner import tuningrunmain
    from opentuner.search import differentialevolution

    logging.Formatter = formatter  # type: ignore[misc]
    logging.getLogger("opentuner").setLevel(logging.ERROR)
    tuningrunmain.init_logging = lambda: None

    class Member(differentialevolution.PopulationMember):
        """Hashed by a random number, not by its address: the library walks over sets of members."""

        def __init__(self, *arguments: Any, **keywords: Any) -> None:  # noqa: ANN401
            super().__init__(*arguments, **keywords)
            self._hash = random.getrandbits(60)

        def __hash__(self) -> int:
            return self._hash

    differentialevolution.PopulationMember = Member
    return opentuner


def _manipulator(coding: Coding) -> ConfigurationManipulator:
    from opentuner.search.manipulator import ConfigurationManipulator, EnumParameter, IntegerParameter

    made = ConfigurationManipulator()
    for name, size, kind in zip(coding.names, coding.sizes.tolist(), coding.kinds.tolist(), strict=True):
        scale = kind == Kind.SCALE
        made.add_parameter(IntegerParameter(name, 0, size - 1) if scale else EnumParameter(name, range(size)))
    return made
