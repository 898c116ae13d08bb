"""How far a search gets on small blocks at XLA:TPU; the same command again resumes what was stopped."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from careful import BESIDE

import bbo_suite

HERE = Path(__file__).parent
BLOCKS = ("transformer", "attention", "mlp", "conv", "lstm", "dlrm", "norm")
KEYS = ["problem", "strategy", "budget", "seed"]


def beside(row: pd.Series) -> tuple[float, float]:
    """Return the changes of roofline and of peak memory against the default, in percent."""
    roofline, memory = BESIDE.search(row["reason"]).groups()
    return float(roofline), float(memory)


def line(rows: pd.DataFrame) -> dict[str, object]:
    """Return what one run found: its best candidate, and what else the compiler estimates of it."""
    best, default = rows.loc[rows["value"].idxmin()], float(rows["default"].iloc[0])
    roofline, memory = beside(best)
    modest = [row for _, row in rows[rows["status"] == "ok"].iterrows() if max(beside(row)) <= 0]
    least = min((row["value"] for row in modest), default=default)
    return {
        "problem": best["problem"],
        "strategy": best["strategy"],
        "seed": best["seed"],
        "budget": best["budget"],
        "candidates": len(rows),
        "default cycles": round(default),
        "best cycles": round(best["value"]),
        "fewer %": round(100 * (1 - best["value"] / default), 2),
        "roofline %": roofline,
        "peak memory %": memory,
        "fewer %, both no worse": round(100 * max(0.0, 1 - least / default), 2),
        "found at": best["evaluation"],
        "failed": int((rows["status"] != "ok").sum()),
        "contradicted": int(rows["reason"].str.startswith("contradicted").sum()),
        "seconds": round(float(rows["evaluation_seconds"].sum())),
    }


def draw(frame: pd.DataFrame, out: Path) -> None:
    """Draw the best so far against evaluations, a line a run; the careful ones dashed."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (problem, *_), rows in frame.groupby(KEYS, observed=True):
        family, _, block = problem.partition("/")
        look = {"label": block} if family == "xla-tpu" else {"linestyle": "--"}
        fewer = 100 * (1 - 1 / rows["speedup"])
        colour = f"C{BLOCKS.index(block)}"
        axes.step(rows["evaluation"], fewer.clip(lower=0), where="post", color=colour, **look)
    axes.set(xlabel="evaluations", ylabel="fewer estimated cycles than the default, %", ylim=(0, None))
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(out, dpi=150)


def main() -> None:
    """Run what is not there yet, then write `runs.csv` and `runs.png` about all runs that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", action="append", help="may be repeated; all when left out")
    parser.add_argument("--strategy", default="annealing")
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--max-seconds", type=float, help="of each run; the same command with more goes on")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--only-report", action="store_true", help="report on the runs that are there")
    chosen = parser.parse_args()
    settings = {
        "budget": chosen.budget,
        "batch": 10,
        "jobs": 1,
        "results": chosen.results,
        "max_seconds": chosen.max_seconds,
    }
    for block in () if chosen.only_report else chosen.block or BLOCKS:
        problems = [f"xla-tpu/{block}", f"careful/{block}"]
        study = f"xla-tpu-{chosen.budget}"
        bbo_suite.run([chosen.strategy], problems, quiet=False, study=study, plugins=[HERE / "careful.py"], **settings)
    studies = sorted(chosen.results.glob("xla-tpu-*"))
    frame = pd.concat(bbo_suite.load(path.name, chosen.results, ["reason"]) for path in studies)
    runs = [line(rows) for _, rows in frame.groupby(KEYS, observed=True)]
    pd.DataFrame(runs).to_csv(HERE / "runs.csv", index=False)
    draw(frame, HERE / "runs.png")
    print(pd.DataFrame(runs).to_string(index=False))


if __name__ == "__main__":
    main()
