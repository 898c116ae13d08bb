"""What each idea of the training is worth: equal numbers of tasks, candidates and steps, five seeds.

python results/models/one_shot/ablation.py    # ablation.csv: only what it lacks; attention takes over an hour
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from study import HERE, picks, row, shipped, tasks

from bbo_problems.tensor_compiler.tasks.kernel_families import SettingsFamily
from bbo_strategies.one_shot import OneShot
from bbo_suite.core.evaluation import default_value
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson

TASKS, EVALUATIONS, STEPS, SEEDS = 200, 20_000, 600, 5
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "prior, exploration": ("prior", {}),
    "prior, random candidates": ("prior", {"explore": False}),
    "uniform tasks, exploration": ("uniform", {}),
    "uniform tasks, random candidates": ("uniform", {"explore": False}),
    "prior, exploration, squared error": ("prior", {"rank": False}),
    "prior, exploration, attention": ("prior", {"network": "attention"}),
}


def lesson(family: SettingsFamily, rng: np.random.Generator) -> Lesson:
    """Return a task drawn from a family."""
    problem = family.sample(rng)
    return Lesson(problem.task(True), default_value(problem), lambda rows: problem.evaluate(rows).values)


def train(family: SettingsFamily, seed: int, out: Path, options: dict[str, object]) -> None:
    """Train a model as `pretrain` does."""
    rng = np.random.default_rng(seed)
    lessons, chosen = [lesson(family, rng) for _ in range(TASKS)], OneShot.Options(steps=STEPS, **options)
    OneShot.pretrain(lessons, EVALUATIONS, rng, chosen, out, lambda count, words: None)


def main() -> None:
    """Write the table."""
    known = pd.read_csv(HERE / "ablation.csv")
    rows, drawn = known.to_dict("records"), tasks()
    done = set(zip(known["strategy"], known["seed"], strict=True))
    families = {name: SettingsFamily(name) for name in SettingsFamily.instances}
    for seed in range(SEEDS):
        for variant, (family, options) in VARIANTS.items():
            if (variant, seed) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                train(families[family], seed, out := Path(folder) / "model.npz", options)
                pinned = PinnedFile(str(out))
                for name, held in drawn.items():
                    found = np.array([picks(each, partial(shipped, pretrained=pinned)) for each in held])
                    rows += row(name, variant, found, (0, 1, 5, 10), seed=seed)
            print(seed, variant, rows[-3]["mean"], flush=True)
            pd.DataFrame(rows).to_csv(HERE / "ablation.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
