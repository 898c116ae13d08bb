import numpy as np
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.figures import space


def drawn(problem, **limits):
    loaded = bbo_suite.problem(problem)
    found = space.sample(loaded, np.random.default_rng(0), **limits)
    return found, *space.draw(loaded, found)


def test_a_small_space_is_drawn_whole():
    found, figure, data = drawn("recorded/triton-softmax-8192x4096")
    assert found.whole and len(found.costs) + found.failed == 480
    assert data["lowest"].min() == found.costs.min()
    assert data.groupby("parameter")["candidates"].sum().eq(len(found.costs)).all()
    assert "The whole space" in figure.get_supxlabel()


def test_a_large_space_is_sampled():
    found, figure, data = drawn("llvm/tree", most=60)
    assert not found.whole and len(found.costs) + found.failed == 60
    assert "random sample" in figure.get_supxlabel()
    assert (data["effect"] >= 0).all() and data["effect"].is_monotonic_decreasing


def test_a_parameter_that_decides_all_has_the_whole_effect():
    groups, logs = np.repeat([0, 1, 2], 50), np.repeat([0.0, 1.0, 5.0], 50)
    assert space._effect(groups, logs) == pytest.approx(1)
    assert space._effect(np.random.default_rng(0).integers(0, 3, 150), logs) < 0.05
    assert space._effect(np.zeros(150, int), logs) == 0


def test_what_cannot_be_drawn_is_named(suite):
    assert "128 parameters" in suite("show", "ehrlich/128x32-a", "--picture", "x.png").err
    assert "does not end in .svg" in suite("show", "llvm/tree", "--picture", "x.gif").err


def test_show_draws(suite, tmp_path):
    done = suite("show", "recorded/triton-softmax-8192x4096", "--picture", tmp_path / "space.svg")
    assert done.code == 0 and (tmp_path / "space.svg").stat().st_size > 1000


def test_a_space_where_nothing_succeeds_is_refused():
    problem = bbo_suite.problem("recorded/triton-softmax-8192x4096")
    with pytest.raises(UserError, match="too few for a picture"):
        space.sample(problem, np.random.default_rng(0), most=1)
