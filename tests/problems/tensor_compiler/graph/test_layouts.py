"""Layouts of single arrays, and what single operations can do in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.graph.layouts import compact, layouts, minor_dims, padded_bytes
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.hlo.module import Shape

SHAPES = st.builds(
    Shape,
    st.sampled_from(["f32", "bf16", "s8", "pred", "s4"]),
    st.lists(st.sampled_from([0, 1, 2, 3, 8, 100, 128, 200]), max_size=5).map(tuple),
)


@pytest.mark.parametrize(
    "dtype, dims, layout, size",
    [
        ("f32", (10, 20), (1, 0), 16 * 128 * 4),
        ("f32", (10, 20), (0, 1), 128 * 24 * 4),
        ("bf16", (10, 20), (1, 0), 16 * 128 * 2),
        ("s8", (10, 20), (1, 0), 32 * 128),
        ("f32", (3, 8, 128), (2, 1), 3 * 8 * 128 * 4),
        ("f32", (3, 1, 128), (2, 0), 8 * 128 * 4),
        ("f32", (100,), (0,), 512),
        ("f32", (), (), 512),
        ("f32", (0, 128), (1, 0), 0),
    ],
)
def test_the_two_minor_dimensions_are_padded_to_tiles(dtype: str, dims: tuple, layout: tuple, size: int) -> None:
    assert padded_bytes(Shape(dtype, dims), layout) == size


def test_a_layout_in_the_text_is_read_as_its_two_minor_dimensions() -> None:
    assert minor_dims(Shape("f32", (2, 1, 3, 4)), (1, 3, 0, 2)) == (3, 0)


@given(SHAPES)
def test_layouts_are_distinct_and_the_compact_one_pads_least(shape: Shape) -> None:
    found = layouts(shape)
    assert len(set(found)) == len(found)
    assert padded_bytes(shape, compact(shape)) == min(padded_bytes(shape, layout) for layout in found)
    row_major = tuple(d for d in reversed(range(len(shape.dims))) if shape.dims[d] != 1)[:2]
    assert found[0] == row_major


def graph(*lines: str) -> ProgramGraph:
    body = "\n".join(f"  {line}" for line in lines)
    return build(hlo.parse(f"HloModule m\n\nENTRY e {{\n{body}\n}}\n"), "test")


def choices(made: ProgramGraph, name: str) -> tuple[str, ...]:
    return made.choices[made.signature[made.names.index(name)]]


def test_a_dot_streams_an_operand_whose_contracted_dimension_is_minor() -> None:
    made = graph(
        "a = f32[256,512]{1,0} parameter(0)",
        "b = f32[512,1024]{1,0} parameter(1)",
        "ROOT d = f32[256,1024]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    texts = choices(made, "d")
    assert texts[0] == "{1,0} from {1,0} {1,0}"
    first = made.tables.first[made.signature[2]]
    work = dict(zip(texts, made.tables.work[first:], strict=False))
    assert work["{1,0} from {1,0} {1,0}"] == work["{1,0} from {1,0} {0,1}"] == 0
    assert work["{1,0} from {0,1} {1,0}"] == 16 * 256 * 512
    assert work["{0,1} from {1,0} {0,1}"] == work["{0,1} from {0,1} {0,1}"] == 0
    assert work["{0,1} from {1,0} {1,0}"] == 16 * 512 * 1024


@pytest.mark.parametrize(
    "before, after, text, moves",
    [
        ("64,128", "8,8,128", "{2,1} from {1,0}", False),
        ("64,128", "16,4,128", "{2,0} from any", True),  # rows of tiles are cut
        ("8,8,128", "64,128", "{1,0} from {2,1}", False),
        ("4,64,128", "4,8192", "{1,0} from any", True),
        ("8,16,256", "8,4096", "{1,0} from any", True),
    ],
)
def test_a_reshape_moves_nothing_if_tiles_stay_intact(before: str, after: str, text: str, moves: bool) -> None:
    made = graph(
        f"a = f32[{before}]{{{','.join(map(str, reversed(range(before.count(',') + 1))))}}} parameter(0)",
        f"r = f32[{after}]{{{','.join(map(str, reversed(range(after.count(',') + 1))))}}} reshape(a)",
        f"ROOT n = f32[{after}]{{{','.join(map(str, reversed(range(after.count(',') + 1))))}}} negate(r)",
    )
    assert text in choices(made, "r")
    assert text.endswith("any") == moves
