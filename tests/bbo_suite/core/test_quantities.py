import pytest

from bbo_suite.core.quantities import count, seconds


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
