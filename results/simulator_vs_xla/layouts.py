"""Do the simulator and XLA:TPU rank layouts of a whole model alike, when both start at the same module?

    pip install ".[tpu]"
    python results/simulator_vs_xla/layouts.py [MODEL ...]    # layouts.csv

In each variant a random share of the products and convolutions leaves its result in one of the layouts that the
simulator offers. XLA:TPU gets a layout constraint on these values of the module after XLA's own passes; the simulator
gets the choices with that result that cost least. Models without loops.
"""

from __future__ import annotations

import csv
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bbo_suite
from bbo_problems.tensor_compiler.calibration.compiler import ENVIRONMENT, device_of

os.environ |= ENVIRONMENT

from bbo_problems.tensor_compiler.calibration.programs import program
from bbo_problems.tensor_compiler.calibration.whole import theirs
from bbo_problems.tensor_compiler.hlo import parser, xla
from bbo_problems.tensor_compiler.models.lower import hlo_text

TABLE, MACHINE, VARIANTS = Path(__file__).with_name("layouts.csv"), "v5e", 12
MODELS = ("dlrm-infer", "translate-decode", "bert-infer", "gpt2-prefill", "resnet-infer")
PRODUCTS = ("dot", "convolution")
Order = tuple[int, ...]
"""The dimensions of an array as they lie in memory, the fastest first."""


class Product(NamedTuple):
    """A product or convolution: its name, its column, and the choices that leave an order of the result."""

    name: str
    column: int
    orders: dict[Order, list[int]]


def products(text: str, problem: bbo_suite.Problem) -> list[Product]:
    """Return the products of a module whose results can lie in several orders."""
    module = parser.parse_hlo(text, "module")
    entry = module.computations[module.entry].instructions
    columns = {problem.space.name(column): column for column in range(len(problem.space))}
    found = []
    for one in entry:
        if one.opcode in PRODUCTS and one.name in columns:
            orders: dict[Order, list[int]] = {}
            for index, choice in enumerate(problem.space.values(columns[one.name])):
                minor = [int(d) for d in re.findall(r"\d+", choice.partition(" ")[0])]
                rest = [d for d in reversed(range(len(one.shape.dims))) if d not in minor]
                orders.setdefault((*minor, *rest), []).append(index)
            found.append(Product(one.name, columns[one.name], orders))
    return [product for product in found if len(product.orders) > 1]


def here(problem: bbo_suite.Problem, told: Mapping[int, list[int]]) -> float:
    """Return the seconds when some columns take one of some choices each, chosen column by column."""
    row = problem.default_row()
    for column, choices in told.items():
        rows = np.repeat(row[None], len(choices), axis=0)
        rows[:, column] = choices
        row = rows[problem.evaluate(rows).values.argmin()]
    return float(problem.evaluate(row[None]).values[0])


def there(text: str, told: Mapping[str, Order]) -> tuple[float, float]:
    """Return the seconds of XLA:TPU's schedule when some products leave their results in an order.

    The second number adds what memory needs for copies in the background.
    """
    from jax.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir

    (device,) = device_of(MACHINE).device_set
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(xla.stablehlo(text))
        named = {str(one.location).split('"')[1]: one for one in _operations(module) if '"' in str(one.location)}
        for name, order in told.items():
            _constrain(named[name], order)
        done = device.client.compile(module, _jax.DeviceList((device,)), _jax.CompileOptions())
    side = theirs(str(done.hlo_modules()[0].to_string()), MACHINE)
    return side["seconds"].sum(), side["seconds"].sum() + side["fetching"].sum()


def _operations(module: Any) -> Iterator[Any]:  # noqa: ANN401 - a module of MLIR
    for function in module.body.operations:
        if "main" in str(function.attributes["sym_name"]):
            yield from function.regions[0].blocks[0].operations


def _constrain(operation: Any, order: Order) -> None:  # noqa: ANN401 - of MLIR
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    value = operation.results[0]
    users = list(value.uses)
    with ir.InsertionPoint.after(operation):
        told = mlir.custom_call(
            "LayoutConstraint",
            result_types=[value.type],
            operands=[value],
            api_version=1,
            operand_layouts=[list(range(len(order)))],
            result_layouts=[list(order)],
        )
    for use in users:
        use.owner.operands[use.operand_number] = told.results[0]


def study(model: str) -> None:
    """Add a row for each variant of a model to the table."""
    text = xla.simplified(hlo_text(program(model)))[0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{model}.hlo")
        file.write_text(text)
        problem = bbo_suite.problem(f"layout:{file}@{MACHINE}")
        found, rng = products(text, problem), np.random.default_rng(0)
        _add(model, 0, here(problem, {}), *there(text, {}), "")
        for number in range(1, VARIANTS + 1):
            chosen = rng.choice(len(found), rng.integers(1, len(found) + 1), replace=False)
            told = [(p, list(p.orders)[rng.integers(len(p.orders))]) for p in (found[i] for i in sorted(chosen))]
            ours = here(problem, {p.column: p.orders[order] for p, order in told})
            names = " ".join(f"{p.name}:{''.join(map(str, order))}" for p, order in told)
            _add(model, number, ours, *there(text, {p.name: order for p, order in told}), names)


def _add(*row: Any) -> None:  # noqa: ANN401 - cells
    new = not TABLE.exists()
    with TABLE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["model", "variant", "ours", "xla", "xla with copies", "orders"])
        writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row])


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        study(name)
