"""A strategy is told what it says that it uses, and what it knows is stored with its runs."""

import json

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Constraint, Evaluations, Parts, Problem, Space, Strategy, Structure
from bbo_suite.conformance.kit import problem_rules, strategy_rules
from bbo_suite.conformance.strategy_rules import chain, described, uneven_parts
from bbo_suite.core.level import Level
from bbo_suite.store.identity import read_head
from bbo_suite.testing import play, start


class Hears(Strategy):
    """Proposes what follows from the parts that it was told."""

    level = bbo_suite.Level.PARTS
    told = ()

    def ask(self, n):
        return self.task.space.sample(n, np.random.default_rng(len(self.told)))

    def receive(self, told):
        self.told = (*self.told, told.parts)
        type(self).heard = self.told, self.task.structure


class Overhears(Hears):
    """Would take parts, but does not say so."""

    level = bbo_suite.Level.COSTS


class Careless(Hears):
    """Expects that parts are described, and never fail."""

    def receive(self, told):
        parts = told.parts
        assert parts is None or (self.task.structure.parts is not None and np.isfinite(parts.costs).all())


class Restless(Hears):
    """Proposes something else each time."""

    count = 0

    def receive(self, told):
        Restless.count += told.parts is not None

    def ask(self, n):
        return self.task.space.sample(n, np.random.default_rng(Restless.count))


class Telling(Problem):
    instances = ("toy",)

    def __init__(self, instance="toy"):
        self.space, self.default = Space([3] * 5), np.zeros(5, int)
        self.parts = described(self.space)

    def evaluate(self, configs):
        return Evaluations.of(uneven_parts(self.parts, configs, False).sums())

    def evaluate_parts(self, configs):
        parts = uneven_parts(self.parts, configs, False)
        return Evaluations(parts.sums(), np.zeros(len(configs), np.int8), parts=parts)

    def structure(self):
        plain = chain(self.space)
        return Structure(plain.starts, plain.neighbours, plain.features, plain.feature_names, parts=self.parts)


class Silent(Telling):
    def evaluate_parts(self, configs):
        raise AssertionError("nobody asked for parts")


def run(strategy, problem, results):
    bbo_suite.run(strategy, problem, budget=20, batch=10, study="s", results=results, quiet=True, jobs=1)
    return next(results.glob("s/*/run.json")).parent


@pytest.mark.slow
def test_a_strategy_that_does_not_say_so_hears_no_parts_and_sees_no_decomposition(tmp_path):
    run(Overhears, Silent, tmp_path / "costs")
    assert Overhears.heard == ((None,), None)
    Seeing = type("Seeing", (Overhears,), {"level": bbo_suite.Level.STRUCTURE})
    path = run(Seeing, Silent, tmp_path / "structure")
    assert Seeing.heard[0] == (None,) and Seeing.heard[1].parts is None
    assert Level.of(read_head(path)) is Level.STRUCTURE


def test_what_a_strategy_knows_is_stored_and_older_runs_saw_no_parts(tmp_path):
    path = run(Hears, Telling, tmp_path)
    head = read_head(path)
    assert isinstance(Hears.heard[0][0], Parts) and Hears.heard[1].parts is not None
    assert head["level"] == "parts" and Level.of(head) is Level.PARTS
    del head["level"]
    (path / "run.json").write_text(json.dumps(head | {"uses_structure": True}))
    assert Level.of(read_head(path)) is Level.STRUCTURE
    (path / "run.json").write_text(json.dumps(head | {"uses_structure": True, "uses_parts": True}))
    assert Level.of(read_head(path)) is Level.PARTS
    (path / "run.json").write_text(json.dumps(head | {"uses_parts": "yes"}))
    with pytest.raises(bbo_suite.UserError, match="uses_parts is neither"):
        read_head(path)


