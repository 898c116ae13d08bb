"""What `graybox` gains by parts that were measured on other programs before.

    python results/knowledge/pretraining.py [--repeats 10] [--tries] [--tables]

Trains on four programs, then makes 50 evaluations on ten tasks of `study.py` with and without the parts of these four.
Writes `pretraining.csv` beside this file and makes only the runs that it lacks. With `--tries`, each of the four is the
task and the others train: there, other ways to use the parts are compared. README.md says what both show.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

import bbo_suite
from bbo_strategies.graybox import GrayBox, GrayBoxOptions, regressor
from bbo_strategies.graybox.pretraining import PartsOfOthers
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import pretrain
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

FILE = Path(__file__).with_name("pretraining.csv")
TRAINING = (
    *("resnet_v2-50-infer-b64", "ssd-resnet34-infer-b32", "translate-base-decode-b64-s64"),
    "convdraw-t32-infer-b64",
)
TASKS = (
    *("fusion/bert-base-infer-b1-s128", "fusion/mobilenet-1.0-infer-b1", "fusion/unet-32-infer-b1"),
    *("fusion/gpt2-124m-decode-b128-s256", "fusion/resnet-50-infer-b1", "fusion/moe-32-infer-b32-s512"),
    *("fusion/mobilenet-0.5-infer-b1", "fusion/bert-tiny-train-b256-s128"),
    *("tile/bert-base-infer-b1-s128", "tile/unet-256-infer-b1"),
)
"""Those of `ablations.py` with two tasks of fusion more, instead of its tasks of flags."""
EACH, BATCH, CHECKPOINTS = 100, 20, (20, 50)
"""Evaluations on each training program, and of a run; its best candidate is read after 20, too."""


def trained(family: str, programs: tuple[str, ...], searches: bool, folder: Path) -> Path:
    """Return the file of parts of some programs, which is made if it is missing.

    Args:
      searches: measure the parts along a search; else those of random candidates.
    """
    name = f"{family}-{'-'.join(program[:4] for program in programs)}-{'search' if searches else 'random'}.npz"
    if not (out := folder / name).exists():
        problems = [f"{family}/{program}" for program in programs]
        with patch.object(GrayBox, "ask", GrayBox.ask if searches else _random):
            pretrain(Registry(), "graybox", problems, out, EACH * len(programs), 0, GrayBoxOptions(), lambda *_: None)
    return out


def _random(self: GrayBox, n: int) -> NDArray:
    """Propose what differs from the default in some decisions, which the search then knows as its own."""
    search = self._search
    found = search.ask(n)
    share = self.rng.random((len(found), 1))
    changed = self.rng.random(found.shape) < share * (share > 0.2) * np.isfinite(search._cost)
    rows = np.where(changed, self.task.space.sample(len(found), self.rng), self.task.default)
    for row in rows:
        search._room.best[:] = row
        search._meet(search._beliefs.now(1.0))
    return rows.astype(self.task.space.dtype)


def gains(problem: bbo_suite.Problem, seed: int, file: Path | None) -> dict[str, float]:
    """Return the gains of a run in percent, by column of the table, and the R^2 of parts not measured before."""
    task, told = problem.task(True, None, True), list[bbo_suite.Evaluations]()
    options = {} if file is None else {"pretrained": PinnedFile(str(file))}
    strategy = start(GrayBox, task.space, CHECKPOINTS[-1], seed, task.structure, task.default, **options)

    def costs(configs: NDArray) -> NDArray[np.float64]:
        told.append(problem.evaluate_parts(configs))
        return told[-1].values

    values = np.concatenate([values for _, values in play(strategy, costs, BATCH, lambda _: told[-1].parts)])
    found = {f"gain_{n}": 100 * (values[0] / values[:n].min() - 1) for n in CHECKPOINTS}
    return found | {"r2": strategy.diagnostics().get("score/unmeasured parts", np.nan)}


def make(repeats: int) -> None:
    """Make the runs that the table lacks, and write it after each task."""
    rows = pd.read_csv(FILE).to_dict("records") if FILE.exists() else []
    known = {(row["problem"], row["seed"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for name in TASKS:
            problem, file = bbo_suite.problem(name), trained(name.partition("/")[0], TRAINING, True, Path(folder))
            for seed in range(repeats):
                if (name, seed) not in known:
                    for pretrained in (False, True):
                        about = {"problem": name, "seed": seed, "pretrained": pretrained}
                        rows.append(about | gains(problem, seed, file if pretrained else None))
            pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.5g")
            print(name, flush=True)


def summary(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the mean gains of each task, and their ratios to those without parts of others."""
    means = rows.groupby(["problem", by])[[f"gain_{n}" for n in CHECKPOINTS] + ["r2"]].mean().unstack(by)
    for n in CHECKPOINTS:
        own = means[f"gain_{n}"]
        for way in own.columns[1:]:
            means[f"ratio_{n}", way] = own[way] / own[own.columns[0]]
    return means


