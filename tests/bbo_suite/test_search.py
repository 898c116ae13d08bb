"""`search` is the loop of all runs: in memory, and with a log."""

import itertools

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Level, Parts, Problem, Strategy, search


class Walk(Strategy):
    """Proposes rows in order, and keeps what it was told."""

    def __init__(self, task, budget, rng, options):
        super().__init__(task, budget, rng, options)
        self.next, self.told = 0, []

    def ask(self, n):
        rows = np.array([*itertools.product(range(3), repeat=2)][self.next : self.next + n], int).reshape(-1, 2)
        self.next += len(rows)
        return rows

    def receive(self, told):
        self.told.append(told)

    def diagnostics(self):
        return {"told": float(len(self.told))}


class Grid(Problem):
    instances = ("one",)

    def __init__(self, instance="one"):
        odd = bbo_suite.Constraint((0, 1), lambda rows: rows.sum(axis=1) != 3)
        self.space, self.default = bbo_suite.Space([3, 3], constraints=[odd]), np.zeros(2, int)

    def evaluate(self, configs):
        assert self.space.allowed(configs).all()
        return Evaluations.of(1.0 + configs.sum(axis=1))

    def evaluate_parts(self, configs):
        starts = np.arange(len(configs) + 1)
        costs = 1.0 + configs.sum(axis=1)
        return Evaluations(
            costs, np.zeros(len(configs), np.int8), parts=Parts(starts, costs.astype(np.uint64), costs * 0 + 1, costs)
        )


def test_it_yields_each_batch_and_ends_when_nothing_is_left():
    batches = list(search(Walk, Grid(), 100, batch=4))
    assert [len(batch.configs) for batch in batches] == [4, 4, 1]
    assert np.isinf(np.concatenate([batch.values for batch in batches])).sum() == 2  # forbidden
    assert [batch.diagnostics for batch in batches] == [{"told": 1.0}, {"told": 2.0}, {"told": 3.0}]
    assert all(batch.seconds >= 0 for batch in batches)


def test_the_last_batch_of_the_budget_is_not_told():
    batches = list(search(Walk, Grid(), 6, batch=4))
    assert [len(batch.configs) for batch in batches] == [4, 2] and batches[-1].diagnostics == {}


@pytest.mark.parametrize("level", Level)
def test_a_strategy_is_told_what_its_level_allows(level):
    seen = []

    class Seeing(Walk):
        def receive(self, told):
            seen.append(told.parts is not None)

    Seeing.level = level
    list(search(Seeing, Grid(), 8, batch=4))
    assert seen == [level is Level.PARTS]


@pytest.mark.parametrize("name", ["annealing", "local", "graybox"])
def test_it_makes_the_rows_of_a_stored_run(name, tmp_path):
    bbo_suite.run(name, "ordering/small-a", budget=60, batch=20, study="s", results=tmp_path, quiet=True)
    frame = bbo_suite.load("s", tmp_path)
    from bbo_suite.store.identity import Run, read_head

    run = Run.of(read_head(next(tmp_path.glob("s/*/run.json")).parent))
    found = search(name, "ordering/small-a", 60, run.generator(), batch=20)
    assert np.concatenate([batch.values for batch in found]).tolist() == frame["value"].tolist()


def test_options_are_named_and_mistakes_are_sentences():
    (batch,) = search("annealing", "ordering/small-a", 5, options={"heat": 2.0})
    assert len(batch.configs) == 5
    for arguments, words in (
        (("anealing", "ordering/small-a", 5), "no strategy"),
        (("annealing", "ordering/tiny", 5), "no problem"),
        (("annealing", "ordering/small-a", 5, 0), "no option"),
    ):
        with pytest.raises(bbo_suite.UserError, match=words):
            list(search(*arguments, options={"x": 1} if len(arguments) == 4 else None))
    Broken = type("Broken", (Walk,), {"ask": lambda self, n: np.full((n, 2), 9)})
    with pytest.raises(bbo_suite.UserError, match="Broken broke its contract"):
        list(search(Broken, Grid(), 5))
