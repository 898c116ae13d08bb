"""Compiles what the policy found to the end, runs it on random inputs, and compares with XLA's own result.

    python results/xla_passes/verify.py policies-operations.csv PROGRAM... [--scale 0.0005]

Tables of 100,000 rows or more are cut to 4,096, so that those of DLRM fit into memory; random indices are below 8.
`--scale` is that of random floats: take a smaller one where results are NaN.

Prints for each program the largest difference of an output, relative to the largest value of that output, and the same
for XLA's default against the program without any optional pass: the difference that rounding to bfloat16 makes anyway.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import typer

from bbo_problems.tensor_compiler.hlo.reader import read_hlo_text
from bbo_problems.xla_passes import compiler
from bbo_problems.xla_passes.actions import LOWERINGS, PASSES, PIPELINE, PREPARATION
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import Optimiser, to_lower

HERE = Path(__file__).parent
_PARAMETER = re.compile(r"^  (?:ROOT )?\S+ = (\w+)\[([\d,]*)\]\S* parameter\((\d+)\)", re.MULTILINE)
_LARGE = re.compile(r"\[\d{6,},")
_BEHIND = ",".join((*PASSES, *LOWERINGS, *PREPARATION, "tree_reduction_rewriter"))


def inputs(text: str, scale: float) -> list[Any]:
    """Return random inputs: positive floats of that scale, and integers below 8."""
    rng = np.random.default_rng(0)
    made = {}
    for kind, sizes, number in _PARAMETER.findall(text[text.index("\nENTRY") :]):
        shape = tuple(int(size) for size in sizes.split(",") if size)
        values = (
            rng.integers(0, 2 if kind == "pred" else 8, shape) if kind[0] in "psu" else abs(rng.normal(0, scale, shape))
        )
        names = {"pred": "bool", "bf16": "bfloat16", "f": "float", "s": "int", "u": "uint"}
        made[int(number)] = jax.numpy.asarray(values, names.get(kind) or names[kind[0]] + kind[1:])
    return [made[i] for i in range(len(made))]


def computed(text: str, given: list[Any]) -> list[np.ndarray]:
    """Return the outputs of a lowered module: it only goes through the stages after the count."""
    options = compiler._jax.CompileOptions()
    options.executable_build_options.debug_options.xla_disable_hlo_passes = _BEHIND
    device = jax.devices("cpu")[0]
    devices = compiler._jax.DeviceList((device,))
    program = device.client.compile_and_load(compiler._stablehlo(text), devices, options)
    return [np.asarray(result, np.float64) for result in program.execute([jax.device_put(x) for x in given])]


def difference(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Return the largest difference of an output, relative to its largest value."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a.size]
    return max(float(abs(a - b).max() / max(abs(b).max(), 1e-30)) for a, b in pairs)


def main(table: Path, programs: list[str], scale: float = 0.05) -> None:
    """Compare the results of the programs that are named."""
    found = pd.read_csv(table).set_index("program")["policy's passes"]
    for program in programs:
        made = Optimiser(_LARGE.sub("[4096,", read_hlo_text(named(program))))
        given = inputs(made._states.module(()), scale)

        def result(passes: tuple[str, ...], made: Optimiser = made, given: list[Any] = given) -> list[np.ndarray]:
            return computed(made._states.module((*passes, *to_lower(passes))), given)

        default, plain = result((PIPELINE,)), result(())
        ours = result(tuple(found[program].split()))
        finite = all(np.isfinite(x).all() for x in ours)
        typer.echo(f"{program},{difference(ours, default):.2g},{difference(default, plain):.2g},{finite}")


if __name__ == "__main__":
    typer.run(main)
