"""The space of a pipeline's schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space, choice, product, scale
from bbo_suite.constraint import Constraint
from bbo_suite.parameters import Parameter

from .stages import LEVELS, NATIVE, Pipeline, Stage

WIDTHS = (1, 4, 8, 16, 32)
UNROLLS = (1, 2, 4)
DEEP_UNROLLS = (1, 2, 4, 8, 16)
"""Of sums, which need many in flight."""


def parameters(pipeline: Pipeline, threads: bool) -> list[Parameter]:
    """Return the parameters of all stages, the output's first, each named `stage.what`."""
    return [parameter for stage in pipeline.stages for parameter in _parameters(pipeline, stage, threads)]


def _parameters(pipeline: Pipeline, stage: Stage, threads: bool) -> Iterator[Parameter]:
    if stage.places:
        yield choice(f"{stage.name}.place", stage.places)
    else:
        for axis, sizes in zip(stage.axes, pipeline.tiles, strict=False):
            yield scale(f"{stage.name}.tile_{axis}", sizes)
    if stage.orders:
        yield choice(f"{stage.name}.order", stage.orders)
    yield scale(f"{stage.name}.vector", WIDTHS)
    for loop in stage.unrolled:
        yield scale(f"{stage.name}.unroll_{loop}", DEEP_UNROLLS if stage.has_update else UNROLLS)
    if stage.storage:
        yield choice(f"{stage.name}.storage", stage.storage)
    if threads:
        yield choice(f"{stage.name}.parallel", (False, True))


def space(pipeline: Pipeline, threads: bool) -> Space:
    """Return the schedules that Halide takes: a stage is computed in no deeper loop than what uses it."""
    known = parameters(pipeline, threads)
    places = {parameter.name: i for i, parameter in enumerate(known)}
    return product(*known, constraints=[*_in_tile(pipeline, known, places), *_nested(pipeline, places)])


def _in_tile(pipeline: Pipeline, known: Sequence[Parameter], places: dict[str, int]) -> Iterator[Constraint]:
    """What the output has unrolled and vectorised fits its tile."""
    stage = pipeline.output
    for axis, loop in zip(stage.axes, stage.unrolled, strict=False):
        words = [f"tile_{axis}", f"unroll_{loop}", *(["vector"] if axis == stage.axes[0] else [])]
        columns = tuple(places[f"{stage.name}.{word}"] for word in words)
        sizes = [np.array(known[column].values) for column in columns]
        yield Constraint(columns, _product_fits(sizes))


def _product_fits(sizes: Sequence[NDArray]) -> Callable[[NDArray], NDArray]:
    def fits(rows: NDArray) -> NDArray[np.bool_]:
        tile, *factors = (own[column] for own, column in zip(sizes, rows.T, strict=True))
        return np.prod(factors, axis=0) <= tile

    return fits


def _nested(pipeline: Pipeline, places: dict[str, int]) -> Iterator[Constraint]:
    """Each stage's place with those of all that depend on it: looks through inlined ones."""
    above: dict[str, tuple[Stage, ...]] = {pipeline.output.name: ()}
    stages = {stage.name: stage for stage in pipeline.stages}
    for stage in pipeline.stages[1:]:
        needed = {name for c in stage.consumers for name in (c, *(s.name for s in above[c]))} - {pipeline.output.name}
        above[stage.name] = tuple(s for s in pipeline.stages if s.name in needed)
        if needed:
            chain = (*above[stage.name], stages[stage.name])
            yield Constraint(tuple(places[f"{s.name}.place"] for s in chain), _order_holds(chain, pipeline.output.name))


def _order_holds(chain: Sequence[Stage], output: str) -> Callable[[NDArray], NDArray]:
    def holds(rows: NDArray) -> NDArray[np.bool_]:
        deepest = {output: np.full(len(rows), LEVELS["row"])}
        for stage, column in zip(chain, rows.T, strict=True):
            level = np.array([LEVELS[place] for place in stage.places])[column]
            used = np.min([deepest[consumer] for consumer in stage.consumers], axis=0)
            deepest[stage.name] = np.where(level == LEVELS["inline"], used, level)
        return (level <= used) | (level == LEVELS["inline"])

    return holds


def default(pipeline: Pipeline, threads: bool, width: int) -> NDArray[np.int64]:
    """Return the default's row: what the stages say, else the first value; vectors of the machine's width."""
    told: dict[str, Any] = {f"{stage.name}.vector": NATIVE for stage in pipeline.stages}
    for stage in pipeline.stages:
        told |= {f"{stage.name}.{word}": value for word, value in stage.default.items()}
        told[f"{stage.name}.parallel"] = not stage.places
    rows = []
    for parameter in parameters(pipeline, threads):
        value = told.get(parameter.name, parameter.values[0])
        rows.append(list(parameter.values).index(width if value == NATIVE and "vector" in parameter.name else value))
    return np.array(rows)
