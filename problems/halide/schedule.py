"""Writes a schedule as Python: the lines that the child runs, and that a user pastes after the algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .stages import INLINE, ROOT, ROW, SLIDE, TILE, Pipeline, Stage

Settings = Mapping[str, Any]
"""The value of each parameter by name, `stage.what`."""


def source(pipeline: Pipeline, settings: Settings) -> str:
    """Return the schedule as Python, one line per stage.

    Settings without effect, such as the vector width of an inlined stage, are left out.
    """
    own = {stage.name: _own(stage, settings) for stage in pipeline.stages}
    lines = [*_output(pipeline.output, own[pipeline.output.name])]
    levels = _levels(pipeline.output, own[pipeline.output.name])
    for stage in pipeline.stages[1:]:
        lines += _stage(stage, own[stage.name], levels)
    return "\n".join(lines)


def _own(stage: Stage, settings: Settings) -> dict[str, Any]:
    start = f"{stage.name}."
    return {name.removeprefix(start): value for name, value in settings.items() if name.startswith(start)}


def _output(stage: Stage, own: Settings) -> Iterator[str]:
    a, b = stage.axes[:2]
    loops = [f"{a}o", f"{b}o", f"{a}i", f"{b}i"]
    yield f"{', '.join(loops)} = (hl.Var(name) for name in {' '.join(loops)!r}.split())"
    tiles = f".tile({a}, {b}, {', '.join(loops)}, {own[f'tile_{a}']}, {own[f'tile_{b}']})"
    order = own["order"].split()
    threads = f".parallel({order[-1]})" if own.get("parallel") else ""
    yield f"{stage.name}{tiles}.reorder({', '.join(order)}){_inner(stage, own, loops[2])}{threads}"


def _levels(output: Stage, own: Settings) -> dict[str, str]:
    """Return, for each place, the calls that compute a stage there."""
    tile = next(loop for loop in own["order"].split() if loop.endswith("o"))
    rows = f"compute_at({output.name}, {output.axes[1]}i)"
    at_tile = f"({output.name}, {tile})"
    return {
        ROOT: ".compute_root()",
        TILE: f".compute_at{at_tile}",
        ROW: f".{rows}",
        SLIDE: f".store_at{at_tile}.{rows}",
    }


def _stage(stage: Stage, own: Settings, levels: Mapping[str, str]) -> Iterator[str]:
    if own["place"] == INLINE:
        return
    storage = own.get("storage", stage.storage[0] if stage.storage else "")
    stored = f".reorder_storage({storage.replace(' ', ', ')})" if storage and storage != stage.storage[0] else ""
    threads = f".parallel({stage.axes[-1]})" if own.get("parallel") and own["place"] == ROOT else ""
    yield f"{stage.name}{levels[own['place']]}{stored}{_inner(stage, own, stage.axes[0], stage.axes)}{threads}"
    if stage.has_update:
        order = own["order"].replace(" ", ", ")
        yield f"{stage.name}.update().reorder({order}){_inner(stage, own, stage.axes[0])}{threads}"


def _inner(stage: Stage, own: Settings, first: str, among: tuple[str, ...] = ()) -> str:
    """Return the calls that vectorise and unroll the innermost loops; only loops in `among`, if given."""
    calls = f".vectorize({first}, {own['vector']})" if own["vector"] > 1 else ""
    for loop in stage.unrolled:
        if own[f"unroll_{loop}"] > 1 and (not among or loop in among):
            calls += f".unroll({loop}, {own[f'unroll_{loop}']})"
    return calls
