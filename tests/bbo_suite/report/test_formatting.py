"""Numbers and lists as text."""

import numpy as np
import pytest

from bbo_suite.report import formatting


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0, "0 %"),
        (1.012, "1.2 %"),
        (1.00123, "0.12 %"),
        (0.9, "-10 %"),
        (1.1, "10 %"),
        (3, "200 %"),
        (1e5, "9,999,900 %"),
    ],
)
def test_percent(ratio, text):
    assert formatting.percent(ratio) == text


def test_lists_and_counts():
    lists = [formatting.listed(names) for names in ([], ["a"], ["a", "b"], "abc")]
    assert lists == ["none", "a", "a and b", "a, b and c"]
    assert formatting.listed(map(str, range(9)), 3) == "0, 1 and 7 more"
    assert [formatting.counted(n, "strategy") for n in (1, 1000)] == ["1 strategy", "1,000 strategies"]


def test_p_values_and_speedups():
    assert [formatting.p_value(p) for p in (np.nan, 1e-9, 0.0123, 1.0)] == ["–", "< 0.001", "0.012", "1"]
    speedups = [formatting.speedup(x) for x in (np.inf, np.nan, 1.00012, 123.4, 1e9)]
    assert speedups == ["infinite", "–", "1.0001", "123", "1e+09"]


@pytest.mark.parametrize(
    ("part", "shown"), [(0, "none"), (1, "all"), (9990 / 10_000, "99.9 %"), (9999 / 10_000, "99.9 %"), (1e-5, "0.1 %")]
)
def test_only_all_is_all_and_only_none_is_none(part, shown):
    assert formatting.share(part) == shown
