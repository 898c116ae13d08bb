import pytest

from bbo_suite.core.quantities import count, effect, ratio_name, seconds


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
