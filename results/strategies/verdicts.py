"""Evaluates `runs.csv`: means with intervals, the winners of each task, and figures.

    python results/strategies/verdicts.py

Writes `means.csv`, `verdicts.csv` and figures of the final values.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from bbo_suite import figures
from bbo_suite.stats import mean_interval

HERE = Path(__file__).parent


def is_peer(strategy: str) -> bool:
    """Return whether a strategy is an adapter of another library."""
    return ":" in strategy


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean speedup of each strategy on each task and budget, with its 95 % interval over the runs."""
    rows = []
    for (budget, problem, strategy), part in runs.groupby(["budget", "problem", "strategy"]):
        mean, low, high = mean_interval(part["speedup"])
        fixed = {"budget": budget, "problem": problem, "strategy": strategy, "runs": len(part)}
        shown = {"structure": bool(part["uses_structure"].iloc[0]), "mean": mean, "low": low, "high": high}
        rows.append({**fixed, **shown, "strategy_seconds": part["strategy_seconds"].mean()})
    return pd.DataFrame(rows)


def by_family(runs: pd.DataFrame) -> pd.DataFrame:
    """Return families as if they were tasks: the geometric mean speedup over a family's tasks, for each seed.

    Only strategies that ran all tasks of a family are in it.
    """
    family = runs["problem"].str.partition("/")[0]
    tasks = runs.groupby(["budget", family])["problem"].transform("nunique")
    keys = ["budget", "problem", "strategy", "uses_structure", "seed"]
    by = runs.assign(problem=family + " (all)", tasks=tasks, speedup=np.log(runs["speedup"])).groupby(keys)
    made = by.agg(**{name: (name, "mean") for name in ("speedup", "strategy_seconds", "tasks")}, count=("seed", "size"))
    whole = made[made["count"] == made["tasks"]].reset_index()
    return whole.assign(speedup=np.exp(whole["speedup"]))


def beats(runs: pd.DataFrame, one: str, other: str) -> float:
    """Return the p-value of "`one` finds better candidates than `other`" on one task (Mann-Whitney, one-sided)."""
    speedups = [runs.loc[runs["strategy"] == name, "speedup"] for name in (one, other)]
    return float(mannwhitneyu(*speedups, alternative="greater").pvalue)


def best(table: pd.DataFrame) -> str:
    """Return the strategy with the best mean."""
    return str(table.loc[table["mean"].idxmax(), "strategy"])


def verdicts(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each budget and task, the best of ours and of the peers, both without structure, and those with it.

    The p-values say how likely the runs were if the first were no better than the second.
    """
    rows = []
    for (budget, problem), part in runs.groupby(["budget", "problem"]):
        table = means(part)
        blind, seeing = table[~table["structure"]], table[table["structure"]]
        peers = blind["strategy"].map(is_peer)
        if not len(blind[peers]) or "mbo" not in set(blind["strategy"]):
            continue  # not all of it is there yet
        ours, peer, winner = best(blind[~peers]), best(blind[peers]), best(blind)
        row = {"budget": budget, "problem": problem, "ours": ours, "peer": peer}
        row |= {"ours_over_peer": beats(part, ours, peer), "peer_over_ours": beats(part, peer, ours)}
        row |= {"best_blind": winner, "over_mbo": beats(part, winner, "mbo")}
        if len(seeing):
            row |= {"seeing": best(seeing), "seeing_over_blind": beats(part, best(seeing), winner)}
        rows.append(row)
    return pd.DataFrame(rows)


def draw_fusion(table: pd.DataFrame, budget: int) -> None:
    """Draw XTAT's figure: the speedup of each strategy on fusion, tasks in the geometric mean, with 95 % intervals."""
    tasks = table.loc[table["problem"].str.startswith("fusion/"), "problem"].nunique()
    part = table[table["problem"] == "fusion (all)"].sort_values("mean")
    names = part["strategy"] + part["structure"].map({True: " *", False: ""})
    figure, ax = plt.subplots(figsize=(9, 1.4 + 0.32 * len(part)), layout="constrained")
    errors = np.stack([part["mean"] - part["low"], part["high"] - part["mean"]])
    ax.barh(names, part["mean"] - 1, left=1, color="#0072B2", xerr=errors, error_kw={"capsize": 2, "elinewidth": 1})
    ax.margins(x=0.15)
    for place, (value, high) in enumerate(zip(part["mean"], part["high"], strict=True)):
        ax.text(high, place, f"  {value:.4f}", va="center", fontsize=8)
    more = "95 % interval of the mean over runs; right is better; * sees structure"
    ax.set_xlabel(f"speedup over the default, geometric mean over tasks\n{more}", fontsize=9)
    ax.set_title(f"Fusion: {tasks} tasks, {budget:,} evaluations, {part['runs'].min()} runs each", loc="left")
    figure.savefig(HERE / f"fusion-{budget}.png", dpi=150)


def main() -> None:
    """Write tables and figures."""
    runs = pd.read_csv(HERE / "runs.csv")
    for budget, part in runs.rename(columns={"evaluations": "evaluation"}).groupby("budget"):
        list(figures.write(part, HERE / f"figures-{budget}", names=("heat", "critical"), formats=("png",)))
    runs = pd.concat([runs, by_family(runs)])
    table = means(runs)
    table.to_csv(HERE / "means.csv", index=False, float_format="%.6g")
    verdicts(runs).to_csv(HERE / "verdicts.csv", index=False, float_format="%.3g")
    for budget, part in table.groupby("budget"):
        draw_fusion(part, int(budget))
    print(verdicts(runs).to_string(index=False))


if __name__ == "__main__":
    main()
