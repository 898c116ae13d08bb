import itertools
import math

import numpy as np
import pytest
from bbo_toys import spaces
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from bbo_suite import Constraint, Kind, Space, choice, permutation, product, scale, sequence


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


def test_huge_cardinalities_are_exact():
    assert Space([2] * 2000).cardinality == 2**2000
    assert product(permutation("p", range(40)), choice("c", range(3))).cardinality == 3 * math.factorial(40)


def test_one_candidate_only():
    space = product(choice("a", ["only"]), permutation("p", ["one"]), sequence("s", 2, ["x"]))
    assert space.cardinality == 1 and space.sample(3, rng()).tolist() == [[0] * 4] * 3
