"""What it costs to keep fusions within a layer: XTAT's premise, on every program of the catalogue.

    python results/xtat/layers.py [--budget 1000]    # layers.csv: only the programs that it lacks; layers.png

The programs carry no names of layers. So a layer is a matrix product or convolution with what follows it, up to the
next: an operation belongs to the last product on a path to it, or, where none leads to it, to its first consumer.
A fusion of two layers is forbidden in the restricted program. Both programs get the compiler's default, which knows
the restriction, and `local` from there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.hlo.opcodes import Kind
from bbo_problems.tensor_compiler.layout.arrays import Edge, FusionGraph
from bbo_problems.tensor_compiler.tasks.fusion_problem import FusionProblem
from bbo_problems.tensor_compiler.tasks.programs import names
from bbo_suite import Space
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

HERE, SEED, BATCH = Path(__file__).parent, 0, 20


def ends(graph: FusionGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the `(m,)` producers and consumers of the edges."""
    m = graph.starts[-1]
    return np.repeat(np.arange(len(graph.kind)), np.diff(graph.starts)), graph.edge[:m, Edge.CONSUMER]


def layers(graph: FusionGraph) -> NDArray[np.int64]:
    """Return the `(n,)` layer of each node, named by the product that begins it; -1 where no product is near."""
    nodes = np.arange(len(graph.kind))
    layer = np.where(graph.kind == Kind.MATRIX, nodes, -1)
    pairs = list(zip(*(side.tolist() for side in ends(graph)), strict=True))
    for producer, consumer in pairs:  # producers come before their consumers
        layer[consumer] = max(layer[consumer], layer[producer])
    first = layer < 0
    for producer, consumer in reversed(pairs):
        if first[producer] and layer[consumer] >= 0:
            layer[producer] = layer[consumer] if layer[producer] < 0 else min(layer[producer], layer[consumer])
    return layer


class WithinLayers(FusionProblem):
    """The same decisions without those that would fuse two layers."""

    def _prepare(self, path: Path) -> None:
        super()._prepare(path)
        graph = self._laid.arrays
        layer, (producers, consumers) = layers(graph), ends(graph)
        edge = graph.edge.copy()
        edge[np.flatnonzero(layer[producers] != layer[consumers]), Edge.DECISION] = -1
        self.layers = len(np.unique(layer))
        self._laid = replace(self._laid, arrays=graph._replace(edge=edge))
        self._fusion = Fusion(self._laid, self._machine)
        self.space = Space(np.full(len(self._fusion.columns), 2), names=self._name, values=lambda i: (False, True))
        self.default = self._fusion.default()


def searched(problem: FusionProblem, budget: int) -> tuple[float, float]:
    """Return the cost of the default and of the best candidate that `local` finds."""
    task = problem.task(True)
    search = start(Registry().strategy("local"), task.space, budget, SEED, task.structure, task.default)
    values = np.concatenate([v for _, v in play(search, lambda rows: problem.evaluate(rows).values, BATCH)])
    return float(values[0]), float(values.min())


def row(program: str, budget: int) -> dict[str, object]:
    """Return the row of a program: costs of both, and how much longer it runs with the restriction, in percent."""
    free, within = FusionProblem(program), WithinLayers(program)
    both = [searched(problem, budget) for problem in (free, within)]
    loss = {name: 100 * (both[1][i] / both[0][i] - 1) for i, name in enumerate(("default_loss", "best_loss"))}
    facts = {"program": program, "layers": within.layers, "decisions": len(free.space), "within": len(within.space)}
    return {**facts, "budget": budget, "free": both[0][1], "restricted": both[1][1], **loss}


def draw(table: pd.DataFrame) -> None:
    """Draw the loss of each program, the largest first."""
    ordered = table.sort_values("best_loss", ascending=False)
    figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
    ax.bar(np.arange(len(ordered)), ordered["best_loss"], width=1, color="#0072B2", label="best of a search")
    ax.plot(np.arange(len(ordered)), ordered["default_loss"], ".", ms=4, color="#D55E00", label="compiler's default")
    ax.axhline(ordered["best_loss"].mean(), color="0.3", lw=1, ls="--")
    mean, most = ordered["best_loss"].mean(), ordered.iloc[0]
    ax.set_ylabel("more run time with the restriction, %")
    ax.set_xlabel(f"{len(ordered)} programs; {most['program']} loses most")
    ax.set_title(f"Fusions only within a layer: {mean:.0f} % more run time in the mean (dashed)", loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "layers.png", dpi=90)


def main(budget: int = 1000) -> None:
    """Make the rows that are missing and draw them."""
    file = HERE / "layers.csv"
    known = pd.read_csv(file) if file.exists() else pd.DataFrame({"program": []})
    for program in sorted(set(names()) - set(known["program"])):
        made = row(program, budget)
        pd.DataFrame([made]).to_csv(file, mode="a", header=not file.exists(), index=False, float_format="%.5g")
        print(made, flush=True)
    table = pd.read_csv(file)
    print(table[["default_loss", "best_loss"]].describe().round(2).to_string())
    draw(table)


if __name__ == "__main__":
    typer.run(main)
