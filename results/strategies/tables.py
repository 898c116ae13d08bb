"""Tables and the figure of the runs that are there; `study.py tables` calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from figure import PEERS, draw
from scipy.stats import mannwhitneyu
from study import BUDGETS, ENTRIES, MARKS, known_runs

from bbo_suite.stats import holm, signed_rank_p, smallest_signed_rank_p

QUESTIONS = {
    "which with n": tuple((name, n, "annealing", n) for name in ("evolution", "mbo") for n in BUDGETS),
    "structure": (
        *(("local", n, "annealing", n) for n in BUDGETS),
        *(("joint", n, other, n) for other in ("annealing", "local") for n in BUDGETS),
    ),
    "parts": (
        *(("graybox", n, "local", n) for n in (50, 200)),
        *(("graybox", n, "annealing", m) for n, m in ((50, 1_000), (200, 10_000))),
        ("graybox", 200, "local", 10_000),
    ),
    "peers": tuple((name, n, "annealing", n) for name in PEERS for n in BUDGETS[1:]),
}
"""What was looked at, by question: a strategy with a budget against another one with its budget."""
DIFFERENCES = (0.05, 0.1, 0.2)


def completed(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the column `gain`, and the shorter runs of strategies that ignore their budget: they begin the longest."""
    runs = runs.rename(columns={"problem": "task"})
    runs["gain"] = 100 * (runs["default"] / np.minimum(runs["best"], runs["default"]) - 1)
    whole = runs[[ENTRIES[name].prefix for name in runs["strategy"]]]
    return pd.concat([runs, *(whole.assign(budget=n, gain=whole[str(n)]) for n in BUDGETS[:-1])])


def shares(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each task, strategy and budget the mean gain, and its share of the best gain that any run reached.

    `to90` and `to99` are medians over the runs of the first of `MARKS` at which a run has that share; inf: never.
    """
    best = runs.groupby("task")["gain"].max()
    told = runs[[str(mark) for mark in MARKS]].to_numpy() / best[runs["task"]].to_numpy()[:, None]
    at = np.array([*MARKS, np.inf])
    reached = {f"to{p}": at[np.append(told >= p / 100, np.ones((len(told), 1), bool), 1).argmax(1)] for p in (90, 99)}
    columns = {"seeds": ("seed", "nunique"), "gain": ("gain", "mean"), "own": ("strategy_seconds", "median")}
    means = runs.assign(**reached).groupby(["task", "strategy", "budget"])
    table = means.agg(**columns, **{name: (name, "median") for name in reached})
    family = table.index.get_level_values("task").str.split("[/:]").str[0]
    return table.assign(share=table["gain"] / best, family=family).reset_index()


def decided(runs: pd.DataFrame, pair: tuple[str, int, str, int]) -> tuple[int, int]:
    """Return on how many tasks the first of a pair gains more and less (Mann and Whitney, p < .05 by Holm)."""
    name, n, other, m = pair
    gains = runs.groupby(["strategy", "budget", "task"])["gain"].apply(np.array)
    tasks = gains[name, n].index.intersection(gains[other, m].index)
    both = [(gains[name, n][task], gains[other, m][task]) for task in tasks]
    signs = np.array([np.sign(ours.mean() - theirs.mean()) for ours, theirs in both])
    p = holm(np.array([1.0 if np.ptp([*a, *b]) == 0 else mannwhitneyu(a, b).pvalue for a, b in both]))
    return int((signs[p < 0.05] > 0).sum()), int((signs[p < 0.05] < 0).sum())


def verdicts(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each pair of `QUESTIONS`: mean shares, families ahead, p (Wilcoxon, paired by family), Holm's p.

    Tasks of a family are alike, so a family counts once, with its mean. Holm's correction is over the pairs of a
    question. `sure_ahead` and `sure_behind` count tasks that
    are decided by their own runs. Last are the families that a true difference of each of `DIFFERENCES` needs (80 %
    power at 5 %, normal approximation).
    """
    wide, rows = table.pivot_table(index=["family", "task"], columns=["strategy", "budget"], values="share"), []
    for question, pair in ((question, pair) for question, pairs in QUESTIONS.items() for pair in pairs):
        name, n, other, m = pair
        if (name, n) not in wide or (other, m) not in wide:
            continue
        tasks = wide[[(name, n), (other, m)]].dropna()
        both = tasks.groupby("family").mean().to_numpy()
        difference = both[:, 0] - both[:, 1]
        row = {
            "question": question,
            "strategy": name,
            "budget": n,
            "against": other,
            "its_budget": m,
            "tasks": len(tasks),
        }
        row |= dict(zip(("sure_ahead", "sure_behind"), decided(runs, pair), strict=True)) | {"families": len(both)}
        row |= {"share": both[:, 0].mean(), "its_share": both[:, 1].mean(), "ahead": int((difference > 1e-9).sum())}
        row |= {"p": signed_rank_p(*both.T), "least_p": smallest_signed_rank_p(len(both))} if len(both) > 1 else {}
        spread = difference.std(ddof=1) if len(both) > 1 else np.nan
        rows.append(row | {f"needs_for_{x}": np.ceil((2.8 * spread / x) ** 2 / 0.955) for x in DIFFERENCES})
    found = pd.DataFrame(rows)
    corrected = found[found["p"].notna()].groupby("question")["p"].transform(lambda p: holm(p.to_numpy()))
    return found.assign(holm=corrected)


def reaching(table: pd.DataFrame) -> pd.DataFrame:
    """Return on which share of the tasks the median run reaches a share of the best known gain, and when: quartiles."""
    longest = table[table["budget"] == BUDGETS[-1]]
    rows = {}
    for name, own in longest.groupby("strategy"):
        for mark in ("to90", "to99"):
            rows[name, mark] = {
                "reach": np.isfinite(own[mark]).mean(),
                **own[mark].quantile([0.25, 0.5], interpolation="higher").to_dict(),
            }
    return pd.DataFrame(rows).T


def write(here: Path) -> None:
    """Write gains.csv, verdicts.csv and gain.png."""
    runs = completed(known_runs())
    table = shares(runs)
    table.to_csv(here / "gains.csv", index=False, float_format="%.4g")
    found = verdicts(runs, table)
    found.to_csv(here / "verdicts.csv", index=False, float_format="%.3g")
    print(found.to_string(index=False))
    means = table.groupby(["family", "strategy", "budget"])["share"].mean().groupby(["strategy", "budget"]).mean()
    print(means.unstack().to_string(float_format="%.2f"))
    print(reaching(table).to_string(float_format="%.2f"))
    draw(table, here / "gain.png")
