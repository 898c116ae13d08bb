"""What is measured once is not measured again, and a space that fits into the budget is covered."""

import numpy as np
import pytest

from bbo_strategies.archive import Archive
from bbo_suite import Space, Task, choice, product, scale
from bbo_suite.registry import Registry

SPACE = product(choice("a", "xyz"), scale("b", range(5)), choice("c", range(6)))

SHAPE = (3, 5, 6)
BATCHES = [
    ("annealing", 1),
    ("annealing", 100),
    ("local", 1),
    ("local", 100),
    ("mbo", 1),
    ("mbo", 20),
    ("mbo", 64),
    ("portfolio", 20),
    ("evolution", 7),
]


@pytest.mark.slow
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
        search.tell(configs, costs[np.ravel_multi_index(configs.T.astype(int), SHAPE)])
    assert len(seen) == len(set(seen)) == SPACE.cardinality


@pytest.mark.parametrize("name", ["annealing", "evolution", "local", "mbo"])
def test_candidates_measured_by_others_are_not_measured_again(name):
    rng = np.random.default_rng(0)
    strategy = Registry().strategy(name)
    search = strategy(Task("made/up", SPACE, np.zeros(3, np.int64), "seconds", None), 1000, rng, strategy.Options())
    everything = np.array(list(np.ndindex(SHAPE)))
    search.tell(first := search.ask(1), rng.random(1))
    known = everything[rng.permutation(len(everything))[:60]]
    search.observe(known, rng.random(60))
    asked = first.tolist()
    while len(configs := search.ask(1)):
        asked += configs.tolist()
        search.tell(configs, rng.random(1))
    assert not {*map(tuple, asked[1:])} & {*map(tuple, known.tolist())}


def test_the_archive_claims_each_candidate_once_and_then_nothing():
    space = Space([3, 4, 2])
    archive, rows = Archive(space, np.random.default_rng(0)), space.sample(50, np.random.default_rng(0))
    claimed = rows[archive.claim(rows, 5)]
    rest = [archive.others(10) for _ in range(8)]
    assert (
        len(claimed) == 5
        and sum(map(len, rest)) == 19
        and len(np.unique(np.concatenate([claimed, *rest]), axis=0)) == 24
    )
    assert rest[-1].shape == (0, 3) and rest[-1].dtype == space.dtype
