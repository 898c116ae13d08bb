import numpy as np
import pytest

from bbo_suite import Constraint, Space, permutation, product
from bbo_suite.core.constraint import listed


def different(*columns):
    return Constraint(columns, lambda rows: rows[:, 0] != rows[:, 1])


def test_constraints_are_joined_if_and_only_if_they_share_a_parameter():
    space = Space([3] * 7, constraints=[different(0, 2), different(5, 4), different(2, 6)])
    assert sorted(c.columns.tolist() for c in space.components) == [[0, 2, 6], [4, 5]]
    assert space.cardinality == (3 * 2 * 2) * (3 * 2) * 3**2


def test_a_rule_gets_its_columns_in_the_order_it_declares():
    space = Space([2, 3, 4], constraints=[Constraint((2, 0), lambda rows: rows[:, 0] > 2 * rows[:, 1])])
    assert space.allowed(space.check([[0, 0, 1], [0, 0, 0], [1, 0, 3], [1, 2, 2]])).tolist() == [True, False] * 2
    assert space.cardinality == 3 * (3 + 1)


def test_a_constraint_on_a_permutation_keeps_it_a_permutation():
    before = Constraint((0, 1), lambda rows: rows[:, 0] < rows[:, 1])
    space = product(permutation("p", range(8)), constraints=[before])
    assert space.cardinality == 40320 // 2
    rows = space.sample(100, np.random.default_rng(0))
    assert (np.sort(rows, axis=1) == np.arange(8)).all() and (rows[:, 0] < rows[:, 1]).all()


@pytest.mark.parametrize(
    ("columns", "rule", "message"),
    [
        ((0, 5), lambda rows: rows[:, 0] > 0, r"columns \(0, 5\) of a space of 3"),
        ((-1,), lambda rows: rows[:, 0] > 0, "names columns"),
        ((), lambda rows: np.ones(len(rows), bool), "names no columns"),
        ((0, 1), lambda rows: rows[:, 0] > 5, "forbid every combination"),
        ((0, 1), lambda rows: True, r"returned shape \(\) for"),
        ((0, 1), lambda rows: rows > 0, "return one boolean per row"),
    ],
)
def test_a_broken_constraint_is_refused(columns, rule, message):
    with pytest.raises(ValueError, match=message):
        Space([2, 2, 2], constraints=[Constraint(columns, rule)])


def test_too_many_constrained_combinations_are_refused_before_memory_is_full():
    with pytest.raises(ValueError, match="more than 4,194,304"):
        Space([3000] * 3, constraints=[Constraint((0, 1, 2), lambda rows: rows.sum(axis=1) > 1)])


def test_a_table_whose_product_exceeds_an_integer_is_exact():
    chain = [Constraint((i, i + 1), lambda rows: rows[:, 0] == rows[:, 1]) for i in range(99)]
    space = Space([4] * 100, constraints=chain)
    rows = np.repeat(np.arange(4)[:, None], 100, axis=1)
    assert space.cardinality == 4 and space.allowed(rows).all()
    assert not space.allowed(np.random.default_rng(0).integers(0, 4, (1000, 100))).any()
    (component,) = space.components
    assert (component.rows[component.places(rows)] == rows).all()


@pytest.mark.parametrize("size", [3, 1 << 40])
def test_a_list_of_rows_allows_only_these_rows(size):
    rows = np.array([[2, 0, 1], [0, 0, 0], [2, 0, 1], [1, 2, 2]])
    space = Space([size] * 3, constraints=[listed(rows)])
    assert space.cardinality == 3 and space.allowed(rows).all()
    assert not space.allowed(space.check([[0, 0, 1], [2, 2, 2], [1, 2, 0]])).any()
    assert set(map(tuple, space.sample(99, np.random.default_rng(0)).tolist())) == set(map(tuple, rows.tolist()))


def test_a_list_of_rows_is_filtered_by_other_constraints():
    rows = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 0]])
    assert Space([2] * 3, constraints=[listed(rows), different(1, 0)]).cardinality == 2
    with pytest.raises(ValueError, match="forbid every"):
        Space([2] * 3, constraints=[listed(rows), different(2, 2)])
