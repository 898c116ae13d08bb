"""What a task declares: pairs of parameters as the rows of a structure."""

import numpy as np

from bbo_suite.core.task import interacting


def test_pairs_in_any_order_become_symmetric_rows_without_repeats_and_without_the_parameter_itself():
    starts, neighbours = interacting(np.array([[3, 1], [1, 3], [1, 0], [2, 2], [3, 1]]), 5)
    assert starts.tolist() == [0, 1, 3, 3, 4, 4] and neighbours.tolist() == [1, 0, 3, 1]
    assert (starts.dtype, neighbours.dtype) == (np.int64, np.int32)


def test_without_pairs_no_row_has_a_neighbour():
    starts, neighbours = interacting(np.empty((0, 2), np.int64), 2)
    assert starts.tolist() == [0, 0, 0] and neighbours.tolist() == []
