"""Spaces: sizes, groups, samples, the constraints that forbid candidates, and the seeded order of all of them.

What an object prints is short and says what it holds, however large it is.
"""

import itertools
import math
import time

import numpy as np
import pytest
from bbo_toys import Climber, ClimberOptions, Toy, spaces
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from bbo_suite import Constraint, Enumeration, Kind, Space, Task, choice, permutation, product, scale, sequence
from bbo_suite.core.constraint import listed


def rng(seed=0):
    return np.random.default_rng(seed)


def as_set(rows):
    return set(map(tuple, rows.tolist()))


@given(spaces())
def test_cardinality_equals_a_count_by_trying_every_combination(drawn):
    space, rows = drawn
    assert space.cardinality == len(rows)


@given(spaces(), st.integers(0, 2**32))
def test_samples_are_allowed(drawn, seed):
    space, rows = drawn
    sample = space.sample(20, rng(seed))
    assert sample.shape == (20, len(space)) and sample.dtype == space.dtype
    assert as_set(sample) <= as_set(rows)
    assert space.allowed(sample).all()


@given(spaces())
def test_allowed_is_right_for_every_combination(drawn):
    space, rows = drawn
    every = np.array(list(itertools.product(*map(range, space.sizes))))
    told = space.allowed(space.check(every))
    assert as_set(every[told]) == as_set(rows) and told.sum() == len(rows)


@given(spaces())
def test_different_rows_have_different_digests_and_texts(drawn):
    space, rows = drawn
    rows = space.check(rows)
    assert len(set(space.digests(rows))) == len(rows)
    assert space.digests(rows.astype(np.int64)[::-1]) == space.digests(rows)[::-1]
    assert all((space.unpack(space.pack(row)) == row).all() for row in rows[:50])


MIXED = product(
    choice("layout", "abc"),
    scale("tile", [8, 16]),
    permutation("order", range(4)),
    sequence("passes", 2, "xy"),
    constraints=[Constraint((1, 3), lambda r: r[:, 0] <= r[:, 1]), Constraint((0, 7), lambda r: r[:, 0] != r[:, 1])],
)


@pytest.mark.slow
def test_sampling_is_uniform_over_free_and_constrained_parameters_and_permutations():
    places = {row: 0 for row in as_set(MIXED.sample(30_000, rng(1)))}
    assert len(places) == MIXED.cardinality == 336
    for row in map(tuple, MIXED.sample(50_000, rng(2)).tolist()):
        places[row] += 1
    assert chisquare(list(places.values())).pvalue > 1e-3


@pytest.mark.parametrize(
    ("size", "dtype", "text"),
    [
        (2, np.int8, "10"),
        (62, np.int8, "Z0"),
        (63, np.int8, "62-0"),
        (128, np.int8, "127-0"),
        (129, np.int16, "128-0"),
        (32768, np.int16, "32767-0"),
        (32769, np.int32, "32768-0"),
        (2**31, np.int32, "2147483647-0"),
        (2**31 + 1, np.int64, "2147483648-0"),
    ],
)
def test_smallest_type_that_holds_the_largest_index(size, dtype, text):
    space = Space([size, 2])
    row = space.check([[size - 1, 0]])[0]
    assert space.dtype == dtype and row.tolist() == [size - 1, 0]
    assert space.pack(row) == text and (space.unpack(text) == row).all()
    sample = space.sample(200, rng())
    assert sample.dtype == dtype and sample.min() >= 0 and (sample < space.sizes).all()


def test_every_digit_of_a_packed_row_is_read_back():
    space = Space([62] * 62)
    text = space.pack(np.arange(62))
    assert text == "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert (space.unpack(text) == np.arange(62)).all()


@pytest.mark.parametrize("text", ["", "0", "0-0-0", "00", "100-0", "-1-0", "1.5-0", "9" * 30 + "-0"])
def test_numbers_that_are_not_a_row_are_refused(text):
    with pytest.raises(ValueError, match="is not a row of this space"):
        Space([100, 100]).unpack(text)


def test_digests_are_the_same_on_every_machine_and_in_every_version():
    # printf '\0\0' | b2sum -l 64, and so on: little-endian bytes of the smallest type
    assert Space([3, 4]).digests([[0, 0], [2, 3]]) == ["95e0c70caf8cc336", "372a12de8bab3e8d"]
    assert Space([300, 4]).digests([[0, 0], [299, 3]]) == ["4e842f2f50cc089e", "471263dfa966f22b"]
    assert MIXED.digest() == "b579b47b531b81a6"


