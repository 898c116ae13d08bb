import itertools

import numpy as np
import pytest

from bbo_suite.stats import whole


@pytest.mark.parametrize("seed", range(20))
def test_the_part_is_whole_and_no_other_with_as_many_columns_has_more_rows_where_columns_are_nested(seed):
    rng = np.random.default_rng(seed)
    ends = rng.integers(1, 7, 5)
    present = np.arange(6)[:, None] < ends  # each column has the rows of all shorter ones
    rows, columns = whole(present)
    assert present[rows][:, columns].all() and rows.any() and columns.sum() > 1
    sizes = [
        present[:, list(chosen)].all(axis=1).sum() * len(chosen)
        for k in range(2, 6)
        for chosen in itertools.combinations(range(5), k)
    ]
    assert rows.sum() * columns.sum() == max(sizes)


def test_two_columns_that_share_a_row_are_more_than_a_long_one_alone():
    rows, columns = whole([[1, 1], [1, 0], [1, 0], [1, 0]])
    assert rows.tolist() == [True, False, False, False] and columns.all()


def test_columns_that_share_nothing_leave_the_longest():
    rows, columns = whole([[1, 0], [1, 0], [0, 1]])
    assert rows.tolist() == [True, True, False] and columns.tolist() == [True, False]


def test_nothing_is_whole():
    assert [part.tolist() for part in whole(np.empty((0, 0)))] == [[], []]
