"""Writes verdicts.csv, gain.png, halves.png and leads.png beside this file, and prints the tables of README.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from live import STRATEGIES
from plan import BUDGETS, PEERS

from bbo_suite.scores import compare, corrected_p
from bbo_suite.stats import mean_interval, signed_rank_p, smallest_signed_rank_p
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
IGNORE_THEIR_BUDGET = ("random", "pymoo:GA", "pymoo:GA, tuned")
"""They have the longest runs alone: shorter ones begin these."""
QUESTIONS = {
    "which with n": [((name, n), ("annealing", n)) for name in ("evolution", "mbo") for n in BUDGETS],
    "structure": [
        *((("local", n), ("annealing", n)) for n in BUDGETS),
        *((("joint", n), (other, n)) for other in ("annealing", "local") for n in BUDGETS),
    ],
    "parts": [
        *((("graybox", n), ("local", n)) for n in (50, 200)),
        *((("graybox", n), ("annealing", m)) for n, m in ((50, 1_000), (200, 10_000))),
        (("graybox", 200), ("local", 10_000)),
    ],
    "peers": [((name, n), ("annealing", n)) for name in PEERS for n in BUDGETS[1:]],
}
"""What was looked at, by question: a strategy with a budget against another one with its budget."""
DIFFERENCES = (0.05, 0.1, 0.2)


def simulated() -> pd.DataFrame:
    """Return the runs of the simulated half (see `with_gains`)."""
    runs = read_runs(HERE / "runs.csv.gz")
    whole = runs[runs["strategy"].isin(IGNORE_THEIR_BUDGET)]
    return with_gains(pd.concat([runs, *(whole.assign(budget=n, best=whole[f"best@{n}"]) for n in BUDGETS[:-1])]))


def real() -> pd.DataFrame:
    """Return the runs of the real half (see `with_gains`)."""
    return with_gains(read_runs(HERE / "real-runs.csv.gz"))


def with_gains(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with their gains in percent, and the family of each."""
    gain = 100 * (runs["default"] / runs["best"] - 1).clip(lower=0)
    return runs.assign(gain=gain, family=runs["problem"].str.split("[/:]").str[0])


