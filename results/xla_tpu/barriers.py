"""Does a barrier do what `best` says of a prevented fusion: is it prevented on XLA:TPU, and what does it cost there?

    pip install ".[tpu]"
    python results/xla_tpu/barriers.py    # barriers.csv; some minutes of one core

Each value of two models gets an optimization_barrier, alone. The simulated compiler gets the same module, and also the
module without a barrier and a candidate that does not fuse the value.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bbo_suite
from bbo_problems.tensor_compiler.calibration.compiler import ENVIRONMENT, device_of
from bbo_problems.tensor_compiler.calibration.estimates import estimates
from bbo_problems.tensor_compiler.hardware.machine import one_core
from bbo_problems.tensor_compiler.hlo.reader import as_hlo, read_text
from bbo_problems.tensor_compiler.hlo.sources import sources

HERE = Path(__file__).parent
MACHINE = "v5e"
Array = jax.Array
Value = Callable[[str, Callable[[], Array]], Array]
"""Computes a value under its name."""


def encoder(value: Value, x: Array, wq: Array, wk: Array, wv: Array, wo: Array, w1: Array, w2: Array) -> Array:
    """A layer of a transformer: attention and two products with GELU, each with a normalisation."""
    q, k, v = (value(n, partial(jnp.einsum, "bsd,dhk->bhsk", x, w)) for n, w in (("q", wq), ("k", wk), ("v", wv)))
    scores = value("scores", lambda: jnp.einsum("bhsk,bhtk->bhst", q, k) / 8)
    powers = value("powers", lambda: jnp.exp(scores - scores.max(axis=-1, keepdims=True)))
    weights = value("weights", lambda: powers / powers.sum(axis=-1, keepdims=True))
    mixed = value("mixed", lambda: jnp.einsum("bhst,bhtk->bshk", weights, v))
    summed = value("summed", lambda: x + jnp.einsum("bshk,hkd->bsd", mixed, wo))
    normal = value("normal", lambda: _normalised(summed))
    hidden = value("hidden", lambda: jnp.einsum("bsd,df->bsf", normal, w1))
    active = value("active", lambda: jax.nn.gelu(hidden))
    result = value("result", lambda: normal + jnp.einsum("bsf,fd->bsd", active, w2))
    return value("last", lambda: _normalised(result))


def _normalised(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def residual(value: Value, x: Array, *weights: Array) -> Array:
    """A block of a ResNet at inference: three convolutions, each scaled and cut off, and a sum."""
    y = x
    for i, w in enumerate(weights, 1):
        y = value(f"conv{i}", partial(_convolution, y, w))
        y = value(f"scaled{i}", lambda y=y: y * 0.9 + 0.1)
        y = value(f"relu{i}", partial(jax.nn.relu, y)) if i < len(weights) else y
    summed = value("summed", lambda: x + y)
    relu = value("relu", lambda: jax.nn.relu(summed))
    return value("last", lambda: relu.mean(axis=(1, 2)))


def _convolution(x: Array, w: Array) -> Array:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _shapes(*sizes: tuple[int, ...]) -> list[Any]:
    return [jax.ShapeDtypeStruct(size, jnp.bfloat16) for size in sizes]


MODELS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "encoder": (encoder, _shapes((8, 512, 768), *[(768, 12, 64)] * 3, (12, 64, 768), (768, 3072), (3072, 768))),
    "residual": (residual, _shapes((32, 56, 56, 256), (1, 1, 256, 64), (3, 3, 64, 64), (1, 1, 64, 256))),
}


def lowered(model: str, cut: str = "") -> tuple[Any, list[str]]:
    """Return a model as JAX lowers it for one core, with a barrier behind a value, and the names of its values."""
    function, shapes = MODELS[model]
    names: list[str] = []

    def value(name: str, compute: Callable[[], Array]) -> Array:
        names.append(name)
        with jax.named_scope(f"value_{name}"):
            found = compute()
        return jax.lax.optimization_barrier(found) if name == cut else found

    sharding = device_of(MACHINE)
    placed = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding) for each in shapes]
    return jax.jit(lambda *arguments: function(value, *arguments)).lower(*placed), names


def together(text: str) -> list[set[str]]:
    """Return the names of values that are computed by each kernel of a compiled module."""
    bodies = dict(re.findall(r"^(?:ENTRY )?%?([\w.-]+) \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    entry = re.search(r"^ENTRY %?([\w.-]+)", text, re.MULTILINE)
    assert entry

    def values(body: str) -> set[str]:
        inside = re.findall(r"(?:calls|to_apply)=%?([\w.-]+)", body)
        return set(re.findall(r"value_(\w+)/", body)).union(*(values(bodies[name]) for name in inside))

    return [values(bodies[name]) for name in re.findall(r" fusion\(.*?calls=%?([\w.-]+)", bodies[entry[1]])]


@contextmanager
def simulated(model: str, cut: str = "") -> Iterator[tuple[bbo_suite.Problem, dict[str, str]]]:
    """Yield the fusion task of a model, and where its operations come from."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{model}.mlir")
        path.write_text(lowered(model, cut)[0].as_text(debug_info=True))
        yield bbo_suite.problem(f"fusion:{path}@{MACHINE}"), sources(*as_hlo(read_text(path), str(path)))


def default_cost(model: str, cut: str = "") -> float:
    """Return the simulated cost of a model with a barrier behind a value."""
    with simulated(model, cut) as (problem, _):
        return float(bbo_suite.evaluate(problem, problem.default_row()[None]).values[0])


def not_fused(model: str) -> Iterator[tuple[str, float]]:
    """Yield values with the simulated cost of the candidate in which none of their fusions happens."""
    with simulated(model) as (problem, known):
        default, names = problem.default_row(), [problem.space.name(i) for i in range(len(problem.space))]
        owners = [(_value(known, a), _value(known, b)) for a, b in (_ends(name) for name in names)]
        for name in dict.fromkeys(first for first, second in owners if first != second):
            row = np.where([first == name != second for first, second in owners], 0, default).astype(default.dtype)
            yield name, float(bbo_suite.evaluate(problem, row[None]).values[0])


def _ends(name: str) -> tuple[str, str]:
    first, _, second = name.removeprefix("fuse ").partition(" -> ")
    return first.partition("~")[0], second.partition("~")[0]


def _value(known: dict[str, str], operation: str) -> str:
    found = re.search(r"value_(\w+)/", known.get(operation, ""))
    return found[1] if found else ""


def compiled(model: str, cut: str = "") -> tuple[list[set[str]], float]:
    """Return which values each kernel of XLA:TPU computes, and the cycles that it estimates."""
    text = lowered(model, cut)[0].compile().as_text()
    return together(text), estimates(text, one_core(MACHINE), 0.0).cycles


def main() -> None:
    """Write the table."""
    os.environ.update(ENVIRONMENT)
    with (HERE / "barriers.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["model", "value", "fused", "fused with a barrier", "XLA:TPU", "simulated", "not fused"])
        for model in MODELS:
            names, cuts, before = lowered(model)[1], dict(not_fused(model)), default_cost(model)
            kernels, cycles = compiled(model)
            for number, name in enumerate(names[:-1], 1):
                parted, found = compiled(model, name)
                later = set(names[number:])
                shared = [any(name in own and own & later for own in each) for each in (kernels, parted)]
                ratios = found / cycles, default_cost(model, name) / before, cuts.get(name, np.nan) / before
                table.writerow([model, name, *shared, *(f"{ratio:.3f}" for ratio in ratios)])
                file.flush()


if __name__ == "__main__":
    main()
