"""The options of `mbo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bbo_suite import option

from ..annealing import AnnealingOptions


@dataclass(frozen=True)
class ModelOptions(AnnealingOptions):
    """Options of `mbo`: those of `annealing`, and how the models are selected and searched."""

    threshold: float = option(-1.0, "lowest cross-validated R^2 with which a regressor joins the ensemble", -1.0, 1.0)
    folds: int = option(3, "folds of the cross-validation", 2, 20)
    acquisition: Literal["mean", "ucb", "ei", "thompson"] = option("mean", "acquisition function that is maximised")
    exploration: float = option(1.0, "weight of the standard deviation in ucb", -10.0, 10.0)
    generations: int = option(2, "generations of the search on the models", 0, 1000)
    population: int = option(200, "candidates in a generation of that search", 4, 10_000)
    models: bool = option(True, "use the models; false: annealing without repeated candidates")