def shares(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each task, strategy and budget the mean gain, and its share of the best gain that any run reached.

    `reach90` and `reach99` say whether the median run has that share.
    """
    share = runs["gain"] / runs.groupby("problem")["gain"].transform("max")
    columns = {"seeds": ("seed", "nunique"), "gain": ("gain", "mean"), "share": ("share", "mean")}
    columns |= {"own": ("seconds", "median"), "reach90": ("share", lambda own: (own >= 0.9).mean() > 0.5)}
    columns |= {"reach99": ("share", lambda own: (own >= 0.99).mean() > 0.5)}
    found = runs.assign(share=share).groupby(["family", "problem", "strategy", "budget"]).agg(**columns)
    return found.reset_index()


def verdicts(runs: pd.DataFrame, table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a row for each pair of `QUESTIONS`: p is Wilcoxon's, paired by family, since tasks of a family are alike.

    `sure_ahead` and `sure_behind` count the tasks that are decided by their own runs. `needs_for_...` are the families
    that a true difference of so much needs (80 % power at 5 %, normal approximation).
    """
    wide = table.pivot_table(index=["family", "problem"], columns=["strategy", "budget"], values="share")
    for question, pair in ((question, pair) for question, pairs in QUESTIONS.items() for pair in pairs):
        (name, n), (other, m) = pair
        tasks = wide.reindex(columns=pd.MultiIndex.from_tuples(pair)).dropna()
        both = tasks.groupby("family").mean().to_numpy()
        difference, ahead = both[:, 0] - both[:, 1], compare(runs, pair, "gain")["ahead"]
        row = {"question": question, "strategy": name, "budget": n, "against": other, "its_budget": m}
        row |= {"tasks": len(tasks), "sure_ahead": (ahead > 0).sum(), "sure_behind": (ahead < 0).sum()}
        row |= {"families": len(both), "share": both[:, 0].mean(), "its_share": both[:, 1].mean()}
        row |= {"ahead": (difference > 1e-9).sum(), "p": np.nan}
        if len(both) > 1:
            spread = difference.std(ddof=1)
            row |= {"p": signed_rank_p(*both.T), "least_p": smallest_signed_rank_p(len(both))}
            row |= {f"needs_for_{x}": np.ceil((2.8 * spread / x) ** 2 / 0.955) for x in DIFFERENCES}
        yield row


def live() -> Iterator[pd.DataFrame]:
    """Yield for each compiler the speedups over programs with equal times, and what is ahead of random search."""
    runs = read_runs(HERE / "live-runs.csv")
    for family, own in runs.groupby(runs["problem"].str.partition("/")[0]):
        speedups = own.pivot_table(index="problem", columns="strategy", values="speedup")[STRATEGIES]
        others = speedups.drop(columns="random")
        means = [np.exp(mean_interval(np.log(speedups[name]))) for name in STRATEGIES]
        found = pd.DataFrame(means, index=STRATEGIES, columns=["mean", "low", "high"]).assign(family=family)
        found["evaluations"] = own.groupby("strategy")["evaluations"].mean().round()
        found["ahead"] = others.gt(speedups["random"], axis=0).sum()
        found["behind"] = others.lt(speedups["random"], axis=0).sum()
        p = corrected_p(np.array([signed_rank_p(others[name], speedups["random"]) for name in others]))
        yield found.assign(holm=pd.Series(p, index=others.columns))


def draw(table: pd.DataFrame) -> None:
    """Draw mean shares by budget, over families, and those of each family."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    families = table.groupby(["family", "strategy", "budget"])["share"].mean()
    colours = {"random": "#999999", "evolution": "#56b4e9", "annealing": "#0072b2", "mbo": "#009e73"}
    colours |= {"local": "#d55e00", "joint": "#e69f00", "graybox": "#000000"}
    for name in [*list(colours)[:5], *PEERS]:
        means = families.xs(name, level="strategy").groupby("budget").mean()
        look = {"ls": "--" if name == "local" else "-"} if name in colours else {"ls": ":", "lw": 1}
        left.plot(means.index, means, marker="o", ms=4, color=colours.get(name), label=name, **look)
    left.set(xscale="log", xlabel="evaluations (the run's budget)", ylabel="share of the best known gain")
    left.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
    sides = families.unstack(["strategy", "budget"])
    sides = sides.loc[sides["annealing", 10_000].sort_values().index]
    sides = sides[[("annealing", 10_000), ("local", 10_000), ("joint", 10_000), ("graybox", 200)]]
    for (name, n), marker in zip(sides, "osD^", strict=True):
        right.plot(sides[name, n], sides.index, marker, color=colours[name], label=f"{name} at {n:,}")
    right.set(xlabel="share of the best known gain")
    for ax, title in ((left, "By budget (dashed: sees structure; dotted: peers)"), (right, "By family")):
        ax.set_title(title)
        ax.legend(frameon=False, fontsize=7)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "gain.png", dpi=80)


HALVES = {
    "graybox": "graybox (sees costs of parts)",
    "local": "local (sees the structure)",
    "mbo": "mbo",
    "annealing": "annealing",
    "nevergrad:DiscreteLenglerOnePlusOne": "DiscreteLengler (Nevergrad)",
    "random": "random",
}
"""Of README's figure: strategies, and what they are called."""


def draw_halves(halves: dict[str, pd.DataFrame]) -> None:
    """Draw mean shares over families against evaluations, for each half.

    A strategy's budgets are those that most of its families have, and its families those that have them all.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), sharey=True, layout="constrained")
    looks = ("kk:^", "C3--s", "C2-o", "C0-D", "C4-v", "C7-x")
    for ax, (title, table) in zip(axes, halves.items(), strict=True):
        families = table.groupby(["strategy", "family", "budget"])["share"].mean().unstack("budget")
        for (name, label), look in zip(HALVES.items(), looks, strict=True):
            own = families.loc[name]
            own = own.loc[:, own.count() > own.count().max() / 2].dropna()
            ax.plot(own.columns, own.mean(), look[2:], color=look[:2].replace("kk", "k"), ms=4,
                    label=f"{label}, {len(own)}")  # fmt: skip
        ax.set(xscale="log", xlabel="evaluations", title=title, ylim=(-0.02, 1.02))
        ax.set_xticks(list(families.columns), [f"{budget:,}" for budget in families.columns])
        ax.legend(frameon=False, fontsize=8, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of the best known gain")
    figure.savefig(HERE / "halves.png", dpi=90)


LEADS = {
    "Which search, from costs alone? mbo against annealing": ("mbo", "annealing"),
    "Does structure help? local against annealing": ("local", "annealing"),
    "Do costs of parts help? graybox against local": ("graybox", "local"),
    "Are other libraries ahead? DiscreteLengler against annealing": (
        "nevergrad:DiscreteLenglerOnePlusOne",
        "annealing",
    ),
}
"""The four headline questions, and the pair that each panel of leads.png shows."""


def leads(halves: dict[str, pd.DataFrame], pair: tuple[str, str]) -> pd.DataFrame:
    """Return by half, family and budget the mean lead in share of one strategy; budgets with three families or more."""
    table = pd.concat(halves, names=["half"]).reset_index("half")
    wide = table.pivot_table(index=["half", "family", "problem", "budget"], columns="strategy", values="share")
    found = (wide[pair[0]] - wide[pair[1]]).dropna().groupby(["half", "family", "budget"]).mean()
    return found.rename("lead").reset_index().groupby("budget").filter(lambda own: len(own) > 2)


def draw_leads(halves: dict[str, pd.DataFrame]) -> None:
    """Draw the lead of each family, a panel for each question, and the means over all families with intervals."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.6), layout="constrained")
    for ax, (title, pair) in zip(axes.flat, LEADS.items(), strict=True):
        found = leads(halves, pair)
        for place, (half, marker) in enumerate(zip(halves, "xo", strict=True)):
            own = found[found["half"] == half]
            ax.plot(own["budget"] * (1.04, 0.96)[place], own["lead"], marker, color=f"C{place}", alpha=0.6, label=half)
        means = found.groupby("budget")["lead"].agg(mean_interval)
        middle, low, high = np.array(means.tolist()).T
        ax.errorbar(means.index, middle, (middle - low, high - middle), fmt="k_", ms=14, capsize=4, label="mean, 95 %")
        ax.axhline(0, color="0.7", lw=1, zorder=0)
        ax.set(xscale="log", xlabel="evaluations", ylabel="lead in share of the best known gain")
        ax.set_title(title, fontsize=10)
        ax.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
        ax.spines[["top", "right"]].set_visible(False)
        print(
            title, found.groupby("budget")["lead"].agg(["mean", "count", lambda x: (x > 1e-9).sum()]).round(3), sep="\n"
        )
    axes.flat[0].legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "leads.png", dpi=80)


if __name__ == "__main__":
    all_runs = simulated()
    gains = shares(all_runs)
    found = pd.DataFrame(verdicts(all_runs, gains))
    found["holm"] = found.groupby("question")["p"].transform(lambda p: corrected_p(p.to_numpy()))
    found.to_csv(HERE / "verdicts.csv", index=False, float_format="%.3g")
    families = gains.groupby(["family", "strategy", "budget"])["share"].mean()
    print(found.to_string(), families.groupby(["strategy", "budget"]).mean().unstack().to_string(float_format="%.2f"))
    print(gains[gains["budget"] == BUDGETS[-1]].groupby("strategy")[["reach90", "reach99"]].mean().round(2).to_string())
    print(pd.concat(live()).to_string(float_format="%.4g"))
    draw(gains)
    halves = {"Compilers and recorded GPU spaces": shares(real()), "Simulated compilers": gains}
    draw_halves(halves)
    draw_leads(halves)
