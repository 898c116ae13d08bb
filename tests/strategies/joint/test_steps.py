"""Steps of the joint search, and the rules of problems of several passes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbo_strategies.joint.strategy import Step, Subspace, divide, merged, parse_schedule, per_node
from bbo_suite import Constraint, Decisions, Kind, Space, UserError
from bbo_suite.conformance.kit import problem_rules

from .toy_compiler import Passes, ToyCompiler

KNOWN = ("annealing", "evolution", "exhaustive")


@pytest.mark.parametrize(
    "text, steps",
    [
        ("layout: annealing", [(("layout",), "annealing")]),
        (
            " fusion +layout:evolution ;tile: exhaustive",
            [(("layout", "fusion"), "evolution"), (("tile",), "exhaustive")],
        ),
        ("tile:annealing;layout:annealing", [(("tile",), "annealing"), (("layout",), "annealing")]),
    ],
)
def test_a_schedule_is_parsed(text, steps):
    assert parse_schedule(text, Passes("ab"), KNOWN) == tuple(Step(*step) for step in steps)


@pytest.mark.parametrize(
    "text, says",
    [
        ("layot: annealing", ["step 1", "pass 'layot'", "Did you mean 'layout'?"]),
        ("layout+: annealing", ["step 1", "pass ''"]),
        ("layout: annealing; layout+fusion: annealing", ["step 2", "pass 'layout' again"]),
        ("layout+fusion+layout: annealing", ["step 1", "pass 'layout' twice"]),
        ("layout: annealing;", ["step 2", "is empty"]),
        ("layout: annealing;;tile: annealing", ["step 2", "is empty"]),
        ("layout+fusion", ["step 1", "names no strategy", "layout+fusion: strategy"]),
        ("layout+fusion:  ", ["step 1", "names no strategy"]),
        ("layout: aneling", ["step 1", "'aneling'", "Did you mean 'annealing'?"]),
        ("layout: joint", ["step 1", "'joint'", "cannot search for itself", "Known: annealing"]),
        (": annealing", ["step 1", "pass ''"]),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy(text, says):
    with pytest.raises(UserError) as caught:
        parse_schedule(text, Passes("ab"), KNOWN)
    assert repr(text) in str(caught.value)
    assert all(part in str(caught.value) for part in says)


def part(sizes, share=1.0):
    return Subspace(np.array(sizes), np.arange(len(sizes)), np.arange(len(sizes)), share)


def test_decisions_of_several_passes_about_a_node_share_a_subspace():
    tile = Decisions(
        np.array([3, 4]), np.array([2, 3]), np.array([7, 8], np.uint64), np.array([1, 2]), np.array([1, 4.0])
    )
    flags = Decisions(
        np.array([6, 8]), np.array([5, 4]), np.array([7, 8], np.uint64), np.array([2, 1]), np.array([4.0, 1])
    )
    second, first = per_node([tile, flags])[::-1]
    assert (first.targets.tolist(), first.sizes.tolist(), first.share) == ([4, 6], [3, 5], 4.0)
    assert (second.targets.tolist(), second.sizes.tolist(), second.share) == ([3, 8], [2, 4], 1.0)
    assert merged([tile, flags])[0].targets.tolist() == [3, 4, 6, 8]


def test_the_whole_space_keeps_its_constraints_and_a_subspace_its_kinds():
    few = Constraint((0, 1), lambda rows: rows.sum(axis=1) < 2)
    flat = Space([3, 3, 2, 2], [0, 1, 2, 2], [-1, -1, 0, 0], constraints=[few])
    assert part([3, 3, 2, 2]).space(flat) is flat
    small = Subspace(np.array([2, 2]), np.array([1, 3]), np.arange(2)).space(flat)
    assert (small.sizes.tolist(), small.kinds.tolist()) == ([2, 2], [Kind.SCALE, Kind.CHOICE])


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(1e-9, 1e3)), min_size=1, max_size=8), st.floats(0, 300, width=32)
)
def test_shares_are_kept_up_to_the_caps_and_the_total_is_divided_completely(given_parts, total):
    caps, shares = np.array(given_parts).T
    got = divide(total, shares, caps)
    assert (got <= caps * (1 + 1e-9)).all() and (got >= 0).all()
    assert got.sum() == pytest.approx(min(total, caps.sum()))
    free = got < caps * (1 - 1e-9)
    levels = got / shares
    assert (
        np.allclose(levels[free], levels[free].max(initial=0))
        and (levels[~free] <= levels[free].min(initial=np.inf) * (1 + 1e-6)).all()
    )


def test_a_space_beyond_the_range_of_a_float_is_never_full():
    caps, shares = np.array([part([2] * 5000).candidates, part([3, 3]).candidates]), np.ones(2)
    assert divide(10, shares, caps).tolist() == [5.0, 5.0]
    assert divide(5000, shares, caps).tolist() == [4991.0, 9.0]


class Restless(Passes):
    def decisions(self, name, graph):
        self._cache.pop((name, graph), None)
        return super().decisions(name, graph)


class Greedy(Passes):
    def columns(self, name):
        return np.arange(len(self.source.kinds) * 5)


class Shifted(Passes):
    def default(self, name, graph):
        return super().default(name, graph) + 5


class Different(Passes):
    def default(self, name, graph):
        return 1 - np.minimum(super().default(name, graph), 1)


def broken(passes=Passes, cost=None):
    """Return the complaints about the toy with other passes or costs."""

    def load():
        problem = ToyCompiler()
        problem.passes = passes("abab")
        problem.cost = cost or problem.cost
        return problem

    found = []
    for _, rule in problem_rules(load):
        try:
            rule()
        except (AssertionError, UserError, ValueError) as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"passes": Restless}, "layout returns a new object"),
        ({"passes": Greedy}, "belongs to no pass, or to two"),
        ({"passes": Shifted}, "the default of layout is out of range"),
        ({"passes": Different}, "the choices of the passes cost"),
        ({"cost": lambda row: 1.0 + row.sum()}, "does not apply to its graph"),
    ],
)
def test_a_broken_compiler_breaks_its_rule(changes, says):
    assert any(says in complaint for complaint in broken(**changes))


def test_a_sound_compiler_breaks_none():
    assert broken() == []
