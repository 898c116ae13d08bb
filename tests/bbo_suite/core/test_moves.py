import numpy as np
import pytest
from bbo_toys import spaces
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite import Constraint, Kind, Moves, Space, permutation, product, scale, sequence


def rng(seed=0):
    return np.random.default_rng(seed)


def allowed_by(rows, known):
    return set(map(tuple, rows.tolist())) <= set(map(tuple, known.tolist()))


def several(rows, seed, n=40):
    """Return n of the rows as the space holds them, so that more than one change meets each kind of parameter."""
    return rows[rng(seed).integers(0, len(rows), n)]


@given(spaces(), st.integers(0, 2**32))
def test_a_single_change_stays_allowed_and_changes_something_unless_there_is_only_one_candidate(drawn, seed):
    space, rows = drawn
    parents = space.check(several(rows, seed))
    children = Moves(space).mutate(parents, np.ones(len(parents), np.int64), rng(seed))
    assert children.dtype == space.dtype and allowed_by(children, rows)
    assert (children != parents).any(axis=1).all() == (len(rows) > 1)


@given(spaces(), st.integers(0, 2**32), st.integers(0, 6))
def test_many_changes_stay_allowed_and_do_not_change_the_parents(drawn, seed, most):
    space, rows = drawn
    parents = space.check(several(rows, seed))
    before, counts = parents.copy(), rng(seed).integers(0, most + 1, len(parents))
    children = Moves(space).mutate(parents, counts, rng(seed))
    assert allowed_by(children, rows) and (parents == before).all()
    assert not np.shares_memory(children, parents)
    assert (children[counts == 0] == parents[counts == 0]).all()
    assert (children == Moves(space).mutate(parents, counts, rng(seed))).all()


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([Kind.CHOICE, Kind.SCALE])), min_size=1), st.data())
def test_free_parameters_change_as_often_as_requested_or_less_if_two_changes_coincide(parameters, data):
    sizes, kinds = map(list, zip(*parameters, strict=True))
    space, seed = Space(sizes, kinds), data.draw(st.integers(0, 2**32))
    parents = space.sample(30, rng(seed))
    counts = rng(seed).integers(0, 5, 30)
    children = Moves(space).mutate(parents, counts, rng(seed))
    changed = (children != parents).sum(axis=1)
    assert (changed <= counts).all()
    assert ((changed > 0) == ((counts > 0) & (max(sizes) > 1))).all()


@given(spaces(), st.integers(0, 2**32))
def test_children_are_allowed_and_take_each_block_from_one_parent(drawn, seed):
    space, rows = drawn
    mothers, fathers = space.check(several(rows, seed)), space.check(several(rows, seed + 1))
    before = mothers.copy(), fathers.copy()
    children = Moves(space).cross(mothers, fathers, rng(seed))
    assert allowed_by(children, rows)
    assert (mothers == before[0]).all() and (fathers == before[1]).all()
    blocks = [c.columns for c in space.components] + [np.arange(a, b) for a, b in space.free_permutations]
    for block in [*blocks, *([j] for j in range(len(space)))]:
        of_mother = (children[:, block] == mothers[:, block]).all(axis=1)
        assert (of_mother | (children[:, block] == fathers[:, block]).all(axis=1)).all()


def test_crossover_mixes_both_parents_evenly_and_each_column_independently():
    space = Space([2] * 20)
    children = Moves(space).cross(np.zeros((2000, 20), np.int8), np.ones((2000, 20), np.int8), rng())
    assert abs(children.mean(axis=0) - 0.5).max() < 0.05
    assert abs(np.corrcoef(children.T) - np.eye(20)).max() < 0.1


def test_every_other_value_is_reached_and_a_scale_prefers_neighbours():
    space = Space([8, 8], [Kind.CHOICE, Kind.SCALE])
    parents = np.full((8000, 2), 3, np.int8)
    children = Moves(space).mutate(parents, np.ones(8000, np.int64), rng())
    choice = np.bincount(children[children[:, 0] != 3, 0], minlength=8) / 4000
    steps = np.bincount(children[children[:, 1] != 3, 1], minlength=8) / 4000
    assert choice[3] == 0 and (abs(np.delete(choice, 3) - 1 / 7) < 0.03).all()
    assert (abs(steps[[2, 4]] - (0.25 + 0.5 / 7)) < 0.03).all() and (abs(steps[[0, 1, 5, 6, 7]] - 0.5 / 7) < 0.03).all()


@pytest.mark.parametrize("at", [0, 7])
def test_a_scale_at_its_end_steps_inwards(at):
    space = Space([8], [Kind.SCALE])
    children = Moves(space).mutate(np.full((1000, 1), at, np.int8), np.ones(1000, np.int64), rng())
    assert set(children.ravel().tolist()) == set(range(8)) - {at}


def test_permutations_change_by_swaps_and_shifts():
    space = product(permutation("p", range(6)))
    parents = np.tile(np.arange(6, dtype=np.int8), (2000, 1))
    moved = (Moves(space).mutate(parents, np.ones(2000, np.int64), rng()) != parents).sum(axis=1)
    assert set(moved.tolist()) == {2, 3, 4, 5, 6}  # a swap moves two, a shift all between
    assert (moved == 2).mean() > 0.5


def test_a_sequence_of_equal_elements_still_changes():  # a shift among equals would change nothing
    space = product(sequence("s", 5, "ab"))
    children = Moves(space).mutate(np.zeros((500, 5), np.int8), np.ones(500, np.int64), rng())
    assert (children.sum(axis=1) == 1).all()


