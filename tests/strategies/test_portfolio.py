"""Strategies made of others. The portfolio: shares, credit, and what its members learn.

Search on a model: what is evaluated is what the model likes best, and a model that helps nobody is said to.
"""

from __future__ import annotations

import numpy as np
import pytest

import bbo_suite
from bbo_strategies.portfolio import Portfolio
from bbo_strategies.screened import ModelName, Screened, ScreenedOptions
from bbo_suite import Evaluations, Problem, Space, Strategy, Task, UserError
from bbo_suite.cli.run import StudyOptions
from bbo_suite.registry import Registry

SPACE = Space(np.full(30, 2))


class Stays(Strategy):
    """Proposes the default for ever, and counts the candidates that it learns from."""

    def __init__(self, *args):
        super().__init__(*args)
        self.task.strategies.made.append(self)
        self.told = self.observed = 0

    def ask(self, n):
        return np.tile(self.task.default, (n, 1))

    def tell(self, configs, values):
        self.told += len(values)

    def observe(self, configs, values):
        self.observed += len(values)


class Descends(Stays):
    """Each candidate has one 1 more than the one before."""

    def ask(self, n):
        ones = min(30, self.told + 1)
        return np.tile((np.arange(30) < ones).astype(SPACE.dtype), (min(n, 2), 1))


class Covered(Stays):
    """Has nothing to try."""

    def ask(self, n):
        return np.empty((0, 30), SPACE.dtype)


class Known:
    """Finds strategies by their place in a list, and lists those that were made."""

    def __init__(self, *classes):
        self.classes, self.made = classes, []

    def strategy(self, name):
        return self.classes[int(name)]


def started(*classes, budget=400, least=0.1):
    """Return a portfolio and its members."""
    task = Task("made-up", SPACE, np.zeros(30, SPACE.dtype), "seconds", None, Known(*classes))
    options = Portfolio.Options(",".join(map(str, range(len(classes)))), least)
    return Portfolio(task, budget, np.random.default_rng(0), options), task.strategies.made


def play(player, members, rounds, n=10, cost=lambda rows: 100.0 - rows.sum(axis=1)):
    """Return which member was asked, once for each candidate."""
    asked: list[int] = []
    for _ in range(rounds):
        before = [member.told for member in members]
        player.tell(configs := player.ask(n), cost(configs))
        asked += np.repeat(range(len(members)), [m.told - b for m, b in zip(members, before, strict=True)]).tolist()
    return asked


def test_each_candidate_is_told_to_one_member_and_observed_by_all_others():
    player, members = started(Stays, Descends)
    asked = play(player, members, 20)
    assert [member.told + member.observed for member in members] == [len(asked)] * 2
    assert sum(member.told for member in members) == len(asked)


def test_the_member_that_improves_gets_all_but_the_floor():
    player, members = started(Stays, Descends, Stays)
    play(player, members, 12, n=2)
    assert np.allclose(player.shares, [0.1, 0.8, 0.1])


def test_credit_is_the_gain_per_candidate_and_older_gains_count_less():
    player, members = started(Stays, Stays, budget=100, least=0.0)  # a half-life is 10 candidates
    gains, trials, best = np.zeros(2), np.zeros(2), 20.0
    for cost in (20.0, 18.0, 17.0, 17.0, 14.0):
        asked = play(player, members, 1, cost=lambda rows, cost=cost: np.full(len(rows), cost))
        gains, trials = gains / 2, trials / 2
        gains[asked[0]], trials[asked[0]], best = gains[asked[0]] + best - cost, trials[asked[0]] + 10, cost
        if gains.any():
            rates = gains / np.maximum(1, trials)
            assert player.shares == pytest.approx(rates / rates.sum())


def test_the_budget_goes_to_other_members_when_one_has_nothing_left():
    assert set(play(*started(Covered, Stays), 5)) == {1}
    assert len(started(Covered, Covered)[0].ask(5)) == 0


@pytest.mark.parametrize("members", ["", "portfolio", "random,random", "nosuch"])
def test_wrong_members_are_refused(members):
    task = Task("made-up", SPACE, np.zeros(30, SPACE.dtype), "seconds", None, Registry())
    with pytest.raises(UserError):
        Portfolio(task, 100, np.random.default_rng(0), Portfolio.Options(members))


