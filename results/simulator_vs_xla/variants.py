"""Do the simulator and XLA:TPU rank changes of a whole model alike?

    python results/simulator_vs_xla/variants.py [barriers] [layouts]

Needs the extra `tpu`. Writes `variants.csv` beside this file, the rows of the kinds that are named, or of all: over the
variants of a model, Spearman's correlation of the simulator's run time with the sum of XLA:TPU's estimates of kernels.
Models without loops only, whose estimates can be added up.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bbo_problems.tensor_compiler.calibration.compiler import ENVIRONMENT, TOPOLOGIES

os.environ |= ENVIRONMENT

import barriers
import jax
import layouts
import numpy as np
import pandas as pd
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
from rich.progress import track

from bbo_problems.tensor_compiler.calibration.kernels import kernels
from bbo_problems.tensor_compiler.calibration.programs import program
from bbo_problems.tensor_compiler.models.lower import hlo_text
from bbo_suite import Problem
from bbo_suite.registry import Registry

TABLE, MACHINE, VARIANTS = Path(__file__).with_name("variants.csv"), "v5e", 12
KINDS = {"barriers": barriers.variants, "layouts": layouts.variants}
MODELS = {
    "barriers": ("dlrm-infer", "bert-infer", "gpt2-prefill"),
    "layouts": ("dlrm-infer", "bert-infer", "gpt2-prefill", "translate-decode", "resnet-infer"),
}


def simulator(family: str, function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Problem, str]:
    """Return a problem on a function, and the HLO text that it is on."""
    text = hlo_text((function, tuple(arguments)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "variant.hlo"
        path.write_text(text)
        return Registry().load(f"{family}:{path}@{MACHINE}"), text


def xla_cycles(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """Return the sum of XLA:TPU's estimates of the kernels."""
    topology = topologies.get_topology_desc(platform="tpu", topology_name=f"{MACHINE}:{TOPOLOGIES[MACHINE]}")
    sharding = SingleDeviceSharding(topology.devices[0])
    placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in arguments]
    text = jax.jit(function).lower(*placed).compile().as_text()
    jax.clear_caches()
    return float(sum(kernel.cycles for kernel in kernels(text)))


def study(kind: str, model: str) -> dict[str, Any]:
    """Return the correlation over the variants of a model, and twice the dearest over the cheapest."""
    function, arguments = program(model)
    leaves, tree = jax.tree.flatten(arguments)
    made = KINDS[kind](
        lambda *flat: function(*jax.tree.unflatten(tree, flat)), leaves, simulator, np.random.default_rng(0)
    )
    pairs = [(seconds, xla_cycles(variant, leaves)) for seconds, variant in islice(made, VARIANTS)]
    here, there = (pd.Series(side) for side in zip(*pairs, strict=True))
    spreads = {"spread here": here.max() / here.min(), "spread at XLA:TPU": there.max() / there.min()}
    return {"kind": kind, "model": model, "spearman": here.corr(there, method="spearman")} | spreads


def keep(row: dict[str, Any]) -> None:
    """Write a row into the table, in the place of the one that was there."""
    old = pd.read_csv(TABLE).set_index(["kind", "model"]) if TABLE.exists() else pd.DataFrame()
    new = pd.DataFrame([row]).set_index(["kind", "model"])
    pd.concat([old.drop(new.index, errors="ignore"), new]).to_csv(TABLE, float_format="%.3f")


def main() -> None:
    """Study every model of the kinds that are named, and keep each as it is done."""
    todo = [(kind, model) for kind in sys.argv[1:] or KINDS for model in MODELS[kind]]
    for kind, model in track(todo):
        keep(study(kind, model))
    print(pd.read_csv(TABLE).to_string(index=False))


if __name__ == "__main__":
    main()
