"""Search on a model: what is evaluated is what the model likes best, and a model that helps nobody is said to."""

import numpy as np
import pytest

import bbo_suite
from bbo_strategies.screened import ModelName, Screened, ScreenedOptions
from bbo_suite import Evaluations, Problem, Space, UserError
from bbo_suite.cli.run import StudyOptions


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
