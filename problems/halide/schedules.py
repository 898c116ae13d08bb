"""The pipelines, and their schedules: their space, what is declared about it, and each as Python.

A pipeline has stages, places where these can be computed, and loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Space, choice, product, scale
from bbo_suite.core.constraint import Constraint
from bbo_suite.core.space import Parameter
from bbo_suite.core.task import Graph, Structure, interacting

INLINE, ROW, SLIDE, TILE, ROOT = "inline", "row", "slide", "tile", "root"
"""Where a stage is computed: inside its consumers; for each row of the output's tile; the same, but rows that are used
again are kept; for each tile; or completely, before its consumers."""
LEVELS = {ROOT: 0, TILE: 1, SLIDE: 2, ROW: 2, INLINE: 3}
"""How deep in the output's loops a place is."""
ANYWHERE = (INLINE, ROW, SLIDE, TILE, ROOT)
STORED = ANYWHERE[1:]
"""For a stage that is used at many points: if it is inlined, compilation takes minutes and the code is never fast."""
NATIVE = 0
"""In a default, stands for the vector width of the machine."""


@dataclass(frozen=True)
class Stage:
    """A function of a pipeline.

    Attributes:
      name: of the function.
      consumers: the stages that use it; empty for the output.
      places: where it may be computed; empty for the output.
      axes: its variables, the innermost first.
      orders: possible loop orders, the innermost first: of the output's tiled loops, or of another stage's update.
      unrolled: the variables that may be unrolled, also those of a reduction.
      storage: possible orders in memory, the innermost first.
      exact: number of axes, from the first, along which a block must not be larger than the output's tile, because the
        inputs have no border.
      default: settings of the default schedule that are not the first value.
    """

    name: str
    consumers: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    axes: tuple[str, ...] = ("x", "y")
    orders: tuple[str, ...] = ()
    unrolled: tuple[str, ...] = ("x",)
    storage: tuple[str, ...] = ()
    exact: int = 0
    default: dict[str, str | int] = field(default_factory=dict)

    @property
    def has_update(self) -> bool:
        """True if it is a reduction."""
        return bool(self.places and self.orders)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline.

    Attributes:
      stages: each after its consumers, so the output is the first.
      extents: of the output, the innermost axis first.
      tiles: possible tile sizes of the output's two innermost axes; they divide the extents.
    """

    stages: tuple[Stage, ...]
    extents: tuple[int, ...]
    tiles: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def output(self) -> Stage:
        """The stage without consumers."""
        return self.stages[0]


def _plane(name: str, **default: str | int) -> Stage:
    """Return an output over x and y."""
    return Stage(name, orders=("xi yi xo yo", "xi yi yo xo"), unrolled=("xi", "yi"), default=default)


def _harris() -> tuple[Stage, ...]:
    products, kept = ("ixx", "iyy", "ixy"), (INLINE, TILE, ROOT)
    return (
        _plane("corner", tile_x=768, tile_y=32),
        *(Stage(name, ("corner",), (INLINE, ROW, TILE, ROOT)) for name in ("sxx", "syy", "sxy")),
        *(Stage(name, (total,), kept) for name, total in zip(products, ("sxx", "syy", "sxy"), strict=True)),
        Stage("ix", ("ixx", "ixy"), ANYWHERE, default={"place": TILE}),
        Stage("iy", ("iyy", "ixy"), ANYWHERE, default={"place": TILE}),
        Stage("gray", ("ix", "iy"), STORED, default={"place": TILE}),
    )


_COLOURS = ("xi yi c xo yo", "xi c yi xo yo", "xi yi xo yo c", "xi yi c yo xo")
_CHANNELS = ("ci xi co xo y", "ci xi xo co y", "ci xi y xo co", "xi ci co xo y")
_SUMS = ("c x y k.x k.y k.z", "c k.x x y k.y k.z", "c x k.x k.y k.z y", "k.x c x y k.y k.z", "c x y k.z k.y k.x")
_WIDE, _HIGH = (64, 128, 256, 512), (4, 8, 16, 32, 64, 128)

PIPELINES = {
    "blur": Pipeline(
        (
            _plane("blur_y", tile_x=64, tile_y=1024),
            Stage("blur_x", ("blur_y",), ANYWHERE, default={"place": TILE}),
        ),
        (1536, 1024),
        ((*_WIDE, 1536), (*_HIGH, 1024)),
    ),
    "unsharp": Pipeline(
        (
            Stage(
                "sharp",
                axes=("x", "y", "c"),
                orders=_COLOURS,
                unrolled=("xi", "yi"),
                default={"tile_x": 256, "tile_y": 32},
            ),
            Stage("ratio", ("sharp",), ANYWHERE, default={"place": TILE}),
            Stage("blur_x", ("ratio",), ANYWHERE),
            Stage("blur_y", ("blur_x",), STORED, default={"place": TILE}),
            Stage("gray", ("ratio", "blur_y"), STORED, default={"place": TILE}),
        ),
        (768, 512, 3),
        ((64, 128, 256, 768), (*_HIGH, 512)),
    ),
    "harris": Pipeline(_harris(), (768, 512), ((64, 128, 256, 768), (*_HIGH, 512))),
    "pyramid": Pipeline(
        (
            _plane("merged", tile_x=1024, tile_y=32),
            Stage("detail", ("merged",), ANYWHERE, default={"place": TILE}),
            Stage("level_2", ("detail",), STORED, default={"place": TILE}),
            Stage("half_2", ("level_2",), ANYWHERE, default={"place": TILE}),
            Stage("level_1", ("merged", "detail", "half_2"), STORED, default={"place": TILE}),
            Stage("half_1", ("level_1",), ANYWHERE, default={"place": TILE}),
        ),
        (1024, 1024),
        ((*_WIDE, 1024), (*_HIGH, 1024)),
    ),
    "matmul": Pipeline(
        (
            _plane("relu", tile_x=32, tile_y=8),
            Stage(
                "product",
                ("relu",),
                (TILE, ROW, ROOT),
                orders=("x y k.x", "x k.x y", "k.x x y"),
                unrolled=("x", "y", "k.x"),
                exact=2,
                default={"unroll_x": 2, "unroll_y": 8},
            ),
            Stage("packed", ("product",), (INLINE, TILE, ROOT), storage=("x y", "y x"), exact=1),
        ),
        (384, 384),
        ((16, 32, 64, 128, 384), (1, 2, 4, 8, 16, 32, 64, 384)),
    ),
    "conv": Pipeline(
        (
            Stage(
                "relu",
                axes=("c", "x", "y"),
                orders=_CHANNELS,
                unrolled=("ci", "xi"),
                default={"tile_c": 32, "tile_x": 8},
            ),
            Stage(
                "product",
                ("relu",),
                (TILE, ROW, ROOT),
                axes=("c", "x", "y"),
                orders=_SUMS,
                unrolled=("c", "x", "k.x"),
                exact=2,
                storage=("c x y", "x y c"),
                default={"unroll_c": 2, "unroll_x": 8},
            ),
            Stage("padded", ("product",), (INLINE, TILE, ROOT), axes=("c", "x", "y"), storage=("c x y", "x y c")),
        ),
        (32, 48, 48),
        ((8, 16, 32), (1, 2, 4, 8, 16, 48)),
    ),
}


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


_KINDS = ("place", "tile", "order", "vector", "unroll", "storage", "parallel")


def structure(pipeline: Pipeline, space: Space) -> Structure:
    """Return the structure: parameters interact within a stage, and places of stages that use each other.

    The output's parameters set the loops that all stages are computed in, so they interact with all places.
    """
    names = [stage.name for stage in pipeline.stages]
    owners = np.array([names.index(space.name(i).partition(".")[0]) for i in range(len(space))])
    whats = [space.name(i).partition(".")[2].partition("_")[0] for i in range(len(space))]
    edges = np.array([(i, names.index(c)) for i, s in enumerate(pipeline.stages) for c in s.consumers], np.int32)
    together = _interacting(owners, np.array([what == "place" for what in whats]), edges)
    starts, neighbours = interacting(np.argwhere(together), len(space))
    features = np.column_stack([[what == known for what in whats] for known in _KINDS] + [space.kinds == Kind.SCALE])
    return Structure(
        starts, neighbours, features.astype(np.float32), (*_KINDS, "ordered"), _graph(pipeline, edges), nodes=owners
    )


def _interacting(owners: NDArray, is_place: NDArray, edges: NDArray) -> NDArray[np.bool_]:
    """Return `(d, d)` booleans, symmetric: whether two parameters interact."""
    linked = np.eye(owners.max() + 1, dtype=bool)
    linked[edges[:, 0], edges[:, 1]] = linked[edges[:, 1], edges[:, 0]] = True
    places = is_place[:, None] & is_place & linked[owners][:, owners]
    with_output = (owners == 0)[:, None] & is_place
    return (owners[:, None] == owners) | places | with_output | with_output.T


def _graph(pipeline: Pipeline, edges: NDArray[np.int32]) -> Graph:
    rows = [(not s.places, s.has_update, len(s.axes), len(s.consumers)) for s in pipeline.stages]
    return Graph(np.array(rows, np.float32), ("output", "reduction", "axes", "consumers"), edges)


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
