"""How well models predict the XLA:TPU compiler's estimates: `python results/models/learned/xla_tpu.py DATA [try]`.

DATA is made by `python -m bbo_problems.learned data-xla-tpu`. Writes xla_tpu.csv; with `figure` instead of DATA, draws
it. With `try`, prints the errors on validation programs instead, on which the design was chosen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import kendalltau

from bbo_problems.learned import dataset
from bbo_problems.learned.dataset import Kernels
from bbo_problems.learned.kernels import OPCODES
from bbo_problems.learned.report import boosted
from bbo_problems.learned.training import GRAPH, Recipe, scored, train
from bbo_problems.learned.xla_tpu_programs import SIZES
from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel

HERE = Path(__file__).parent
FAMILIES = {
    "convolutional": ("resnet", "resnet_v2", "mobilenet", "unet", "convdraw"),
    "recurrent": ("nmt", "rnn", "wavernn"),
    "recommender": ("dlrm",),
}
"""Families of models that are held out as a whole."""
LONG = 5e-6
"""Seconds of the kernels that Kaufman et al. 2021 report on."""
LEAST = 10
"""A program with fewer kernels is left out of means over programs."""
NETWORKS, EPOCHS = 2, 40
LOSS = "log_mae"
FOLDS, VALIDATION = 4, 2
"""Programs are held out by their number modulo the first; the loss was chosen on those with the second."""
Logs = NDArray[np.float64]
Mask = NDArray[np.bool_]


def main(path: str, what: str = "tables") -> None:
    """Write the table, draw the figure, or print the errors on validation programs."""
    if path == "figure":
        return figure(pd.read_csv(HERE / "xla_tpu.csv"))
    data = dataset.load(Path(path))
    rows = []
    for row in tried(data) if what == "try" else tables(data):
        print({key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()}, flush=True)
        rows.append(row)
        if what == "tables":
            pd.DataFrame(rows).to_csv(HERE / "xla_tpu.csv", index=False, float_format="%.3f")


def figure(made: pd.DataFrame) -> None:
    """Draw the errors and the rank correlations of the models, a colour for each split."""
    import matplotlib.pyplot as plt

    titles = {
        "mape": "MAPE, mean over programs, in %; less is better",
        "kendall": "Kendall's tau within programs; more is better",
    }
    made = made[~made.model.str.contains("seed")]
    models = list(dict.fromkeys(made.model))
    drawn, panels = plt.subplots(1, 2, figsize=(11, 3.4), sharey=True, layout="constrained")
    for panel, (column, title) in zip(panels, titles.items(), strict=True):
        for mark, (split, own) in zip("os^D", made.groupby("split", sort=False), strict=False):
            places = [models.index(model) for model in own.model]
            panel.plot(own[column], places, mark, label=split, markersize=7, alpha=0.8)
        panel.set(xlabel=title)
        panel.grid(alpha=0.3)
    panels[0].set_yticks(range(len(models)), models)
    panels[0].invert_yaxis()
    panels[0].set_xlim(0, None)
    drawn.suptitle("Estimates of XLA:TPU, predicted for programs that no model has seen")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    drawn.savefig(HERE / "xla_tpu.png", dpi=110)


def tables(data: Kernels) -> Iterator[dict[str, object]]:
    """Yield a row for each split and model: a quarter of the programs is held out at a time, and each family."""
    quarters = [held_out(data, lambda _, number, own=fold: number % FOLDS == own) for fold in range(FOLDS)]
    yield from judged("unseen programs", data, quarters)
    for name, members in FAMILIES.items():
        yield from judged(f"{name} models", data, [held_out(data, lambda family, _, own=members: family in own)])


def tried(data: Kernels) -> Iterator[dict[str, object]]:
    """Yield a row for each model on validation programs."""
    yield from judged("validation", data, [held_out(data, lambda _, number: number % FOLDS == VALIDATION)])


def held_out(data: Kernels, chosen: Callable[[str, int], bool]) -> Mask:
    """Return which kernels are of chosen models, by family and number."""
    parsed = [name.partition("~")[::2] for name in data.programs]
    out = [family in SIZES and chosen(family, int(number)) for family, number in parsed]
    return np.array(out)[data.program]


def judged(title: str, data: Kernels, folds: list[Mask]) -> Iterator[dict[str, object]]:
    """Yield the errors of all models on the kernels of each fold, learned without them and without equal ones."""
    logs: dict[str, Logs] = {}
    seconds: dict[str, float] = {}
    for fold in folds:
        test = data.take(np.flatnonzero(fold))
        training = data.take(np.flatnonzero(~fold)).without(test)
        print(f"{title}: {len(training):,} kernels to learn from, {len(test):,} held out", file=sys.stderr, flush=True)
        for name, own, spent in predictions(training, test):
            logs.setdefault(name, np.full(len(data), np.nan))[fold] = own
            seconds[name] = seconds.get(name, 0.0) + spent
    every = np.flatnonzero(np.any(folds, axis=0))
    for name, own in logs.items():
        found = errors(own[every], data.take(every))
        yield {"split": title, "model": name, "kernels": len(every)} | found | {"cpu seconds": seconds[name]}


def predictions(training: Kernels, test: Kernels) -> Iterator[tuple[str, Logs, float]]:
    """Yield each model's name, the logs of the seconds that it predicts, and the processor time of its training."""
    started = time.process_time()
    yield "hardware model", np.log(test.estimates), 0.0
    yield "fitted roofline", roofline(training, test), time.process_time() - started
    started = time.process_time()
    trees = boosted(training, "graph", test, "absolute_error")
    yield "boosted trees", trees, time.process_time() - started
    networks = []
    for seed in range(NETWORKS):
        started = time.process_time()
        recipe = Recipe(GRAPH.kinds, LOSS, GRAPH.reduction, EPOCHS)
        network = train(training, recipe, np.random.default_rng(seed), lambda *_: None)
        networks.append(scored(network, "graph", test))
        yield f"network, seed {seed}", networks[-1], time.process_time() - started
    yield f"{NETWORKS} networks", np.mean(networks, axis=0), 0.0
    yield f"{NETWORKS} networks and trees", (np.mean(networks, axis=0) + trees) / 2, 0.0


