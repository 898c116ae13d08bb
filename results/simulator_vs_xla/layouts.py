"""Variants of a model whose products and convolutions leave their results in other layouts, here and at XLA:TPU.

The simulator is told by a configuration of its layout problem, XLA:TPU by a layout constraint on the value. What a
product takes its operands in is left to XLA:TPU; so here it is what costs least with the results that are told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from bbo_problems.xla_tpu.marks import label, rewritten
from bbo_suite import Problem

PRODUCTS = {"dot_general": "dot", "conv_general_dilated": "convolution"}
"""Operations of JAX that are told layouts, and their names in HLO."""
Order = tuple[int, ...]
"""The dimensions of an array as they lie in memory, the slowest first."""


class Product(NamedTuple):
    """A product or convolution whose result can be told to lie in several layouts.

    Attributes:
      name: of its value in the traced program, see `marks.label`.
      column: of the layout problem.
      options: orders of the result's dimensions, each with the indices of the column that leave it so.
    """

    name: str
    column: int
    options: list[tuple[Order, list[int]]]


def variants(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    simulator: Callable[..., tuple[Problem, str]],
    rng: np.random.Generator,
) -> Iterator[tuple[float, Callable[..., Any]]]:
    """Yield variants without end: each its seconds here, and the function for XLA:TPU to compile.

    A random share of the products, another for each variant, is told one of the layouts offered for the result.
    """
    inlined = rewritten(function)
    problem, text = simulator("layout", inlined, arguments)
    found = products(problem, jax.make_jaxpr(inlined)(*arguments).eqns, text)
    while True:
        chosen = rng.choice(len(found), rng.integers(1, len(found) + 1), replace=False)
        told = [(p, *p.options[rng.integers(len(p.options))]) for p in (found[i] for i in sorted(chosen))]
        orders = {product.name: order for product, order, _ in told}
        yield seconds(problem, [(p.column, indices) for p, _, indices in told]), rewritten(function, layouts=orders)


def products(problem: Problem, operations: Sequence[JaxprEqn], text: str) -> list[Product]:
    """Return the products of a traced program without calls, each with its column of the layout problem on its HLO.

    The k-th of the trace is the k-th of the HLO by number.

    Raises:
      ValueError: they are not the same, by their number and shapes.
    """
    columns = {problem.space.name(column): column for column in range(len(problem.space))}
    seen: Counter[str] = Counter()
    labels = [(label(o, seen), o) for o in operations if not o.primitive.multiple_results]
    found = []
    for word, opcode in PRODUCTS.items():
        traced = [
            (name, operation.outvars[0].aval.shape) for name, operation in labels if operation.primitive.name == word
        ]
        lowered = re.findall(rf"^\s*(?:ROOT )?(\S+) = \w+\[([\d,]*)\]\S* {opcode}\(", text, re.MULTILINE)
        lowered.sort(key=lambda name_and_dims: (len(name_and_dims[0]), name_and_dims[0]))
        for (name, shape), (node, dims) in zip(traced, lowered, strict=True):
            if ",".join(map(str, shape)) != dims:
                raise ValueError(f"{name} has the shape {shape}, but {node} {dims}")
            if node in columns:
                found.append(Product(name, columns[node], options(problem.space.values(columns[node]), len(shape))))
    return [product for product in found if len(product.options) > 1]


def options(choices: Sequence[str], rank: int) -> list[tuple[Order, list[int]]]:
    """Return the orders of a result that choices such as `{1,0} from {1,0} {0,1}` name, and which choices do.

    A choice names the two minor dimensions, the fastest first; the others are slower, in their order.
    """
    found: dict[Order, list[int]] = {}
    for index, choice in enumerate(choices):
        minor = [int(d) for d in re.findall(r"\d+", choice.partition(" ")[0])]
        others = [d for d in range(rank) if d not in minor]
        found.setdefault((*others, *reversed(minor)), []).append(index)
    return list(found.items())


def seconds(problem: Problem, told: Sequence[tuple[int, list[int]]]) -> float:
    """Return the run time when some columns take one of some indices each, chosen column by column."""
    row = problem.default_row()
    for column, indices in told:
        rows = np.repeat(row[None], len(indices), axis=0)
        rows[:, column] = indices
        row = rows[problem.evaluate(rows).values.argmin()]
    return float(problem.evaluate(row[None]).values[0])
