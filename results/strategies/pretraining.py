"""How much pre-training gains for `rl` on programs that it has not seen.

    python results/strategies/pretraining.py     # from the root of the tree: the policy's path is part of a run

A policy is trained on programs of models that the study leaves out; then `rl` starts from it on the study's fusion
tasks. Runs are kept under `results/pretrained-1000` and resumed; the runs from scratch are those of the study.
Writes `pretraining.csv`: the mean speedups on each task, and the p-value of the hypothesis that pre-training does not
help. `policy.eqx` is the policy.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu
from study import HERE, TASKS

import bbo_suite
from bbo_suite.store.summary import summarise

TRAINING = (
    "translate-base-decode-b64-s64",
    "ssd-resnet34-infer-b32",
    "translate-base-encode-b64-s64",
    "ssd-vgg16-infer-b8-c21",
    "moe-8-infer-b1-s1024",
    "translate-base-decode-b512-s128",
    "ssd-resnet34-infer-b1",
    "translate-base-encode-b1-s64",
)
BUDGET, EVALUATIONS = 1000, 300_000
SCRATCH = HERE.parent / f"strategies-{BUDGET}"
TRAINED = HERE.parent / f"pretrained-{BUDGET}"
POLICY = Path("results") / f"{TRAINED.name}.eqx"


def train() -> None:
    """Write the policy, unless it is there."""
    if not POLICY.exists():
        problems = [part for name in TRAINING for part in ("--problem", f"fusion/{name}")]
        command = ["pretrain", "--strategy", "rl", *problems, "--budget", str(EVALUATIONS), "--out", str(POLICY)]
        subprocess.run([sys.executable, "-m", "bbo_suite", *command], check=True)


def speedups(study: Path) -> pd.DataFrame:
    """Return one row for each finished run of `rl`."""
    return pd.DataFrame([summarise(end.parent) for end in sorted(study.glob("fusion--*__rl__*/end.json"))])


def over_tasks(runs: pd.DataFrame) -> pd.Series:
    """Return the geometric mean over the tasks, for each seed."""
    return np.exp(np.log(runs["speedup"]).groupby(runs["seed"]).mean())


def verdict(problem: str, trained: pd.Series, scratch: pd.Series) -> dict[str, object]:
    """Return a task's row; the p-value is that of Mann and Whitney, one-sided."""
    means = {"trained": trained.mean(), "trained_sem": trained.sem(), "scratch": scratch.mean()}
    runs = {"problem": problem, "runs": len(trained), "runs_scratch": len(scratch)}
    return (
        runs | means | {"scratch_sem": scratch.sem(), "p": mannwhitneyu(trained, scratch, alternative="greater").pvalue}
    )


def main() -> None:
    """Train, do the runs that are missing and write the table."""
    train()
    settings = {"budget": BUDGET, "repeats": 10, "jobs": 2, "results": HERE.parent, "quiet": False}
    problems = [f"fusion/{name}" for name in TASKS["fusion"]]
    bbo_suite.run("rl", problems, study=SCRATCH.name, **settings)
    bbo_suite.run("rl", problems, study=TRAINED.name, option_texts={"rl.pretrained": str(POLICY)}, **settings)
    both = [speedups(study).groupby("problem")["speedup"] for study in (TRAINED, SCRATCH)]
    rows = [verdict(problem, *(side.get_group(problem) for side in both)) for problem in problems]
    rows.append(verdict("fusion (all)", *(over_tasks(speedups(study)) for study in (TRAINED, SCRATCH))))
    pd.DataFrame(rows).to_csv(HERE / "pretraining.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
