"""Options, quantities, and the ends of a problem's id, as users write them; a sentence for what is wrong."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from bbo_suite import NoOptions, UserError, option
from bbo_suite.core.options import describe, parse
from bbo_suite.core.quantities import LARGEST, count, effect, ratio_name, seconds
from bbo_suite.core.variants import split_draw, split_variant
from bbo_suite.registry import Registry


@dataclass(frozen=True)
class Options:
    size: int = option(3, "how many", low=1, high=10)
    rate: float = option(0.5, "how fast", low=0)
    depth: float = option(1.0, "how deep", high=9)
    bold: bool = option(False, "whether to be bold")
    mode: Literal["near", "far"] = option("near", "where to look")
    name: str = option("x", "what to call it")


def test_texts_become_values():
    texts = {"size": "7", "rate": "1e3", "bold": "Yes", "mode": "far", "name": "a=b c"}
    assert parse(Options, texts, "mine") == Options(7, 1000.0, 1.0, True, "far", "a=b c")
    assert parse(Options, {}, "mine") == Options()
    assert parse(NoOptions, {}, "mine") == NoOptions()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("size", "2.5", "option size of mine must be of type int, not '2.5'"),
        ("size", "", "of type int"),
        ("size", "9" * 5000, "of type int"),
        ("size", "0", "between 1 and 10, not 0"),
        ("rate", "-1", "must be 0 or more, not -1"),
        ("rate", "inf", "0 or more, not inf"),
        ("rate", "nan", "0 or more, not nan"),
        ("depth", "9.5", "9 or less"),
        ("bold", "maybe", "of type bool"),
        ("mode", "Far", "must be near or far, not 'Far'"),
        ("sice", "1", "no option 'sice'. Did you mean 'size'?"),
    ],
)
def test_invalid_text_is_refused(name, text, words):
    with pytest.raises(UserError) as caught:
        parse(Options, {name: text}, "mine")
    assert words in str(caught.value)


def test_description():
    described = {entry["name"]: entry for entry in describe(Options)}
    assert described["size"] == {"name": "size", "type": "int", "default": 3, "help": "how many"}
    assert described["mode"]["type"] == "near or far"
    assert list(described) == ["size", "rate", "depth", "bold", "mode", "name"]
    assert describe(NoOptions) == []


def test_options_that_are_not_a_dataclass_are_refused():
    with pytest.raises(UserError, match="dataclass"):
        parse(int, {}, "mine")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0", 0), ("1000", 1000), ("10,000", 10_000), ("10_000", 10_000), ("-5", -5), ("+3", 3), (" 7 ", 7)),
        *(("1k", 1000), ("1K", 1000), ("1.5k", 1500), ("1e4", 10_000), ("2.5e3", 2500), ("10m", 10**7), ("4.", 4)),
        ("1e3k", 10**6),
        ("9007199254740993", 2**53 + 1),  # exact: never by way of a float
    ],
)
def test_counts(text, value):
    assert count(text) == value
    assert type(count(text)) is int


@pytest.mark.parametrize(
    "text", ["", "many", "1.5", "1e-1", "1.0001k", "nan", "inf", "k", "1h", "1 0", "0x10", "1,,0", "1e999", "9" * 5000]
)
def test_what_is_no_count_is_named(text):
    with pytest.raises(ValueError) as caught:
        count(text)
    assert f"'{text[:60]}' is not a whole number" in str(caught.value)


def test_a_count_that_no_run_takes_is_refused():
    assert count(str(LARGEST)) == LARGEST
    with pytest.raises(ValueError, match="1e30 is above 9,223,372,036,854,775,807"):
        count("1e30")


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90), ("0.5", 0.5), ("90s", 90), ("10m", 600), ("10 min", 600), ("1.5h", 5400), ("2d", 172_800)],
)
def test_durations(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize(
    ("ratio", "unit", "text"),
    [
        *((1.0278, "seconds", "speedup 1.0278"), (1.25, "cycles", "speedup 1.2500"), (2, "ns", "speedup 2.0000")),
        *((1.25, "bytes", "20.0 % fewer bytes"), (0.8, "instructions", "25.0 % more instructions")),
        *((1.25, "J", "20.0 % less J"), (1.25, "", "20.0 % less cost"), (1.25, "cost", "20.0 % less cost")),
        *((1.25, "times the default's cost", "20.0 % less cost"), (1.25, "times the default", "speedup 1.2500")),
        *((1.25, "loss (2 - value)", "20.0 % less loss (2 - value)"), (1.00001, "bytes", "0.001 % fewer bytes")),
        *(
            (1, "bytes", "0 % fewer bytes"),
            (float("inf"), "bytes", "100 % fewer bytes"),
            (None, "s", "speedup unknown"),
        ),
        *((0, "bytes", "infinitely more bytes"), (None, "bytes", "improvement unknown")),
    ],
)
def test_only_a_ratio_of_times_is_a_speedup(ratio, unit, text):
    assert effect(ratio, unit) == text


def test_a_ratio_of_several_units_is_a_speedup_if_all_are_times():
    units = [["seconds"], ["seconds", "cycles"], ["seconds", "bytes"], ["bytes"], []]
    assert [ratio_name(each) == "speedup" for each in units] == [True, True, False, False, False]


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
