import pytest
from toy_compiler import Passes

from bbo_strategies.joint.schedule import Step, default, parse
from bbo_suite import UserError

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
    assert parse(text, Passes("ab"), KNOWN) == tuple(Step(*step) for step in steps)


def test_the_default_is_that_of_xtat():
    assert default(Passes("ab")) == parse("layout+fusion: annealing; tile: exhaustive", Passes("ab"), KNOWN)


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
        parse(text, Passes("ab"), KNOWN)
    assert repr(text) in str(caught.value)
    assert all(part in str(caught.value) for part in says)