def errors(logs: Logs, test: Kernels) -> dict[str, float]:
    """Return the errors in percent, and Kendall's rank correlation, over programs and over all kernels."""
    wrong = 100 * np.abs(np.exp(logs) / test.seconds - 1)
    own = [np.flatnonzero(test.program == number) for number in np.unique(test.program)]
    own = [kernels for kernels in own if len(kernels) >= LEAST]
    by_program = np.array([wrong[kernels].mean() for kernels in own])
    taus = [kendalltau(logs[kernels], test.seconds[kernels])[0] for kernels in own]
    long = test.seconds >= LONG
    return {
        "programs": len(own),
        "mape": float(by_program.mean()),
        "median program": float(np.median(by_program)),
        "worst program": float(by_program.max()),
        "median kernel": float(np.median(wrong)),
        "kendall": float(np.mean(taus)),
        "kendall of all": float(kendalltau(logs, test.seconds)[0]),
        "mape of long kernels": float(wrong[long].mean()) if long.any() else np.nan,
    }


def roofline(training: Kernels, test: Kernels) -> Logs:
    """Return what a launch and the slowest of memory, matrix unit and vector unit take, fitted for each kind."""
    kinds, logs = (kinds_of(training), kinds_of(test)), np.empty(len(test))
    for kind in np.unique(np.concatenate(kinds)):
        own = np.flatnonzero(kinds[0] == kind) if kind in kinds[0] else np.arange(len(training))
        work, seconds = amounts(training.rows[own]), training.seconds[own]
        start = np.log([1e-6, *(seconds.mean() / np.maximum(work.mean(axis=0), 1))])
        fitted = least_squares(lambda x, w=work, y=np.log(seconds): _time(x, w) - y, start, loss="soft_l1").x
        mine = np.flatnonzero(kinds[1] == kind)
        logs[mine] = _time(fitted, amounts(test.rows[mine]))
    return logs


def amounts(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the `(k, 3)` bytes, multiply-adds and vector operations of kernels."""
    moved = rows[:, Kernel.READ : Kernel.WORK].sum(axis=1) + rows[:, Kernel.WRITTEN]
    products = rows[:, Kernel.GROUPS : Kernel.SUMS].prod(axis=1)
    return np.column_stack([moved, products, rows[:, Kernel.WORK : Kernel.WRITTEN].sum(axis=1)])


def _time(x: NDArray[np.float64], work: NDArray[np.float64]) -> Logs:
    return np.log(np.exp(x[0]) + (np.exp(x[1:]) * work).max(axis=1))


def kinds_of(data: Kernels) -> NDArray[np.int64]:
    """Return the kind of each kernel: convolution, product, reduction, something else that computes, copy."""
    reduces = {OPCODES.index(name) for name in ("reduce", "reduce-window", "select-and-scatter")}
    graphs = data.graphs
    owner = np.repeat(np.arange(len(data)), np.diff(graphs.node_starts))
    reduced = np.bincount(owner, np.isin(graphs.opcodes, list(reduces)), len(data)) > 0
    rows = data.rows
    computes = rows[:, Kernel.WORK : Kernel.WRITTEN].sum(axis=1) > 0
    product, taps = rows[:, Kernel.GROUPS] > 0, rows[:, Kernel.TAPS] > 1
    return np.select([product & taps, product, reduced, computes], [0, 1, 2, 3], 4)


if __name__ == "__main__":
    main(*sys.argv[1:])