@dataclass(frozen=True)
class Way:
    """A way to use the parts of other programs.

    Attributes:
      most: of these parts that models learn from, as a multiple of the own parts so far.
      width: a factor for the standard deviation of what models do not explain.
      searches: the parts are those of a search.
    """

    most: float = np.inf
    width: float = 1.0
    searches: bool = True


WAYS = {
    "as it is": Way(),
    "fewer old parts": Way(most=1.0),
    "draws half as wide": Way(width=0.5),
    "draws twice as wide": Way(width=2.0),
    "parts of random candidates": Way(searches=False),
}


def tries(repeats: int) -> Iterator[dict[str, object]]:
    """Yield rows of runs on each training program with the parts of the others, in each way and without."""
    with tempfile.TemporaryDirectory() as folder:
        for own in TRAINING:
            others = tuple(program for program in TRAINING if program != own)
            problem = bbo_suite.problem(f"fusion/{own}")
            for name, way in {"0 without": None, **WAYS}.items():
                file = None if way is None else trained("fusion", others, way.searches, Path(folder))
                for seed in range(repeats):
                    with _used(way or Way()):
                        yield {"problem": problem.id, "seed": seed, "way": name} | gains(problem, seed, file)


def _used(way: Way) -> patch:  # type: ignore[valid-type]
    """Let `graybox` use the parts in this way."""
    beside, arrays = PartsOfOthers.beside, regressor.arrays

    def fewer(self: PartsOfOthers, features: NDArray, logs: NDArray) -> PartsOfOthers:
        kept = slice(0, int(min(len(self.logs), way.most * len(logs))))
        return beside(PartsOfOthers(self.names, self.estimate, self.features[kept], self.logs[kept]), features, logs)

    def wider(centre: NDArray, scale: NDArray, estimate: int | None, noise: float, **others: NDArray) -> object:
        return arrays(centre, scale, estimate, way.width * noise, **others)

    if way.width != 1.0:
        return patch.object(regressor, "arrays", wider)
    return patch.object(PartsOfOthers, "beside", fewer if way.most < np.inf else beside)


def main(
    repeats: int = 10,
    other_ways: bool = typer.Option(False, "--tries", help="compare other ways on the training programs"),
    tables: bool = typer.Option(False, "--tables", help="make no runs"),
) -> None:
    """Make the runs and print the table."""
    if other_ways:
        found = summary(pd.DataFrame(tries(repeats)), "way")
    else:
        if not tables:
            make(repeats)
        found = summary(pd.read_csv(FILE), "pretrained")
    for (column, way), numbers in found.items():
        print(f"{column:9} {way!s:27}", " ".join(f"{number:6.2f}" for number in numbers))
    ratios = found[[column for column in found.columns if "ratio" in column[0]]].clip(lower=1e-3)
    ratios = ratios.where(ratios < np.inf)  # at first, some tasks gain nothing without
    print(pd.DataFrame({"ratio": np.exp(np.log(ratios).mean()), "least": ratios.min()}).round(3).to_string())


if __name__ == "__main__":
    typer.run(main)
