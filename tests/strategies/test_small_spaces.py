"""What is measured once is not measured again, and a space that fits into the budget is covered."""

import numpy as np
import pytest

from bbo_suite import Task, choice, product, scale
from bbo_suite.registry import Registry

SPACE = product(choice("a", "xyz"), scale("b", range(5)), choice("c", range(6)))


BATCHES = [
    ("annealing", 1),
    ("annealing", 100),
    ("local", 1),
    ("local", 100),
    ("mbo", 20),
    ("portfolio", 20),
    ("evolution", 7),
]


@pytest.mark.parametrize(("name", "batch"), BATCHES)
def test_a_small_space_is_covered_without_repeats(name, batch):
    rng = np.random.default_rng(batch)
    costs = rng.random(SPACE.cardinality)
    strategy = Registry().strategy(name)
    task = Task("made/up", SPACE, np.zeros(3, np.int64), "seconds", None)
    search = strategy(task, 1000, rng, strategy.Options())
    seen = []
    while len(configs := search.ask(batch)):
        seen += [tuple(row) for row in configs.tolist()]
        search.tell(configs, costs[np.ravel_multi_index(configs.T.astype(int), (3, 5, 6))])
    assert len(seen) == len(set(seen)) == SPACE.cardinality
