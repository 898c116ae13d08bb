"""What are picks of `one-shot` worth on another device, if it knows nothing of devices, as with recorded spaces?

    python results/models/one_shot/devices.py    # devices.csv; some minutes of one core

The tasks are kernels of models outside the corpus with their tiles and flags on v6e, as recorded spaces would show
them: without any declared feature. A predictor is trained for each kernel, on the same kernel on five other devices.
Kernels whose default is at least 5 % slower than the best are drawn.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from study import COUNTS, HEADROOM, UNSEEN

import bbo_suite
from bbo_strategies.one_shot import OneShot
from bbo_suite import Enumeration, Problem, Task, UserError
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson

HERE = Path(__file__).parent
DEVICES, HELD = ("v2", "v3", "v4", "v5e", "v5p"), "v6e"
TASKS, LARGEST, EACH, STEPS = 16, 20_000, 400, 800


def bare(problem: Problem) -> Task:
    """Return a task that declares nothing, as a recorded space."""
    return problem.task(False)


def everything(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return all candidates of a problem, and their costs."""
    rows = Enumeration(problem.space, np.random.default_rng(0)).rows(0, problem.space.cardinality)
    return rows, problem.evaluate(rows).values


def predictor(kernel: str, folder: Path) -> Path:
    """Return the file of a predictor that learned from a kernel on the other devices."""
    problems = [bbo_suite.problem(f"kernel/{kernel}@{device}") for device in DEVICES]
    lessons = [
        Lesson(bare(p), p.evaluate(p.default[None]).values[0], lambda rows, p=p: p.evaluate(rows).values, None)
        for p in problems
    ]
    out = folder / f"{kernel}.npz"
    given = EACH * len(lessons), np.random.default_rng(0), OneShot.Options(steps=STEPS), out
    OneShot.pretrain(lessons, *given, lambda n, words: None)
    return out


def others_best(kernel: str, rows: np.ndarray) -> np.ndarray:
    """Return the best candidates of the kernel on the other devices, as far as `rows` has them."""
    allowed, found = {row.tobytes() for row in rows}, []
    for device in reversed(DEVICES):
        theirs, costs = everything(bbo_suite.problem(f"kernel/{kernel}@{device}"))
        found.append(theirs[costs.argmin()].astype(rows.dtype))
    return np.array([row for row in found if row.tobytes() in allowed] or rows[:0])


def quality(best: float, default: float, values: np.ndarray) -> list[float]:
    """Return the quality of the best of the default and the first k values, for each k."""
    found = np.minimum.accumulate(np.minimum([*values, np.inf], default))
    return [best / found[min(k, len(found)) - 1] for k in COUNTS[:3]]


def main() -> None:
    """Write the table."""
    rng, rows, folder = np.random.default_rng(3), [], Path(tempfile.mkdtemp())
    while len({row["task"] for row in rows}) < TASKS:
        kernel = f"{UNSEEN[rng.integers(len(UNSEEN))]}#{rng.integers(40)}"
        try:
            problem = bbo_suite.problem(f"kernel/{kernel}@{HELD}")
            if problem.space.cardinality > LARGEST or any(row["task"] == kernel for row in rows):
                continue
            configs, costs = everything(problem)
            default = problem.evaluate(problem.default[None]).values[0]
            if default < HEADROOM * costs.min():
                continue
            file = predictor(kernel, folder)
        except UserError as error:  # nothing to tune on one of the devices, or no such kernel
            print(kernel, error)
            continue
        search = OneShot(bare(problem), 10, np.random.default_rng(0), OneShot.Options(pretrained=PinnedFile(str(file))))
        values = {
            "one-shot": problem.evaluate(search.ask(10)).values,
            "best of other devices": problem.evaluate(found).values
            if len(found := others_best(kernel, configs))
            else [],
            "random": rng.permutation(costs)[:10],
            "default": [],
        }
        for name, told in values.items():
            found_quality = dict(zip((f"k = {k}" for k in COUNTS), quality(costs.min(), default, told), strict=False))
            rows.append({"task": kernel, "method": name} | found_quality)
        print(len(rows) // 4, rows[-4], rows[-3], flush=True)
    table = pd.DataFrame(rows)
    table.to_csv(HERE / "devices.csv", index=False, float_format="%.4g")
    print(table.drop(columns="task").groupby("method").agg(["mean", "min"]).to_string())


if __name__ == "__main__":
    main()
