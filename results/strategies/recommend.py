"""How good is `recommend`? Writes the evidence that ships, and what its choices lose where a family or a task is new.

python results/strategies/recommend.py    # recommend.csv, and bbo_suite/evidence.csv.gz
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from study import real, shares, simulated

from bbo_suite.core.level import Level
from bbo_suite.recommend import EVIDENCE, Evidence, sees
from bbo_suite.registry import Registry

HERE = Path(__file__).parent
LEFT_OUT = ("pymoo:GA", "pymoo:GA, tuned", "opentuner:AUCBanditMetaTechniqueA")
"""They need an extra, or options."""
NEW = ("family", "task")
"""What is new to the evidence: a whole family, or one task of a known family."""


def evidence() -> pd.DataFrame:
    """Return the rows of all tasks, strategies and budgets."""
    runs = pd.concat([simulated(), real()])
    levels = runs.drop_duplicates("strategy").set_index("strategy")["level"]
    found = shares(runs).rename(columns={"problem": "task"})
    found = found[~found["strategy"].isin(LEFT_OUT)]
    found = found.assign(level=found["strategy"].map(levels), own=found["own"] / found["budget"])
    return found[["family", "task", "strategy", "level", "budget", "share", "gain", "own"]].dropna(subset=["share"])


def chosen(known: pd.DataFrame, new: str) -> Iterator[dict[str, object]]:
    """Yield for each task, level and budget what the choice has, what each strategy has, and the best of them.

    Of the choices, the first one that ran on the task is taken.
    """
    for left_out, tasks in known.groupby(new):
        others = Evidence(known[known[new] != left_out])
        for (family, task, budget), rows in tasks.groupby(["family", "task", "budget"]):
            got = rows.set_index("strategy")
            levels = {Level.named(word) for word in got["level"]}
            for level in sorted(level for level in levels if level <= _sees(family, task)):
                ran = got.loc[[Level.named(word) <= level for word in got["level"]], "share"]
                choice = next((c for c in others.choices(family, level, budget) if c.strategy in ran), None)
                if choice and len(ran) > 1:
                    row = {"new": new, "level": level.word, "budget": budget, "family": family, "task": task}
                    has = {"choice": choice.strategy, "chosen": ran[choice.strategy], "best": ran.max()}
                    yield row | has | dict(ran)


_SEEN: dict[str, Level] = {}


def _sees(family: str, task: str) -> Level:
    """Return what strategies can know of a family's problems, by one of them."""
    if family not in _SEEN:
        _SEEN[family] = sees(Registry().problem(task))
    return _SEEN[family]


def losses(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield for each level and budget the mean share over families: of the choice, and of the best fixed one."""
    for keys, own in rows.groupby(["new", "level", "budget"]):
        fixed = [n for n in own.columns[8:] if own[n].notna().all()]
        means = own.groupby("family")[["chosen", "best", *fixed]].mean().mean()
        best = means[fixed].idxmax()
        row = dict(zip(("new", "level", "budget"), keys, strict=True)) | {"families": own["family"].nunique()}
        row |= {"chosen": means["chosen"], "best_fixed": best, "its_share": means[best], "best": means["best"]}
        yield row | {"choices": " ".join(f"{n}:{k}" for n, k in own["choice"].value_counts().items())}


def main() -> None:
    """Write the files."""
    known = evidence()
    known.to_csv(EVIDENCE, index=False, float_format="%.4g", compression={"method": "gzip", "mtime": 0})
    rows = pd.DataFrame([row for new in NEW for row in chosen(known, new)])
    table = pd.DataFrame(losses(rows))
    table.to_csv(HERE / "recommend.csv", index=False, float_format="%.3g")
    print(table.to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
