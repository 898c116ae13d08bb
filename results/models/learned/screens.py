"""What search on a model gains when only the best few are evaluated: `python results/models/learned/screens.py`.

Writes screens.csv: only the runs that it lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.core.problem import Problem
from bbo_suite.core.strategy import tell
from bbo_suite.registry import Registry

HERE = Path(__file__).parent
PROGRAMS = ("rnn-medium-train-b20-s35", "translate-base-train-b64-s64")
FAMILIES = ("tile", "fusion", "joint")
SEARCHES = ("annealing", "graybox", "screened:annealing estimate", "screened:annealing learned")
SEEDS = range(10)
BUDGETS = (1, 10, 30)
CANDIDATES = 2000


def main() -> None:
    """Write a row for each run as soon as it has ended."""
    file = HERE / "screens.csv"
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    for row in runs({(row["problem"], row["search"], row["seed"]) for row in rows}):
        print(row, flush=True)
        rows.append(row)
        pd.DataFrame(rows).to_csv(file, index=False, float_format="%.4f")
    compare(pd.DataFrame(rows))


def compare(rows: pd.DataFrame) -> None:
    """Print for each problem Mann and Whitney's p of each search's last gains against those of the estimate."""
    for problem, own in rows.groupby("problem"):
        gains = own.groupby("search")[f"gain {BUDGETS[-1]}"].apply(np.array)
        told = {name: f"{mannwhitneyu(gains[name], gains[SEARCHES[2]]).pvalue:.2g}" for name in gains.index}
        print(problem, told)


def runs(done: Collection[tuple[str, str, int]]) -> Iterator[dict[str, object]]:
    """Yield the gains over the default, in percent, after each of `BUDGETS` evaluations, of runs that are not done."""
    for name in (f"{family}/{program}" for program in PROGRAMS for family in FAMILIES):
        todo = [run for run in product([name], SEARCHES, SEEDS) if run not in done]
        if not todo:
            continue
        problem = Registry().load(name)
        default = default_value(problem)
        for _, search, seed in todo:
            best = np.minimum.accumulate(costs(problem, search, seed))
            gains = {f"gain {n}": 100 * (default / best[min(n, len(best)) - 1] - 1) for n in BUDGETS}
            yield {"problem": name, "search": search, "seed": seed} | gains


def costs(problem: Problem, search: str, seed: int) -> np.ndarray:
    """Return the costs of the candidates that a run evaluates, in their order."""
    name, _, model = search.partition(" ")
    found, most = Registry().strategy(name), max(BUDGETS)
    options = found.Options(model=model, keep=most, candidates=CANDIDATES) if model else found.Options()
    task = problem.task(found.uses_structure, Registry(), found.uses_parts)
    strategy, values = found(task, most, np.random.default_rng(seed), options), np.empty(0)
    while len(values) < most:
        configs = strategy.ask(min(10, most - len(values)))
        if not len(configs):
            break
        result = evaluate(problem, configs, with_parts=found.uses_parts)
        values = np.append(values, result.values)
        tell(strategy, configs, result.values, result.parts)
    return values


if __name__ == "__main__":
    main()
