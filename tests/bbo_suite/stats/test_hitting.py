import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite.stats import best_so_far, expected_running_time, first_hits, runtime_ecdf

COSTS = st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), min_size=1, max_size=5)


@given(COSTS, st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_first_hits_against_a_walk(runs, targets):
    hits = first_hits(best_so_far(runs), targets)
    for run, costs in enumerate(runs):
        for place, target in enumerate(targets):
            walked = next((i + 1 for i, cost in enumerate(costs) if cost <= target), np.inf)
            assert hits[run, place] == walked


def test_expected_running_time_as_coco_defines_it():
    """Two of three runs reach the target, after 10 and 40 of 100 evaluations: (10 + 40 + 100) / 2."""
    assert expected_running_time([[10, np.inf], [40, np.inf], [np.inf, np.inf]], [100, 100, 100]).tolist() == [
        75,
        np.inf,
    ]


@given(COSTS, st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_the_ecdf_counts_pairs(runs, targets):
    hits = first_hits(best_so_far(runs), targets)
    for n, share in zip(range(1, 7), runtime_ecdf(hits, range(1, 7)), strict=True):
        assert share == np.mean(hits <= n)
