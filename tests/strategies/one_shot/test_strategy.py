"""The one-shot tuner: what it proposes, what it refuses, and the files of its models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.tasks.kernel_families import TileFamily
from bbo_strategies.one_shot import OneShot
from bbo_strategies.one_shot.groups import ranked
from bbo_strategies.one_shot.predictor import FAILED, FILE, labels, load
from bbo_strategies.one_shot.strategy import SHIPPED
from bbo_suite import Enumeration, Level, Space, UserError
from bbo_suite.core.evaluation import default_value
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson

pytestmark = pytest.mark.slow  # compiles networks


def lesson(problem, level=Level.STRUCTURE):
    return Lesson(problem.task(level), default_value(problem), lambda rows: problem.evaluate(rows).values)


@pytest.fixture(scope="session")
def problems():
    family, rng = TileFamily("uniform"), np.random.default_rng(0)
    drawn = [family.sample(rng) for _ in range(8)]
    for number, problem in enumerate(drawn):
        problem.id = f"tile/uniform #{number}"
    return drawn


@pytest.fixture(scope="session")
def lessons(problems):
    return [lesson(problem) for problem in problems]


@pytest.fixture(scope="session")
def model(lessons, tmp_path_factory):
    """Return the file of a small model, and the messages of its training."""
    out, told = tmp_path_factory.mktemp("models") / "m.npz", []
    options = OneShot.Options(steps=50)
    OneShot.pretrain(lessons, 8 * 64, np.random.default_rng(1), options, out, lambda n, words: told.append((n, words)))
    return out, told


def started(task, budget, **options):
    return OneShot(task, budget, np.random.default_rng(0), OneShot.Options(**options))


def test_pretraining_stays_within_its_budget_and_says_where_it_is(model):
    _, told = model
    assert max(n for n, _ in told) <= 8 * 64
    assert "step 50 of 50, loss" in told[-1][1]


def test_candidates_come_in_the_order_of_predictions_whatever_is_told(problems, model):
    task = problems[0].task(Level.STRUCTURE)
    whole = started(task, 30, pretrained=PinnedFile(str(model[0]))).ask(30)
    parts = started(task, 30, pretrained=PinnedFile(str(model[0])))
    first = parts.ask(7)
    parts.tell(first, np.full(len(first), np.inf))
    assert np.array_equal(np.vstack([first, parts.ask(30)]), whole[: 7 + 30])
    assert len(np.unique(whole, axis=0)) == len(whole)


def test_it_ends_when_all_candidates_are_proposed(problems, model):
    task = problems[0].task(Level.STRUCTURE)
    all_of_them = int(task.space.cardinality)
    search = started(task, 10**6, pretrained=PinnedFile(str(model[0])))
    assert len(search.ask(10**6)) == all_of_them
    assert len(search.ask(5)) == 0


@pytest.mark.parametrize("problem", ["kernel/rnn", "kernel/rnn#0"])
def test_a_model_ships_for_tile_and_flags_together(problem):
    loaded = bbo_suite.problem(problem)
    rows = started(loaded.task(Level.STRUCTURE), 5).ask(5)
    values = loaded.evaluate(rows).values
    assert values.min() < 1.05 * loaded.evaluate(loaded.default[None]).values[0]


def test_a_task_that_the_model_does_not_know_is_refused(problems, model):
    pinned = PinnedFile(str(model[0]))
    with pytest.raises(UserError, match="no model of one-shot"):
        started(bbo_suite.problem("fusion/rnn").task(Level.STRUCTURE), 5)
    with pytest.raises(UserError, match="does not fit fusion/rnn"):
        started(bbo_suite.problem("fusion/rnn").task(Level.STRUCTURE), 5, pretrained=pinned)
    with pytest.raises(UserError, match="does not fit"):
        started(problems[0].task(Level.COSTS), 5, pretrained=pinned)
    task = bbo_suite.problem("tile/rnn#0").task(Level.STRUCTURE)
    wide = replace(task, space=Space([2] * 4), default=np.zeros(4, np.int8), structure=joined(task.structure, 4))
    with pytest.raises(UserError, match="4 parameters"):
        started(wide, 5, pretrained=pinned)


def test_a_model_of_spaces_that_declare_nothing_serves_another_device(tmp_path):
    """As with recorded spaces: it knows names and values of parameters only."""
    spaces = [bbo_suite.problem(f"kernel/rnn#0@{device}") for device in ("v4", "v5e", "v5p")]
    out, options = tmp_path / "m.npz", OneShot.Options(steps=200)
    lessons = [lesson(one, Level.COSTS) for one in spaces]
    OneShot.pretrain(lessons, 3 * 200, np.random.default_rng(1), options, out, lambda *_: None)
    held, pinned = bbo_suite.problem("kernel/rnn#0@v6e"), PinnedFile(str(out))
    values = held.evaluate(started(held.task(Level.COSTS), 5, pretrained=pinned).ask(5)).values
    every = held.evaluate(Enumeration(held.space, np.random.default_rng(0)).rows(0, held.space.cardinality)).values
    assert values[0] < np.quantile(every, 0.02) and values.min() < 1.05 * every.min()
    with pytest.raises(UserError, match="trained on 9 other features"):
        started(held.task(Level.STRUCTURE), 5, pretrained=pinned)
    with pytest.raises(UserError, match="different features"):
        OneShot.pretrain([lesson(spaces[0]), lessons[1]], 64, np.random.default_rng(1), options, out, print)


def joined(structure, d):
    """Return a structure of `d` parameters that all interact."""
    others = np.array([[j for j in range(d) if j != i] for i in range(d)], np.int32)
    features = np.repeat(structure.features[:1], d, axis=0)
    return replace(
        structure, starts=np.arange(d + 1) * (d - 1), neighbours=others.ravel(), features=features, parts=None
    )


def test_only_tasks_with_one_group_teach(lessons, tmp_path):
    problem = bbo_suite.problem("tile/rnn")
    lesson = replace(lessons[0], task=problem.task(Level.STRUCTURE))
    arguments = 32, np.random.default_rng(0), OneShot.Options(steps=1), tmp_path / "x", lambda n, words: None
    with pytest.raises(UserError, match="groups of parameters"):
        OneShot.pretrain([lesson], *arguments)
    failing = replace(lessons[0], evaluate=lambda rows: np.full(len(rows), np.inf))
    with pytest.raises(UserError, match="two candidates that work"):
        OneShot.pretrain([failing], *arguments)
    assert not (tmp_path / "x").exists()


def test_labels_are_relative_and_leave_out_what_teaches_nothing():
    given = labels(np.array([1.0, np.e, np.e**2, np.inf, 1e9]))
    assert np.allclose(given, [-1.5, -0.5, 0.5, FAILED, FAILED])
    for useless in ([np.inf, np.inf], [2.0, 2.0, np.inf], [0.0, 1.0], [-1.0, 2.0]):
        assert labels(np.array(useless)) is None


def test_a_search_on_predictions_finds_the_best_of_a_large_space():
    space = Space([10] * 8)
    asked = []

    def score(rows):
        asked.append(len(rows))
        return np.where(rows[:, 0] == 9, np.inf, np.abs(rows.astype(float) - 3).sum(axis=1)).astype(np.float32)

    rows = ranked(space, np.zeros(8, np.int8), score, 20_000, np.random.default_rng(0))
    assert np.array_equal(rows[0], np.full(8, 3))
    assert 10_000 <= sum(asked) <= 20_000
    assert (np.diff(score(rows)) >= 0).all() and (rows[:, 0] != 9).all()


def test_a_model_that_ships_is_small_and_whole():
    files = sorted(SHIPPED.glob("*.npz"))
    assert [file.stem for file in files] == ["kernel"]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert all(load(file.read_bytes(), file.name).places == 9 for file in files)


@pytest.mark.parametrize("header", [{"places": 5}, {"places": -1}, {"features": ["x"]}, {"architecture": "eval"}])
def test_a_header_that_does_not_fit_is_refused(model, tmp_path, header):
    stored, arrays = FILE.load(model[0].read_bytes(), "m")
    FILE.save(tmp_path / "m.npz", stored | header, arrays)
    with pytest.raises(UserError, match="damaged"):
        load((tmp_path / "m.npz").read_bytes(), "m")


def test_weights_must_be_finite(model, tmp_path):
    header, arrays = FILE.load(model[0].read_bytes(), "m")
    FILE.save(tmp_path / "m.npz", header, arrays | {"1": np.full_like(arrays["1"], np.nan)})
    with pytest.raises(UserError, match="damaged"):
        load((tmp_path / "m.npz").read_bytes(), "m")
