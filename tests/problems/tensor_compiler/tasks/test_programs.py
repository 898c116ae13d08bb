"""Programs that do not ship are lowered when first used, once, and fail with a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.models import MODELS
from bbo_problems.tensor_compiler.models.catalogue import PROGRAMS
from bbo_problems.tensor_compiler.tasks import programs
from bbo_suite import UserError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_there_are_at_least_150_programs_of_every_model_of_the_published_tables() -> None:
    assert len(programs.names()) >= 150
    assert programs.names()[: len(MODELS)] == tuple(sorted(MODELS))
    for model in ("convdraw", "wavernn", "nmt", "ssd", "rnn", "resnet", "resnet_v2", "translate", "gpt2", "bert"):
        assert any(name.startswith(f"{model}-") for name in programs.names()), model


@pytest.mark.slow
def test_a_program_is_lowered_once(cache: Path) -> None:
    path = programs.program("wavernn-infer-b1-f80")
    assert cache in path.parents
    assert {file.name for file in path.parent.iterdir()} == {path.name, "lowered"}
    made = path.stat().st_mtime_ns
    assert programs.program("wavernn-infer-b1-f80") == path and path.stat().st_mtime_ns == made
    assert len(read_graph(path)) > 100


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_gives_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="XDG_CACHE_HOME"):
        programs.program("wavernn-infer-b1-f80")


@pytest.mark.slow
def test_a_lowered_program_is_a_task() -> None:
    problem = bbo_suite.problem("fusion/dlrm-kaggle-infer-b64@v6e")
    assert problem.evaluate(problem.default[None]).values[0] > 0


MODE = re.compile("train|adagrad|infer|prefill|encode|decode")
TRAINS = re.compile("train|adagrad")
LOWERED = {(name.split("-")[0], MODE.search(name)[0]): name for name in reversed(PROGRAMS) if name not in MODELS}
"""The first program of each model in each mode, since lowering takes a process and seconds."""
FIRST = {re.sub(r"(-[bsficl]\d+)+$", "", name): name for name in reversed(PROGRAMS)}
"""Of programs that differ in their sizes alone, the first one."""
TRACED = [pytest.param(name, marks=[pytest.mark.thorough] if TRAINS.search(name) else []) for name in FIRST.values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACED)
def test_the_shapes_of_every_program_fit(name: str) -> None:
    function, arguments = PROGRAMS[name]()
    assert jax.tree.leaves(jax.eval_shape(function, *arguments))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOWERED.values())
def test_every_model_lowers_in_every_mode_and_can_be_fused(name: str) -> None:
    problem = bbo_suite.problem(f"fusion/{name}")
    assert len(problem.space) > 10 and problem.evaluate(problem.default[None]).values[0] > 0


@pytest.mark.parametrize("name", ["fusion/resnet50#3", "tile/resnet50#", "tile/resnet50@v4#3", "fusion/rnn@v4@v5e"])
def test_an_unknown_program_is_named(name: str) -> None:
    with pytest.raises(UserError, match=r"no program '(resnet50#|rnn@|resnet50@)|unknown variant"):
        bbo_suite.problem(name)
