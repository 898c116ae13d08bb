"""Do the simulator and XLA:TPU rank changes of a whole model alike?

    python results/simulator_vs_xla/variants.py

Needs the extra `tpu`. A variant of a model has barriers behind a fifth of its operations, chosen at random, over which
neither compiler fuses: as many in all variants, so that it is not their number that is ranked. Writes `variants.csv`
beside this file: Spearman's correlation, over the variants of a model, of the simulator's run time with the sum of
XLA:TPU's estimates of kernels. Models without loops only, whose estimates can be added up.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bbo_problems.tensor_compiler.xla_tpu.worker import ENVIRONMENT, TOPOLOGIES

os.environ |= ENVIRONMENT

import jax
import numpy as np
import pandas as pd
from jax.experimental import topologies
from jax.extend.core import ClosedJaxpr, Literal
from jax.sharding import SingleDeviceSharding
from rich.progress import track

import bbo_suite
from bbo_problems.tensor_compiler.models.lower import hlo_text
from bbo_problems.tensor_compiler.xla_tpu.catalogue import program
from bbo_problems.tensor_compiler.xla_tpu.kernels import kernels

HERE, MACHINE, VARIANTS, SHARE = Path(__file__).parent, "v5e", 12, 0.2
MODELS = ("dlrm-infer", "bert-infer", "gpt2-prefill")


def with_barriers(traced: ClosedJaxpr, share: float, rng: np.random.Generator) -> Callable[..., Any]:
    """Return the function of a traced program with barriers behind a share of its operations."""
    chosen: dict[int, bool] = {}

    def run(jaxpr: Any, constants: list[Any], arguments: list[Any], place: tuple[int, ...]) -> list[Any]:  # noqa: ANN401
        """Evaluate a program operation by operation; `place` tells the calls that lead to it."""
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
        for i, equation in enumerate(jaxpr.eqns):
            taken = [v.val if isinstance(v, Literal) else values[v] for v in equation.invars]
            if equation.primitive.name in ("jit", "pjit"):
                inner = equation.params["jaxpr"]
                made = run(inner.jaxpr, inner.consts, taken, (*place, i))
            else:
                settings = equation.primitive.get_bind_params(equation.params)
                made = equation.primitive.bind(*taken, **settings)
                made = made if equation.primitive.multiple_results else [made]
                if chosen.setdefault(hash((*place, i)), bool(rng.random() < share)):
                    made = jax.lax.optimization_barrier(made)
            values |= dict(zip(equation.outvars, made, strict=True))
        return [v.val if isinstance(v, Literal) else values[v] for v in jaxpr.outvars]

    return lambda *leaves: run(traced.jaxpr, traced.consts, list(leaves), ())


def xla_cycles(function: Callable[..., Any], arguments: list[Any]) -> float:
    """Return the sum of XLA:TPU's estimates of the kernels."""
    topology = topologies.get_topology_desc(platform="tpu", topology_name=f"{MACHINE}:{TOPOLOGIES[MACHINE]}")
    sharding = SingleDeviceSharding(topology.devices[0])
    placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in arguments]
    text = jax.jit(function).lower(*placed).compile().as_text()
    jax.clear_caches()
    return float(sum(kernel.cycles for kernel in kernels(text)))


def simulated(function: Callable[..., Any], arguments: list[Any], folder: str) -> float:
    """Return the simulator's run time under its default."""
    path = Path(folder) / "variant.hlo"
    path.write_text(hlo_text((function, arguments)))
    problem = bbo_suite.problem(f"fusion:{path}@{MACHINE}")
    bbo_suite.registry._loaded.cache_clear()  # the next variant has the same path
    return float(problem.evaluate(problem.default_row()[None]).values[0])


def study(model: str, folder: str) -> tuple[str, float, float, float]:
    """Return a model, the correlation over its variants, and twice the dearest over the cheapest."""
    function, arguments = program(model)
    leaves, tree = jax.tree.flatten(arguments)
    traced = jax.make_jaxpr(lambda *flat: function(*jax.tree.unflatten(tree, flat)))(*leaves)
    rng, pairs = np.random.default_rng(0), []
    for _ in range(VARIANTS):
        variant = with_barriers(traced, SHARE, rng)
        pairs.append((simulated(variant, leaves, folder), xla_cycles(variant, leaves)))
    ours, theirs = np.array(pairs).T
    rank = pd.Series(ours).corr(pd.Series(theirs), method="spearman")
    return model, float(rank), float(ours.max() / ours.min()), float(theirs.max() / theirs.min())


def main() -> None:
    """Study every model."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [study(model, folder) for model in track(MODELS)]
    table = pd.DataFrame(rows, columns=["model", "spearman", "spread here", "spread at XLA:TPU"])
    table.to_csv(HERE / "variants.csv", index=False, float_format="%.3f")
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
