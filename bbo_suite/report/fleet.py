"""The page of a study of fleets: one HTML file with figures, a table and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.quantities import with_noun
from ..errors import UserError
from ..files.writing import write_text
from ..fleet.study import DAYS, END, ORACLE, regret
from ..scores import ALPHA
from ..stats import holm, signed_rank_p, smallest_signed_rank_p
from . import formatting, table
from .drawings import drawing
from .page import render

PAGE = "fleet.html"


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each finished run of a study, and a row for each of their days.

    Raises:
      UserError: there is no finished run.
    """
    runs, days = [], []
    for end in sorted(folder.glob(f"*/{END}")):
        run = json.loads(end.read_text(encoding="utf-8"))
        runs.append(run)
        own = pd.read_csv(end.with_name(DAYS))
        days.append(own.assign(**{key: run[key] for key in ("policy", "budget", "seed")}))
    if not runs:
        raise UserError(f"there is no finished run in {folder}; run `python -m bbo_suite fleet --study {folder.name}`")
    return pd.DataFrame([run | regret(run, runs) for run in runs]), pd.concat(days, ignore_index=True)


def write(folder: Path) -> Path:
    """Write the page of a study and return its path."""
    from ..figures import fleet as figures

    runs, days = read(folder)
    drawings = [drawing(figures.days(days), "days."), drawing(figures.budgets(runs), "budgets.")]
    worth = (
        "What a larger budget is worth" if runs["budget"].nunique() > 1 else "What each policy saves, and at what cost"
    )
    content = {
        "worth": worth,
        "title": folder.name,
        "sentences": [*sentences(runs)],
        "table": _table(runs),
        "drawings": drawings,
    }
    page = folder / PAGE
    write_text(page, render("fleet.html", **content))
    return page


def sentences(runs: pd.DataFrame) -> Iterator[str]:
    """Yield what follows for each budget, in words: the best policy if a test tells it, and what a model is worth."""
    for budget, own in runs.groupby("budget"):
        columns = ["saved", "regret", "savings_over_cost", "kernels_a_day"]
        means = own[["policy"]].join(own[columns].astype(float)).groupby("policy").mean()
        saved = own[~own["policy"].isin([ORACLE, "none"])].pivot(index="seed", columns="policy", values="saved")
        saved = saved[saved.mean().sort_values(ascending=False, kind="stable").index]
        if saved.empty:
            continue
        yield f"With {budget:,.0f} chip-seconds a day, {_verdict(saved)}"
        row: Any = means.loc[saved.columns[0]]
        missed = "" if pd.isna(row["regret"]) else f", {row['regret']:.1%} less than an oracle would save"
        yield (
            f"Highest mean: {saved.columns[0]} with {row['saved']:.2%} of the fleet's chip time{missed},"
            f" {row['savings_over_cost']:,.0f} times its cost."
        )
        if {"model", "saving"} <= {*means.index}:
            tuned = means["kernels_a_day"]
            ratio = tuned["model"] / tuned["saving"]
            yield f"There the learned model tunes {ratio:,.1f} times as many kernels as measuring all settings does."


def _verdict(saved: pd.DataFrame) -> str:
    """Return which policy is best, or which cannot be told apart: Wilcoxon signed-rank over fleets, corrected (Holm).

    Args:
      saved: a row for each fleet and a column for each policy, the highest mean first.
    """
    best, *others = saved.columns
    if not others:
        return f"{best} is the only policy that was compared."
    whole = saved.dropna()
    needed = next(n for n in range(2, 99) if len(others) * smallest_signed_rank_p(n) <= ALPHA)
    if len(whole) < 2 or len(others) * smallest_signed_rank_p(len(whole)) > ALPHA:
        fleets = with_noun(len(whole), "fleet")
        few = "is too little" if len(whole) == 1 else "are too few"
        return f"{fleets} {few} for a test of which of {len(saved.columns)} policies is best: --repeats {needed}."
    p = holm([signed_rank_p(whole[best], whole[other]) for other in others])
    tied = [other for other, value in zip(others, p, strict=True) if value > ALPHA]
    if not tied:
        return f"{best} is the best of {len(saved.columns)} policies over {len(whole)} fleets (all p ≤ {ALPHA})."
    return f"{formatting.listed([best, *tied])} cannot be told apart by a test over {len(whole)} fleets."


def _table(runs: pd.DataFrame) -> table.Table:
    columns = {
        "saved": ("saved", "{:.2%}"),
        "regret": ("regret", "{:.1%}"),
        "savings_over_cost": ("savings / cost", "{:,.0f}"),
        "kernels_a_day": ("kernels a day", "{:,.1f}"),
        "lost": ("lost", "{:.3%}"),
        "days_to_recover": ("days to recover", "{:,.1f}"),
    }
    numbers = runs[["budget", "policy"]].join(runs[[*columns]].astype(float))
    means: list[Any] = numbers.groupby(["budget", "policy"]).mean().reset_index().to_dict("records")
    rows = [
        [
            table.text(row["policy"]),
            table.Cell(f"{row['budget']:,.0f}", row["budget"]),
            *(
                table.Cell("-" if pd.isna(row[name]) else text.format(row[name]), row[name])
                for name, (_, text) in columns.items()
            ),
        ]
        for row in means
    ]
    note = (
        "Means after day 10. Saved: share of the fleet's chip time. Regret: share of an oracle's savings that is missed"
        ". Lost: what results cost that are slower than the default in truth. Savings over the cost of all days."
    )
    titles = ["policy", "budget a day", *(title for title, _ in columns.values())]
    return table.Table("policies", "Policies", note, titles, rows)
