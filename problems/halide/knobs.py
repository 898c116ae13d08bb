"""The space of a pipeline's schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space, choice, product, scale
from bbo_suite.core.constraint import Constraint
from bbo_suite.core.parameters import Parameter

from .stages import LEVELS, NATIVE, ROW, Pipeline, Stage

WIDTHS = (1, 4, 8, 16, 32)
UNROLLS = (1, 2, 4)
DEEP_UNROLLS = (1, 2, 4, 8, 16)
"""For sums, which need many independent operations."""


def parameters(pipeline: Pipeline, threads: bool) -> list[Parameter]:
    """Return the parameters of all stages, those of the output first. Names are `stage.what`."""
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
    """Return the schedules that Halide accepts: blocks divide tiles; no stage is in a deeper loop than its users."""
    known = parameters(pipeline, threads)
    places = {parameter.name: i for i, parameter in enumerate(known)}
    constraints = [*_blocks(pipeline, known, places), *_rows(pipeline, known, places), *_nested(pipeline, places)]
    return product(*known, constraints=constraints)


def _blocks(pipeline: Pipeline, known: Sequence[Parameter], places: Mapping[str, int]) -> Iterator[Constraint]:
    """Yield constraints: the vectorised and unrolled blocks of the output and exact stages divide the output's tile."""
    output = pipeline.output
    for stage in pipeline.stages:
        for axis, loop in list(zip(stage.axes, stage.unrolled, strict=False))[: 2 if stage is output else stage.exact]:
            words = [f"unroll_{loop}", *(["vector"] if axis == stage.axes[0] else [])]
            names = [f"{output.name}.tile_{axis}", *(f"{stage.name}.{word}" for word in words)]
            sizes = [np.array(known[places[name]].values) for name in names]
            yield Constraint(tuple(places[name] for name in names), _divides(sizes))


def _divides(sizes: Sequence[NDArray]) -> Callable[[NDArray], NDArray]:
    def divides(rows: NDArray) -> NDArray[np.bool_]:
        tile, *factors = (own[column] for own, column in zip(sizes, rows.T, strict=True))
        return tile % np.prod(factors, axis=0) == 0

    return divides


def _rows(pipeline: Pipeline, known: Sequence[Parameter], places: Mapping[str, int]) -> Iterator[Constraint]:
    """Yield constraints: the rows that an exact stage unrolls divide the rows that the output computes at once."""
    output = pipeline.output
    for stage in pipeline.stages[1:]:
        if stage.exact > 1:
            names = (
                f"{output.name}.unroll_{output.unrolled[1]}",
                f"{stage.name}.place",
                f"{stage.name}.unroll_{stage.unrolled[1]}",
            )
            sizes = [np.array(known[places[name]].values) for name in names]
            yield Constraint(tuple(places[name] for name in names), _rows_divide(sizes))


def _rows_divide(sizes: Sequence[NDArray]) -> Callable[[NDArray], NDArray]:
    def divide(rows: NDArray) -> NDArray[np.bool_]:
        taken, place, block = (own[column] for own, column in zip(sizes, rows.T, strict=True))
        return (place != ROW) | (taken % block == 0)

    return divide


def _nested(pipeline: Pipeline, places: Mapping[str, int]) -> Iterator[Constraint]:
    """Yield constraints: each stage's place fits those of all stages that depend on it, also through inlined ones."""
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
    """Return the default row: the settings of the stages, otherwise the first value; vectors of the machine's width."""
    defaults: dict[str, Any] = {f"{stage.name}.vector": NATIVE for stage in pipeline.stages}
    for stage in pipeline.stages:
        defaults |= {f"{stage.name}.{word}": value for word, value in stage.default.items()}
        defaults[f"{stage.name}.parallel"] = not stage.places
    rows = []
    for parameter in parameters(pipeline, threads):
        value = defaults.get(parameter.name, parameter.values[0])
        rows.append(list(parameter.values).index(width if value == NATIVE and "vector" in parameter.name else value))
    return np.array(rows)
