import itertools

import numpy as np
import pytest

from bbo_suite.stats import complete_block, performance_profile


@pytest.mark.parametrize("seed", range(6))
def test_the_part_is_whole_and_no_other_with_as_many_columns_has_more_rows_where_columns_are_nested(seed):
    rng = np.random.default_rng(seed)
    ends = rng.integers(1, 7, 5)
    present = np.arange(6)[:, None] < ends  # each column has the rows of all shorter ones
    rows, columns = complete_block(present)
    assert present[rows][:, columns].all() and rows.any() and columns.sum() > 1
    sizes = [
        present[:, list(chosen)].all(axis=1).sum() * len(chosen)
        for k in range(2, 6)
        for chosen in itertools.combinations(range(5), k)
    ]
    assert rows.sum() * columns.sum() == max(sizes)


def test_two_columns_that_share_a_row_are_more_than_a_long_one_alone():
    rows, columns = complete_block([[1, 1], [1, 0], [1, 0], [1, 0]])
    assert rows.tolist() == [True, False, False, False] and columns.all()


def test_columns_that_share_nothing_leave_the_longest():
    rows, columns = complete_block([[1, 0], [1, 0], [0, 1]])
    assert rows.tolist() == [True, True, False] and columns.tolist() == [True, False]


def test_nothing_is_complete_block():
    assert [part.tolist() for part in complete_block(np.empty((0, 0)))] == [[], []]


def test_performance_profile():
    costs = [[1, 2, 4], [3, 1, np.inf], [np.inf, np.inf, np.inf]]
    expected = [[1 / 3, 1 / 3, 2 / 3], [1 / 3, 2 / 3, 2 / 3], [0, 0, 1 / 3]]
    assert performance_profile(costs, [1, 2, 4]) == pytest.approx(np.array(expected))