def test_an_export_keeps_what_a_strategy_knows(tmp_path, suite):
    run(Hears, Telling, tmp_path / "results")
    assert suite("export", "s", "--to", "csv", "--out", "s.csv").code == 0
    assert "level" in (tmp_path / "s.csv").read_text().splitlines()[0]
    assert suite("import", "s.csv", "--study", "again").code == 0
    again = next(tmp_path.glob("results/again/*/run.json")).parent
    assert Level.of(read_head(again)) is Level.PARTS
    lines = (tmp_path / "s.csv").read_text().splitlines()
    old = "\n".join(
        [lines[0].replace("level", "uses_structure"), *(line.replace("parts", "true") for line in lines[1:])]
    )
    (tmp_path / "old.csv").write_text(old)
    assert suite("import", "old.csv", "--study", "old").code == 0
    assert read_head(next(tmp_path.glob("results/old/*/run.json")).parent)["level"] == "structure"


def test_a_strategy_is_told_parts_in_memory():
    space = Space([3] * 5)
    known = described(space)

    def parts(rows):
        return uneven_parts(known, rows, False)

    strategy = start(Hears, space, 20, structure=chain(space))
    batches = list(play(strategy, lambda rows: parts(rows).sums(), 10, parts))
    assert np.allclose(strategy.told[0].sums(), batches[0][1])
    blind = start(Overhears, space, 20, structure=chain(space))
    list(play(blind, lambda rows: parts(rows).sums(), 10, parts))
    assert blind.told == (None,) and blind.task.structure is None


@pytest.mark.parametrize(("strategy", "broken"), [(Hears, False), (Careless, True), (Restless, True)])
def test_the_rule_for_parts(strategy, broken):
    rule = next(rule for words, rule in strategy_rules(strategy) if "tell the costs of parts" in words)
    if not broken:
        rule()
        return
    with pytest.raises(AssertionError):
        rule()


class Compiled(Telling):
    """Compiling tells how many parameters are not the default's, and their sum."""

    statistics = ("changed", "sum")
    answers = staticmethod(lambda configs: np.column_stack([(configs > 0).sum(axis=1), configs.sum(axis=1)]))

    def compile(self, configs):
        return self.answers(configs)


class Compiles(Hears):
    """Compiles what it proposes."""

    level = bbo_suite.Level.COMPILATION

    def ask(self, n):
        rows = super().ask(n)
        type(self).told_by_compiler = self.task.compiler(rows)
        return rows


@pytest.mark.parametrize("level", Level)
def test_a_strategy_may_compile_if_its_level_allows_and_the_problem_tells_anything(level):
    assert (Compiled().task(level).compiler is not None) == (level >= Level.COMPILATION)
    assert Telling().task(level).compiler is None
    assert Compiled().task(Level.PARTS).at(level).compiler is None or level >= Level.COMPILATION


def test_what_is_compiled_is_counted_and_stored(tmp_path):
    path = run(Compiles, Compiled, tmp_path)
    assert Compiles.told_by_compiler.shape == (10, 2) and read_head(path)["level"] == "compilation"
    assert bbo_suite.load("s", tmp_path)["value"].notna().all()
    assert "compilations" in (path / "diagnostics.csv").read_text()


def test_forbidden_candidates_are_not_compiled_and_wrong_answers_are_refused():
    problem = Compiled()
    problem.space = Space([3] * 5, constraints=[Constraint((0, 1), lambda rows: rows.sum(axis=1) < 4)])
    compiler = problem.task(Level.COMPILATION).compiler
    told = compiler(np.array([[2, 2, 0, 0, 0], [1, 1, 1, 0, 0]]))
    assert np.isnan(told[0]).all() and told[1].tolist() == [3, 3] and compiler.count == 1
    problem.answers = lambda configs: np.zeros(len(configs))
    with pytest.raises(bbo_suite.UserError, match="shape"):
        problem.task(Level.COMPILATION).compiler(problem.default_row()[None])


@pytest.mark.parametrize("draws", [False, True])
def test_the_rule_for_compiling(draws):
    problem, rng = Compiled(), np.random.default_rng(0)
    if draws:
        problem.answers = lambda configs: rng.random((len(configs), 2))
    rule = next(rule for words, rule in problem_rules(lambda: problem) if "compiling tells" in words)
    if not draws:
        rule()
        return
    with pytest.raises(AssertionError, match="something else"):
        rule()
