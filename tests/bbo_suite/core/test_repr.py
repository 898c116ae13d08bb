"""What an object prints is short and says what it holds, however large it is."""

import time

import numpy as np
from bbo_toys import Climber, ClimberOptions, Toy

from bbo_suite import Space, Task

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