def test_constrained_parameters_that_can_only_change_together_do():
    equal = Constraint((0, 1, 2), lambda rows: (rows == rows[:, :1]).all(axis=1))
    space = product(*(scale(n, range(2)) for n in "abc"), constraints=[equal])
    children = Moves(space).mutate(np.zeros((200, 3), np.int8), np.ones(200, np.int64), rng())
    assert (children == 1).all()


def test_parameters_with_a_single_allowed_combination_are_not_movable():
    pinned = Constraint((0, 1), lambda rows: rows.sum(axis=1) == 2)
    space = Space([2, 2, 1, 3], constraints=[pinned])
    assert Moves(space).movable.tolist() == [3]
    parents = space.sample(100, rng())
    assert (Moves(space).mutate(parents, np.ones(100, np.int64), rng())[:, 3] != parents[:, 3]).all()


def test_mutation_reaches_every_candidate_of_a_mixed_space():
    rule = Constraint((0, 2), lambda rows: rows[:, 0] != rows[:, 1])
    space = product(scale("a", range(3)), permutation("p", range(3)), sequence("s", 2, "xy"), constraints=[rule])
    moves, rows, seen = Moves(space), space.sample(200, rng()), set()
    for seed in range(40):
        rows = moves.mutate(rows, np.ones(200, np.int64), rng(seed))
        seen |= set(map(tuple, rows.tolist()))
    assert len(seen) == space.cardinality == (3 * 6 - 6) * 4


def spread(space, config, column, length):
    configs = space.check(np.array([config]))
    Moves(space).spread(configs, np.array([0]), np.array([column]), np.array([length]))
    return configs[0].tolist()


def test_a_value_spreads_over_those_that_follow():
    space = Space([3] * 6)
    assert spread(space, [0, 2, 0, 0, 1, 0], 1, 3) == [0, 2, 2, 2, 1, 0]
    assert spread(space, [0, 0, 0, 0, 1, 0], 4, 9) == [0, 0, 0, 0, 1, 1]
    assert spread(space, [0, 2, 0, 0, 1, 0], 1, 1) == [0, 2, 0, 0, 1, 0]


def test_a_value_spreads_in_several_rows_at_once_each_with_its_own_length():
    configs = np.zeros((3, 5), np.int8)
    configs[[0, 2], [0, 2]] = 1
    Moves(Space([2] * 5)).spread(configs, np.array([0, 2]), np.array([0, 2]), np.array([2, 3]))
    assert configs.tolist() == [[1, 1, 0, 0, 0], [0] * 5, [0, 0, 1, 1, 1]]


@given(spaces(), st.integers(0, 2**32))
def test_spreading_stays_allowed_and_skips_parameters_with_other_values(drawn, seed):
    space, rows = drawn
    configs = space.check(several(rows, seed))
    before, n = configs.copy(), len(configs)
    columns = rng(seed).integers(0, len(space), n)
    Moves(space).spread(configs, np.arange(n), columns, rng(seed).integers(1, 5, n))
    assert allowed_by(configs, rows)
    changed = np.argwhere(configs != before)
    assert all(space.sizes[j] == space.sizes[columns[i]] and j > columns[i] for i, j in changed)


@given(spaces(), st.integers(0, 2**32))
def test_grafted_children_are_allowed(drawn, seed):
    space, rows = drawn
    mothers, fathers = space.check(several(rows, seed)), space.check(several(rows, seed + 1))
    assert allowed_by(Moves(space).graft(mothers, fathers, rng(seed)), rows)


def test_a_graft_is_one_stretch_of_any_length_and_usually_short():
    children = Moves(Space([2] * 64)).graft(np.zeros((4000, 64), np.int8), np.ones((4000, 64), np.int8), rng())
    lengths = children.sum(axis=1)
    assert (abs(np.diff(children, axis=1, append=children[:, :1])).sum(axis=1) <= 2).all()  # round the end
    assert lengths.min() == 1 and lengths.max() == 64 and np.median(lengths) == pytest.approx(8, abs=1.5)
    assert abs(children.mean(axis=0) - children.mean()).max() < 0.05


def test_copy_copies_a_stretch_where_sizes_match_and_returns_whether_anything_changed():
    space = Space([3, 3, 3, 2, 3, 3, 3, 3])
    configs = np.array([[1, 2, 1, 1, 0, 0, 0, 0], [1] * 8, [0, 1, 0, 1, 2, 2, 2, 2]], np.int8)
    ones = np.arange(3)
    changed = Moves(space).copy(configs, ones, np.array([5, 0, 2]), np.array([0, 4, 6]), np.array([3, 3, 4]))
    assert configs.tolist() == [[1, 2, 1, 1, 0, 1, 2, 1], [1] * 8, [0, 1, 2, 1, 2, 2, 2, 2]]
    assert changed.tolist() == [True, False, True]


@given(spaces(), st.integers(0, 2**32))
def test_copies_stay_allowed(drawn, seed):
    space, rows = drawn
    configs, draw = space.check(several(rows, seed)), rng(seed)
    n, d = len(configs), len(space)
    before = configs.copy()
    changed = Moves(space).copy(
        configs, np.arange(n), draw.integers(0, d, n), draw.integers(0, d, n), draw.integers(1, 5, n)
    )
    assert allowed_by(configs, rows) and (changed == (configs != before).any(axis=1)).all()