def test_the_digest_of_a_space_changes_if_and_only_if_its_candidates_do():
    rule = Constraint((0, 1), lambda rows: rows[:, 0] != rows[:, 1])
    digests = {
        Space([2, 2]).digest(),
        Space([2, 3]).digest(),
        Space([2, 2], [1, 0]).digest(),
        Space([2, 2], constraints=[rule]).digest(),
        Space([2, 2], [2, 2], [0, 0]).digest(),
        Space([2, 2], [2, 2], [0, 0], [0]).digest(),
        Space([2, 2], [2, 2], [0, 1]).digest(),
    }
    assert len(digests) == 7
    assert Space([2, 2], names=["a", "b"]).digest() == Space([2, 2]).digest()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 4), int), r"shape \(2, 4\), not \(n, 3\)"),
        (np.zeros(3, int), r"shape \(3,\), not \(n, 3\)"),
        (None, r"shape \(\)"),
        ([[0, 1], [0]], "inhomogeneous"),
        (np.zeros((2, 3)), "float64, not integers"),
        (np.zeros((2, 3), bool), "bool, not integers"),
        ([["a", "b", "c"]], "not integers"),
        ([[0, 0, 0], [0, 5, 0]], "candidate 1 has index 5, but 'tile' has indices 0 to 3"),
        ([[0, 0, -1]], "candidate 0 has index -1, but 'c' has indices 0 to 1"),
        (np.array([[2**63, 0, 0]], np.uint64), "has index 9223372036854775808"),
        ([[256, 0, 0]], "has index 256"),  # would be 0 in eight bits
    ],
)
def test_check_refuses_an_invalid_batch_and_says_why(rows, message):
    space = product(choice("a", range(3)), scale("tile", range(4)), choice("c", range(2)))
    with pytest.raises(ValueError, match=message):
        space.check(rows)


def test_check_takes_lists_and_any_integers():
    space = Space([3, 200])
    for rows in ([[2, 199], [0, 0]], np.array([[2, 199], [0, 0]], np.uint64), np.array([[2, 0], [199, 0]]).T):
        checked = space.check(rows)
        assert checked.tolist() == [[2, 199], [0, 0]]
        assert checked.dtype == np.int16 and checked.flags.c_contiguous
    assert space.check(np.zeros((0, 2), int)).shape == (0, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": []}, "at least one parameter"),
        ({"sizes": [2, 0]}, "at least one value"),
        ({"sizes": [2.5]}, "not integers"),
        ({"sizes": [2, 2], "kinds": [0]}, "differ in length"),
        ({"sizes": [2], "kinds": [2]}, "only slots"),
        ({"sizes": [2] * 3, "kinds": [2, 0, 2], "groups": [0, -1, 0]}, "not adjacent"),
        ({"sizes": [2, 3], "kinds": [2, 2], "groups": [0, 0]}, "differ in their number of values"),
        ({"sizes": [3, 3], "kinds": [2, 2], "groups": [0, 0], "permutations": [0]}, "needs 2 values"),
        ({"sizes": [2], "permutations": [4]}, "has no slots"),
    ],
)
def test_a_broken_space_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Space(**arguments)


def test_names_and_values_are_made_on_demand():
    space = product(choice("layout", ["nchw", "nhwc"]), sequence("p", 2, ["off", "on"]), permutation("q", "ab"))
    assert space.describe(np.array([1, 0, 1, 1, 0])) == {
        **{"layout": "nhwc", "p[0]": "off", "p[1]": "on"},
        **{"q[0]": "b", "q[1]": "a"},
    }
    assert Space([2, 3]).describe(np.array([1, 2])) == {"x0": 1, "x1": 2}
    lazy = Space([2, 3], names=lambda i: f"n{i}", values=lambda i: "ab" if i == 0 else "xyz")
    assert lazy.describe(np.array([1, 2])) == {"n0": "b", "n1": "z"}
    assert space.kinds.tolist() == [Kind.CHOICE] + [Kind.SLOT] * 4


