import numpy as np
import pytest
from bbo_toys import spaces
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from bbo_suite import Constraint, Enumeration, Space, permutation, product, scale, sequence


def rng(seed=0):
    return np.random.default_rng(seed)


def distinct(rows):
    return len(np.unique(rows, axis=0)) == len(rows)


@given(spaces(), st.integers(0, 2**32))
def test_every_allowed_candidate_comes_once(drawn, seed):
    space, known = drawn
    order = Enumeration(space, rng(seed))
    rows = order.rows(0, order.length + 5)
    assert order.length == len(known) == len(rows) and rows.dtype == space.dtype
    assert sorted(rows.tolist()) == sorted(known.tolist())
    assert order.rows(order.length, order.length + 3).shape == (0, len(space))


@given(spaces(), st.integers(0, 2**32), st.integers(0, 3000), st.integers(0, 50))
def test_enumeration_can_start_at_any_position(drawn, seed, start, n):
    whole = Enumeration(drawn[0], rng(seed)).rows(0, 4000)
    assert (Enumeration(drawn[0], rng(seed)).rows(start, start + n) == whole[start : start + n]).all()


def test_the_first_candidates_are_uniform_over_seeds():
    space = Space([3, 4], constraints=[Constraint((0, 1), lambda rows: rows.sum(axis=1) > 0)])
    firsts = np.concatenate([Enumeration(space, rng(seed)).rows(0, 1) for seed in range(3000)])
    counts = np.bincount(firsts[:, 0].astype(int) * 4 + firsts[:, 1], minlength=12)
    assert counts[0] == 0 and chisquare(counts[1:]).pvalue > 1e-3


def test_the_first_candidates_of_a_larger_space_look_random():
    rows = Enumeration(Space([2] * 40), rng()).rows(0, 4000).astype(float)
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
    order = Enumeration(space, rng())
    assert order.length == min(space.cardinality, 2**62)
    for start in (0, 2**40, order.length - 300):
        rows = order.rows(start, start + 300)
        assert len(rows) == 300 and distinct(rows)
        assert space.allowed(space.check(rows)).all()
    columns = order.rows(0, 1000).astype(float)
    assert (columns.std(axis=0) > 0).all()  # nothing is stuck at one value
    assert (order.rows(7, 9) == Enumeration(space, rng()).rows(7, 9)).all()
    assert (order.rows(7, 9) != Enumeration(space, rng(1)).rows(7, 9)).any()
