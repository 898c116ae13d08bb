"""`graybox` learns from parts that were measured on other programs, and reads them from a safe file."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bbo_strategies.graybox import GrayBox, GrayBoxOptions
from bbo_strategies.graybox.pretraining import PartsOfOthers, load, save
from bbo_suite import Evaluations, Task, Told, UserError
from bbo_suite.core.options import identifying
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson

from .test_search import Kernels

pytestmark = pytest.mark.slow  # compiles long


def lesson(toy: Kernels) -> Lesson:
    def parts(configs: np.ndarray) -> Evaluations:
        told = toy.parts_of(configs)
        return Evaluations(told.sums(), np.zeros(len(configs), np.int8), parts=told)

    return Lesson(toy.task, 1.0, lambda configs: parts(configs).values, parts)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, shown = tmp_path_factory.mktemp("models") / "p.npz", []
    GrayBox.pretrain([lesson(Kernels())] * 2, 81, np.random.default_rng(0), GrayBoxOptions(), out, shown_by(shown))
    assert [done for done, _ in shown] == [40, 80] and shown[-1][1].endswith(" parts")
    return out


def shown_by(shown: list[tuple[int, str]]) -> object:
    return lambda done, words: shown.append((done, words))


def started(file: Path | str, task: Task | None = None) -> GrayBox:
    options = GrayBoxOptions(pretrained=PinnedFile(str(file)))
    return GrayBox(task or Kernels().task, 50, np.random.default_rng(0), options)


def test_it_predicts_before_it_measures(file):
    toy, strategy = Kernels(), started(file)
    assert max(strategy.diagnostics().values()) > 0.8  # a score, while no part is measured
    assert strategy.diagnostics()["parts"] == 0
    for _ in range(2):
        configs = strategy.ask(20)
        parts = toy.parts_of(configs)
        strategy.receive(Told(configs, parts.sums(), parts))
    alone = GrayBox(toy.task, 50, np.random.default_rng(0), GrayBoxOptions())
    first = alone.ask(20)
    alone.receive(Told(first, toy.parts_of(first).sums(), toy.parts_of(first)))
    assert parts.sums().min() < toy.parts_of(alone.ask(20)).sums().min()


def test_a_file_is_read_as_it_was_written(tmp_path):
    parts = PartsOfOthers(("a", "b"), 1, np.arange(6.0).reshape(3, 2), np.array([-1.0, 2.0, 0.5]))
    save(parts, tmp_path / "p.npz")
    declared = Kernels().parts
    declared.feature_names, declared.estimate = ("a", "b"), 1
    again = load(str(tmp_path / "p.npz"), declared, "toy/x")
    assert np.array_equal(again.features, parts.features) and np.array_equal(again.logs, parts.logs)


def changed(file: Path, out: Path, header: dict, arrays: dict) -> Path:
    with np.load(file) as stored:
        found = dict(stored)
    found["header"] = np.frombuffer(json.dumps(json.loads(found["header"].tobytes()) | header).encode(), np.uint8)
    found |= arrays
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    out.write_bytes(buffer.getvalue())
    return out


@pytest.mark.parametrize(
    ("header", "arrays", "complaint"),
    [
        ({"version": 99}, {}, "has version 99"),
        ({"features": ["x"]}, {}, "does not fit toy/kernels"),
        ({"estimate": 0}, {}, "does not fit toy/kernels"),
        ({}, {"logs": np.zeros(3)}, "is damaged"),
        ({}, {"logs": np.array([{}], object)}, "is not a file of parts for graybox"),
        ({}, {"features": np.zeros(3)}, "is damaged"),
        ({}, {"header": np.zeros(3, np.uint8)}, "is not a file of parts for graybox"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(file, tmp_path, header, arrays, complaint):
    with pytest.raises(UserError, match=complaint):
        started(changed(file, tmp_path / "p.npz", header, arrays))


def test_other_files_and_tasks_without_models_are_refused(file, tmp_path):
    (tmp_path / "p.npz").write_bytes(b"PK")
    with pytest.raises(UserError, match="not a file of parts"):
        started(tmp_path / "p.npz")
    toy = Kernels()
    bare = replace(toy.task, structure=replace(toy.task.structure, parts=None))
    with pytest.raises(UserError, match="without pretrained"):
        started(file, bare)
    given = (40, np.random.default_rng(0), GrayBoxOptions(), tmp_path / "new.npz", lambda *_: None)
    with pytest.raises(UserError, match="does not describe its parts"):
        GrayBox.pretrain([replace(lesson(toy), task=bare)], *given)
    other = Kernels()
    other.parts.feature_names = ("x", *other.parts.feature_names[1:])
    with pytest.raises(UserError, match="different features"):
        GrayBox.pretrain([lesson(toy), lesson(other)], *given)


def test_without_a_file_a_run_has_the_identity_that_it_had_before(file):
    assert "pretrained" not in identifying(GrayBoxOptions())
    assert identifying(GrayBoxOptions(pretrained=PinnedFile(str(file))))["pretrained"].startswith(f"{file}#")