def test_two_parameters_with_one_name_are_refused():
    with pytest.raises(ValueError, match="'tile' occurs twice"):
        product(choice("tile", [1, 2]), scale("tile", [1, 2]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: choice("a", 5), "the values of parameter 'a' are 5; give a list"),
        (lambda: choice("a", {1, 2}), "give a list"),
        (lambda: scale("a", {1: 2}), "give a list"),
        (lambda: scale("a", (i for i in range(3))), "give a list"),
        (lambda: choice("a", [1, 2, 1]), "'a' has the value 1 twice; drop one of the two"),
        (lambda: choice("a", [[1], [1]]), "twice"),
        (lambda: scale("a", np.array([1, 1])), "twice"),
        (lambda: scale("a", [4, 1, 2]), "the values of scale 'a' are .4, 1, 2.; sort them, smallest first"),
        (lambda: scale("a", [1, math.nan]), "sort them"),
        (lambda: sequence("a", 0, [1]), "the length of sequence 'a' is 0; give a whole number from 1 on"),
        (lambda: sequence("a", 2.5, [1]), "is 2.5; give a whole number"),
        (lambda: product([choice("a", [1])]), "product takes parameters one by one"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_values_that_only_look_equal_are_kept():
    assert (
        product(choice("a", [1, "1", True, 1.0]), scale("b", ["low", "high"]), scale("c", np.arange(3))).cardinality
        == 24
    )


def test_huge_cardinalities_are_exact():
    assert Space([2] * 2000).cardinality == 2**2000
    assert product(permutation("p", range(40)), choice("c", range(3))).cardinality == 3 * math.factorial(40)


def test_one_candidate_only():
    space = product(choice("a", ["only"]), permutation("p", ["one"]), sequence("s", 2, ["x"]))
    assert space.cardinality == 1 and space.sample(3, rng()).tolist() == [[0] * 4] * 3


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


def generator(seed=0):
    return np.random.default_rng(seed)


def distinct(rows):
    return len(np.unique(rows, axis=0)) == len(rows)


@given(spaces(), st.integers(0, 2**32))
def test_every_allowed_candidate_comes_once(drawn, seed):
    space, known = drawn
    order = Enumeration(space, generator(seed))
    rows = order.rows(0, order.length + 5)
    assert order.length == len(known) == len(rows) and rows.dtype == space.dtype
    assert sorted(rows.tolist()) == sorted(known.tolist())
    assert order.rows(order.length, order.length + 3).shape == (0, len(space))


@given(spaces(), st.integers(0, 2**32), st.integers(0, 3000), st.integers(0, 50))
def test_enumeration_can_start_at_any_position(drawn, seed, start, n):
    whole = Enumeration(drawn[0], generator(seed)).rows(0, 4000)
    assert (Enumeration(drawn[0], generator(seed)).rows(start, start + n) == whole[start : start + n]).all()


@pytest.mark.slow
def test_the_first_candidates_are_uniform_over_seeds():
    space = Space([3, 4], constraints=[Constraint((0, 1), lambda rows: rows.sum(axis=1) > 0)])
    firsts = np.concatenate([Enumeration(space, generator(seed)).rows(0, 1) for seed in range(3000)])
    counts = np.bincount(firsts[:, 0].astype(int) * 4 + firsts[:, 1], minlength=12)
    assert counts[0] == 0 and chisquare(counts[1:]).pvalue > 1e-3


def test_the_first_candidates_of_a_larger_space_look_random():
    rows = Enumeration(Space([2] * 40), generator()).rows(0, 4000).astype(float)
    assert abs(rows.mean(axis=0) - 0.5).max() < 0.04
    assert abs(np.corrcoef(rows.T) - np.eye(40)).max() < 0.08
    assert abs((rows[1:] == rows[:-1]).mean() - 0.5) < 0.01  # neighbours in the order are no neighbours in the space


HUGE = {
    "booleans": Space([2] * 2000),
    "permutation of 40": product(permutation("p", range(40))),
    "three times 20!": product(scale("s", range(3)), permutation("p", range(20))),
    "two permutations of 20": product(permutation("p", range(20)), permutation("q", range(20))),
    "three of four values tied, one at a time": Space(
        [4] * 70, constraints=[Constraint((j,), lambda rows: rows[:, 0] != 1) for j in range(70)]
    ),
    "tied and free": product(
        *(scale(f"s{i}", range(5)) for i in range(60)),
        sequence("t", 10, range(3)),
        constraints=[Constraint((2 * i, 2 * i + 1), lambda rows: rows[:, 0] <= rows[:, 1]) for i in range(30)],
    ),
    "indices beyond 32 bits": Space([2**40, 2**40]),
    "2^62 and 2": Space([2**62, 2]),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_spaces_give_distinct_allowed_rows(name):
    space = HUGE[name]
    order = Enumeration(space, generator())
    assert order.length == min(space.cardinality, 2**62)
    for start in (0, 2**40, order.length - 300):
        rows = order.rows(start, start + 300)
        assert len(rows) == 300 and distinct(rows)
        assert space.allowed(space.check(rows)).all()
    columns = order.rows(0, 1000).astype(float)
    assert (columns.std(axis=0) > 0).all()  # nothing is stuck at one value
    assert (order.rows(7, 9) == Enumeration(space, generator()).rows(7, 9)).all()
    assert (order.rows(7, 9) != Enumeration(space, generator(1)).rows(7, 9)).any()


TOY_SPACE = "Space(7 parameters: 1 choice, 1 scale, 5 slot; 264 candidates)"


def test_space():
    assert repr(Toy().space) == TOY_SPACE
    assert repr(Space([2] * 10)) == "Space(10 parameters: 10 choice; 1,024 candidates)"


def test_a_large_space_is_printed_at_once():
    space = Space(np.full(500_000, 2))
    started = time.process_time()
    assert repr(space) == "Space(500,000 parameters: 500,000 choice; about 10^150514 candidates)"
    assert time.process_time() - started < 1


def test_problem_and_task():
    assert repr(Toy()) == f"Toy('toy/small', {TOY_SPACE}, unit 'seconds')"
    default = "default [0, 0, 0, 1, 2, 0, 0]"
    assert repr(Toy().task()) == f"Task('toy/small', {TOY_SPACE}, {default}, unit 'seconds', None)"
    large = Task("a/b", Space(np.full(5000, 2)), np.zeros(5000, int), "bytes")
    assert "default [0, 0, 0, 0, 0, 0, 0, 0, ...]" in repr(large)


def test_strategy():
    strategy = Climber(Toy().task(), 1000, np.random.default_rng(0), ClimberOptions())
    assert repr(strategy) == "Climber('toy/small', budget 1,000, ClimberOptions(changes=2, layers=(4, 2)))"
