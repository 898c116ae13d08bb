"""`search` is the loop of all runs: in memory, with a log, and in one's own loop by `bbo_suite.optimizer`."""

import itertools

import numpy as np
import pytest

import bbo_suite
from bbo_suite import (
    Constraint,
    Evaluations,
    Level,
    Parts,
    Problem,
    Strategy,
    choice,
    permutation,
    product,
    scale,
    search,
)


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


SPACE = product(scale("tile", [8, 16, 32, 64]), choice("order", ["ij", "ji"]), scale("unroll", [1, 2, 4]))


def cost(values):
    return abs(values["tile"] - 32) + values["unroll"] + (values["order"] == "ij")


@pytest.mark.parametrize(
    "strategy",
    ["annealing", "evolution", "random", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mbo", "local"))],
)
def test_it_finds_the_best_of_a_small_space(strategy):
    optimizer = bbo_suite.optimizer(strategy, SPACE, budget=200, seed=1)
    while not optimizer.done:
        candidates = optimizer.ask(4)
        if candidates:
            optimizer.tell(candidates, [cost(each) for each in candidates])
    assert optimizer.best == {"tile": 32, "order": "ji", "unroll": 1} and optimizer.best_cost == 1


def test_rows_and_dictionaries_give_the_same_search():
    asked = []
    for rows in (True, False):
        optimizer = bbo_suite.optimizer("annealing", SPACE, budget=60, default={"tile": 8, "order": "ij", "unroll": 4})
        own = []
        while not optimizer.done:
            found = optimizer.ask_rows(5) if rows else optimizer.ask(5)
            own += [SPACE.describe(row) for row in found] if rows else found
            optimizer.tell(found, [cost(SPACE.describe(row) if rows else row) for row in found])
        asked.append(own)
    assert asked[0] == asked[1] and asked[0][0] == {"tile": 8, "order": "ij", "unroll": 4}


def test_an_exhausted_space_ends_with_done():
    optimizer = bbo_suite.optimizer("exhaustive", SPACE, budget=1000)
    count = 0
    while not optimizer.done:
        rows = optimizer.ask_rows(100)
        count += len(rows)
        if len(rows):
            optimizer.tell(rows, np.ones(len(rows)))
    assert count == SPACE.cardinality and len(optimizer.ask_rows(5)) == 0 and optimizer.ask() == []


def test_forbidden_candidates_are_not_shown_and_use_up_the_budget():
    tied = Constraint((0, 1), lambda rows: rows.sum(axis=1) % 2 == 0)
    space = product(scale("x", range(6)), scale("y", range(6)), permutation("p", "abc"), constraints=[tied])

    class Blind(Strategy):
        def ask(self, n):
            return np.column_stack([self.rng.integers(0, 6, (n, 2)), np.tile([0, 1, 2], (n, 1))])

    optimizer, shown = bbo_suite.optimizer(Blind, space, budget=40), 0
    while not optimizer.done:
        rows = optimizer.ask_rows(4)
        assert space.allowed(rows).all()
        shown += len(rows)
        if len(rows):
            optimizer.tell(rows, np.ones(len(rows)))
    assert 5 < shown < 40


def test_mistakes_are_named():
    optimizer = bbo_suite.optimizer("random", SPACE, budget=10)
    rows = optimizer.ask_rows(2)
    with pytest.raises(bbo_suite.UserError, match="tell the costs"):
        optimizer.ask()
    for candidates, costs, words in (
        (rows[::-1], [1, 2], "exactly"),
        (rows, [1], "one cost for each"),
        (rows, [1, np.nan], "one cost for each"),
        ([{"tile": 8}], [1], "missing"),
        ([{"tile": 8, "order": "ij", "unroll": 1, "z": 0}], [1], "no parameter"),
        ([{"tile": 9, "order": "ij", "unroll": 1}], [1], "no value 9"),
    ):
        with pytest.raises(bbo_suite.UserError, match=words):
            optimizer.tell(candidates, costs)
    with pytest.raises(bbo_suite.UserError, match="no strategy"):
        bbo_suite.optimizer("anealing", SPACE, budget=10)
    with pytest.raises(bbo_suite.UserError, match="heat"):
        bbo_suite.optimizer("annealing", SPACE, budget=10, options={"heta": 1.0})
    with pytest.raises(bbo_suite.UserError, match="budget"):
        bbo_suite.optimizer("annealing", SPACE, budget=0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"space": [1]}, r"the space must be a bbo_suite.Space, .*not \[1\]"),
        ({"strategy": 5}, "5 is not a strategy"),
        ({"seed": -1}, "seed must be 0 or more, not -1"),
        ({"n": 1.5}, "ask for 1 candidate or more, not 1.5"),
        ({"costs": (1.0 for _ in range(2))}, "give one cost for each of the 2 candidates"),
        ({"costs": [1j, 2]}, "give one cost for each of the 2 candidates"),
    ],
)
def test_mistakes_of_a_loop_of_ones_own_are_one_sentence(given, words):
    settings = {"strategy": "random", "space": SPACE, "seed": 0, "n": 2, "costs": [1, 2], **given}
    with pytest.raises(bbo_suite.UserError, match=words):
        optimizer = bbo_suite.optimizer(settings["strategy"], settings["space"], budget=20, seed=settings["seed"])
        optimizer.tell(optimizer.ask(settings["n"]), settings["costs"])


def test_a_parameter_cannot_have_the_name_of_another_ones_slot():
    with pytest.raises(ValueError, match=r"parameter 'x\[0\]' occurs twice"):
        bbo_suite.product(bbo_suite.choice("x[0]", [1, 2]), bbo_suite.permutation("x", [1, 2]))
