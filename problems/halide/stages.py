"""The pipelines: their stages, the places where these can be computed, and their loops."""

from __future__ import annotations

from dataclasses import dataclass, field

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
