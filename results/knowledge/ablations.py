"""What each mechanism of `graybox` is worth, what 2 % noise costs, and how well parts are predicted.

    python results/knowledge/ablations.py [--repeats 3] [--tables]

Each variant makes 200 evaluations on tasks of `study.py`. Writes `ablations.csv` beside this file and makes only the
runs that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

import bbo_suite
from bbo_strategies.graybox import GrayBox
from bbo_suite import Parts
from bbo_suite.testing import play, start

FILE = Path(__file__).with_name("ablations.csv")
TASKS = (
    *("fusion/bert-base-infer-b1-s128", "fusion/mobilenet-1.0-infer-b1", "fusion/unet-32-infer-b1"),
    *("fusion/gpt2-124m-decode-b128-s256", "fusion/resnet-50-infer-b1", "fusion/moe-32-infer-b32-s512"),
    *("tile/bert-base-infer-b1-s128", "tile/unet-256-infer-b1"),
    *("flags/bert-base-infer-b1-s128", "flags/unet-256-infer-b1"),
)
OPTIONS: Mapping[str, Mapping[str, bool]] = {
    "all": {},
    "without models": {"models": False},
    "without memory": {"memory": False},
    "without Thompson": {"draws": False},
    "without the estimate": {"estimate": False},
    "without describe": {"describe": False},
    "2 % noise": {},
}
BUDGET, NOISE, BATCH = 200, 0.02, 20
_FINALISTS, _REPEATS = 10, 10
"""Under noise the pick is the best mean of so many new measurements of so many candidates."""


class Measurements:
    """The costs of parts of a problem, with noise that is drawn for each part and candidate."""

    def __init__(self, problem: bbo_suite.Problem, noise: float, seed: int) -> None:
        self._problem, self._noise, self._rng = problem, noise, np.random.default_rng((seed, 1))
        self.parts: Parts

    def costs(self, configs: NDArray) -> NDArray[np.float64]:
        """Measure `(n, d)` candidates: return their `(n,)` costs and keep their parts."""
        evaluations = self._problem.evaluate_parts(configs)
        parts = evaluations.parts
        if parts is None:
            raise ValueError(f"{self._problem.id} tells no parts")
        if not self._noise:
            self.parts = parts
            return evaluations.values
        self.parts = replace(parts, costs=parts.costs * np.exp(self._noise * self._rng.normal(size=len(parts.costs))))
        return self.parts.sums()

    def pick(self, configs: NDArray, told: NDArray[np.float64]) -> float:
        """Return the cost without noise of the candidate of `(n, d)` that measuring the best again selects."""
        best = np.argsort(told, kind="stable")[: _FINALISTS if self._noise else 1]
        means = np.mean([self.costs(configs[best]) for _ in range(_REPEATS)], axis=0)
        return float(self._problem.evaluate(configs[best[[np.argmin(means)]]]).values[0])


def measured(problem: bbo_suite.Problem, variant: str, seed: int) -> dict[str, object]:
    """Return a row of the table: the gain of one run in percent, and the R^2 of parts not measured before."""
    measurements = Measurements(problem, NOISE if "noise" in variant else 0.0, seed)
    options = OPTIONS[variant]
    task = problem.task(True, None, True)
    strategy = start(GrayBox, task.space, BUDGET, seed, task.structure, task.default, **options)
    batches = list(play(strategy, measurements.costs, BATCH, lambda configs: measurements.parts))
    configs, told = (np.concatenate([batch[i] for batch in batches]) for i in range(2))
    default = problem.evaluate(problem.default[None]).values[0]
    gain = 100 * (default / measurements.pick(configs, told) - 1)
    score = strategy.diagnostics().get("score/unmeasured parts", np.nan)
    return {"problem": problem.id, "variant": variant, "seed": seed, "gain": gain, "r2": score}


def make(repeats: int) -> None:
    """Make the runs that the table lacks, and write it after each."""
    rows = pd.read_csv(FILE).to_dict("records") if FILE.exists() else []
    known = {(row["problem"], row["variant"], row["seed"]) for row in rows}
    for name in TASKS:
        problem = bbo_suite.problem(name)
        for seed, variant in product(range(repeats), OPTIONS):
            if (name, variant, seed) not in known:
                rows.append(measured(problem, variant, seed))
                print(rows[-1])
                pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.5g")


def summary() -> pd.DataFrame:
    """Return the geometric mean and the least over tasks of each variant's mean gain, over that of the whole."""
    rows = pd.read_csv(FILE)
    gains = rows.groupby(["problem", "variant"])["gain"].mean().unstack()
    ratios = gains.div(gains["all"], axis=0).clip(lower=1e-3)
    return pd.DataFrame({"ratio": np.exp(np.log(ratios).mean()), "least": ratios.min()}).reindex(list(OPTIONS))


def main(repeats: int = 3, tables: bool = typer.Option(False, "--tables", help="make no runs")) -> None:
    """Make the runs and print the tables."""
    if not tables:
        make(repeats)
    print(summary().round(3).to_string())
    print(pd.read_csv(FILE).query("variant == 'all'").groupby("problem")["r2"].median().round(3).to_string())


if __name__ == "__main__":
    typer.run(main)
