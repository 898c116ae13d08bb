"""The end of a problem's id: a known variant behind the last `@`, or the number of a draw behind `#`."""

from pathlib import Path

import pytest

from bbo_suite import UserError
from bbo_suite.core.variants import split_draw, split_variant
from bbo_suite.registry import Registry

KNOWN = ("bytes", "time")


@pytest.mark.parametrize(
    ("instance", "parts"),
    [
        ("tree", ("tree", "")),
        ("tree@time", ("tree", "time")),
        (Path("tree.ll"), ("tree.ll", "")),
        (Path("me@work/x.ll"), ("me@work/x.ll", "")),
        (Path("me@work/x.ll@bytes"), ("me@work/x.ll", "bytes")),
        (Path("x@1.2.ll"), ("x@1.2.ll", "")),
        (Path("a@time@bytes"), ("a@time", "bytes")),
    ],
)
def test_only_a_known_variant_at_the_end_is_one(instance, parts):
    assert split_variant(instance, KNOWN) == parts


@pytest.mark.parametrize("instance", ["tree@speed", "tree@", "tree@time@bytes", Path("x.ll@speed")])
def test_an_unknown_variant_names_the_known_ones(instance):
    with pytest.raises(UserError, match="@bytes, @time"):
        split_variant(instance, KNOWN)


def test_a_file_whose_name_ends_like_a_variant_is_that_file(tmp_path):
    (tmp_path / "x@speed").touch()
    assert split_variant(tmp_path / "x@speed", KNOWN) == (str(tmp_path / "x@speed"), "")


@pytest.mark.parametrize("family", ["ordering/40x50-a", "ehrlich/32x32-a"])
@pytest.mark.parametrize("mark", ["#", "#typo", "#-1", "#+1", "#1.5", "#01", "#1_0", "# 1", "#1#2", "#²"])
def test_a_draw_is_a_whole_number_in_its_usual_form(family, mark):
    with pytest.raises(UserError, match="write a whole number behind the #"):
        Registry().load(f"{family}{mark}")


def test_a_draw_may_be_left_out():
    assert [split_draw(name) for name in ("a", "a#0", "a#12345678901234567890")] == ["a"] * 3
