"""Makes the tables of this study: `python results/models/learned/study.py tables|ablation FOLDER`, then `... figure`.

FOLDER holds train.npz, test.npz and model.npz, which the commands in README.md make.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import jax
import numpy as np
import pandas as pd

from bbo_problems.learned import dataset
from bbo_problems.learned.dataset import Kernels
from bbo_problems.learned.generate import HELD_OUT, VALIDATION, generate
from bbo_problems.learned.model import load
from bbo_problems.learned.network import REDUCTIONS
from bbo_problems.learned.report import boosted, check_unseen, errors, network_of
from bbo_problems.learned.training import GRAPH, RELATIVE, Recipe, scored, train

HERE = Path(__file__).parent
SEED = {
    "ConvDRAW": (9.7, None, 17.5, 21.6),
    "WaveRNN": (1.5, 2.8, 2.9, 322.9),
    "NMT": (3.1, 13.1, 9.8, 26.3),
    "SSD": (3.9, 7.3, 11.4, 55.9),
    "RNN": (8.0, 10.2, 1.9, 20.5),
    "ResNet v1": (2.8, 4.6, 3.1, 11.5),
    "ResNet v2": (2.7, 5.4, 2.4, 13.3),
    "Translate": (3.4, 7.1, 2.1, 27.2),
}
"""Kaufman et al. 2021, on real TPUs, in percent: tile APE learned, analytical; fusion MAPE learned, analytical."""
LONG = 5e-6
"""Seconds of the kernels that Kaufman et al. report on."""
ABLATION_KERNELS, ABLATION_EPOCHS, ABLATION_SEEDS = 8000, 10, 3


def main(what: str, folder: Path = HERE) -> None:
    """Write one of the tables, or the figure of the first."""
    if what == "figure":
        return figure(pd.read_csv(HERE / "tables.csv"))
    rows: list[dict[str, object]] = []
    for row in {"tables": tables, "ablation": ablation}[what](folder):
        rows.append(row)
        pd.DataFrame(rows).to_csv(HERE / f"{what}.csv", index=False, float_format="%.3f")
        print(row, flush=True)


def figure(made: pd.DataFrame) -> None:
    """Draw the errors of the models by program, one panel for each kind of decision."""
    import matplotlib.pyplot as plt

    titles = {"graph": "Kernel times: MAPE", "tiles": "Chosen tiles: APE", "flags": "Chosen flags: APE"}
    drawn, panels = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for panel, (kind, title) in zip(panels, titles.items(), strict=True):
        own = made[made.kind == kind].reset_index()
        for which, mark, colour in (("analytical", "s", "0.6"), ("boosting", "^", "C1"), ("learned", "o", "C0")):
            label = {"analytical": "analytical model", "boosting": "boosted trees", "learned": "GraphSAGE"}[which]
            panel.plot(own[which], own.index, mark, color=colour, label=label, markersize=7, clip_on=False)
        panel.set(title=title, xlabel="error in %; less is better", xlim=(0, None))
        panel.grid(alpha=0.3)
    panels[0].set_yticks(range(len(own)), own.program)
    panels[0].invert_yaxis()
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    drawn.savefig(HERE / "errors.png", dpi=110)


def tables(folder: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each program and kind of decision: the errors of all models."""
    training, test = dataset.load(folder / "train.npz"), dataset.load(folder / "test.npz")
    training = training.without(test)
    model = load((folder / "model.npz").read_bytes(), "model.npz")
    for title, name in HELD_OUT.items():
        every = generate([name], "v5e", 10**6, 10**6, np.random.default_rng(0), lambda *_: None, only_default=True)
        check_unseen(model, every)
        own = test.of({name})
        for kind, data in (("graph", own), ("long", _long(own)), ("tiles", every), ("flags", every)):
            told = "graph" if kind == "long" else kind
            predicted = {
                "learned": scored(network_of(model, told), told, data),
                "boosting": boosted(training, told, data),
                "analytical": np.log(data.settings(told).estimates),
            }
            found = {which: errors(scores, told, data)[name] for which, scores in predicted.items()}
            if kind in ("tiles", "flags"):
                found["compiler's choice"] = _chosen(data, kind)
            first = {"tiles": 0, "graph": 2}.get(kind)
            if first is not None:
                found |= dict(zip(("paper: learned", "paper: analytical"), SEED[title][first:], strict=False))
            yield {"kind": kind, "program": title, "stand-in": name, "kernels": len(data), **found}


def _long(data: Kernels) -> Kernels:
    return data.take(np.flatnonzero(data.seconds >= LONG))


def _chosen(data: Kernels, kind: str) -> float:
    """Return the absolute percentage error of the settings that the compiler chose."""
    own = data.settings(kind)
    useful = np.flatnonzero(np.diff(own.starts) > 1)
    least = np.array([own.seconds[own.starts[k] : own.starts[k + 1]].min() for k in useful])
    return float(100 * (data.seconds[useful] - least).sum() / least.sum())


def ablation(folder: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each variant of the networks: errors on the validation programs, less data and fewer steps."""
    every = dataset.load(folder / "train.npz")
    test = every.of(set(VALIDATION))
    training = every.of(set(every.programs) - set(VALIDATION)).without(test)
    few = np.sort(np.random.default_rng(0).permutation(len(training))[:ABLATION_KERNELS])
    training = training.take(few)
    variants = [(RELATIVE, loss, "mean", "") for loss in ("log_mse", "rank")]
    variants += [(GRAPH, "log_mse", reduction, "") for reduction in REDUCTIONS]
    variants += [(RELATIVE, "rank", reduction, "") for reduction in REDUCTIONS if reduction != "mean"]
    variants += [
        (recipe, recipe.loss, "mean", hidden) for recipe in (GRAPH, RELATIVE) for hidden in ("graph", "features")
    ]
    for seed, (recipe, loss, reduction, hidden) in product(range(ABLATION_SEEDS), variants):
        seen = {"see_graph": hidden != "graph", "see_features": hidden != "features"}
        own = replace(recipe, loss=loss, reduction=reduction, epochs=ABLATION_EPOCHS, **seen)
        yield from _trained(own, training, test, seed)


def _trained(recipe: Recipe, training: Kernels, test: Kernels, seed: int) -> Iterator[dict[str, object]]:
    network = train(training, recipe, np.random.default_rng(seed), lambda *_: None)
    graphs = test.graphs
    shown = graphs if recipe.see_graph else replace(graphs, opcodes=0 * graphs.opcodes, nodes=0 * graphs.nodes)
    for kind in recipe.kinds:
        found = errors(scored(network, kind, replace(test, graphs=shown)), kind, test)
        row = {"kind": kind, "loss": recipe.loss, "reduction": recipe.reduction, "graph": recipe.see_graph}
        row |= {"features": recipe.see_features, "seed": seed}
        yield row | {"error": np.mean([*found.values()]), "worst": max(found.values())}
    jax.clear_caches()  # compiled code of many shapes would use up the memory maps that a process may have


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