@pytest.mark.parametrize("name", ["annealing", "evolution", "mbo"])
def test_members_continue_from_candidates_of_others(name):
    task = Task("made-up", SPACE, np.zeros(30, SPACE.dtype), "seconds")
    member = Registry().strategy(name)
    player = member(task, 1000, np.random.default_rng(0), member.Options())
    for _ in range(3):
        configs = player.ask(10)
        player.tell(configs, 100.0 - configs.sum(axis=1))
    found = np.ones((1, 30), SPACE.dtype)
    player.observe(found, np.array([70.0]))
    assert ((player.ask(10) == found).mean(axis=1) > 0.6).any()


class Hills(Problem):
    """The cost of a row is 1 plus the sum of its indices; the model is as good as `error` says."""

    instances = ("x",)
    error = 0.0

    def __init__(self, instance):
        self.space, self.default, self.seen = Space(np.full(6, 4)), np.full(6, 3), 0

    def evaluate(self, configs):
        self.seen += len(configs)
        return Evaluations.of(1.0 + configs.sum(axis=1))

    def screen(self, model):
        if model != "good":
            raise UserError(f"there is no model {model!r} of the costs of {self.id}")
        return lambda configs: 1.0 + configs.sum(axis=1) + self.error


def best(problem, keep=5, seed=0, name="annealing", **more):
    found = Screened.variant(name)
    options = ScreenedOptions(**{"model": ModelName("good"), "keep": keep, "candidates": 600} | more)
    strategy = found(problem.task(), 100, np.random.default_rng(seed), options)
    batches = [strategy.ask(3)]
    while len(batches[-1]):
        batches.append(strategy.ask(3))
    return np.concatenate(batches)


def test_the_candidates_that_the_model_likes_best_are_evaluated_best_first():
    problem = Hills("x")
    rows = best(problem)
    assert len(np.unique(rows, axis=0)) == len(rows) == 5 and problem.seen == 0
    costs = rows.sum(axis=1)
    assert costs[0] == 0 and (np.diff(costs) >= 0).all() and costs[-1] <= 2


class Strange(Hills):
    def __init__(self, instance):
        super().__init__(instance)
        self.error = {"nan": np.nan, "drops": np.inf}[instance]


@pytest.mark.parametrize(
    ("instance", "complaint"),
    [("nan", "model good predicts no number"), ("drops", "expects every candidate of .* to fail; nothing is left")],
)
def test_a_model_that_predicts_nothing_is_refused_in_one_sentence(instance, complaint):
    with pytest.raises(UserError, match=complaint):
        best(Strange(instance))


def test_candidates_that_the_model_expects_to_fail_are_not_evaluated():
    class Half(Hills):
        def screen(self, model):
            return lambda configs: np.where(configs[:, 0] == 0, np.inf, 1.0 + configs.sum(axis=1))

    rows = best(Half("x"), keep=50)
    assert len(rows) and (rows[:, 0] > 0).all()


def test_a_problem_without_a_model_says_so():
    class Bare(Hills):
        def screen(self, model):
            return Problem.screen(self, model)

    with pytest.raises(UserError, match="no model 'good'"):
        best(Bare("x"))


def test_a_run_resumes_and_marks_what_it_knew(tmp_path):
    problem = Hills("x")
    problem.id = "hills/x"
    options = {"screened:random": {"model": "good", "keep": 4, "candidates": 200}}
    for _ in range(2):
        study = bbo_suite.run("screened:random", problem, budget=50, options=options, results=tmp_path, study="a")
    frame = study.frame()
    assert len(frame) == 4 and frame["value"].iloc[0] == frame["value"].min()
    assert '"level": "structure"' in next(tmp_path.rglob("run.json")).read_text()
    assert '"model": "good"' in next(tmp_path.rglob("run.json")).read_text()


def test_a_file_is_named_with_a_digest_and_a_word_is_not(tmp_path):
    (tmp_path / "m.npz").write_bytes(b"1")
    assert "#" in ModelName(str(tmp_path / "m.npz")) and ModelName("estimate") == "estimate"
    assert ModelName(ModelName(str(tmp_path / "m.npz"))) == ModelName(str(tmp_path / "m.npz"))


def test_strategies_without_variants_are_screened():
    names = Screened.variants()
    assert {"annealing", "evolution", "local"} <= set(names) and "screened" not in names and "optuna" not in names


def test_the_command_line_screens_every_strategy():
    chosen = (
        StudyOptions(strategy=["annealing", "local"], problem=["a/b"], screen="estimate", keep=3).to_study().strategies
    )
    assert list(chosen) == ["screened:annealing", "screened:local"]
    assert all((own.model, own.keep) == ("estimate", 3) for own in chosen.values())
