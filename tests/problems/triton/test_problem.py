import ctypes

import numpy as np
import pytest

import bbo_suite
from bbo_problems.triton import problem as module
from bbo_problems.triton.problem import TritonProblem
from bbo_problems.triton.spaces import TUNED
from bbo_suite import Evaluations, Status, UserError
from bbo_suite.core import libraries
from bbo_suite.recording.record import record
from bbo_suite.registry import Registry
from bbo_suite.supervised import Answer


def pretend_gpu(monkeypatch):
    """Make the problem load where there is neither a GPU nor Triton."""
    monkeypatch.setattr(module, "gpu_name", lambda: "a GPU")
    monkeypatch.setattr(module, "version", lambda library: "1.0")
    monkeypatch.setattr(module, "require", lambda *arguments: None)


class Answers:
    """In place of children: answers each request by a function."""

    def __init__(self):
        self.answer, self.asked = None, []

    def map(self, requests, workers=1):
        self.asked += requests
        return [self.answer(request) for request in requests]


@pytest.fixture
def children(monkeypatch):
    """Return what takes the place of the children that compile, and of the one that measures."""
    compiling, measuring = Answers(), Answers()
    monkeypatch.setattr("bbo_suite.supervised.problem.Workers", lambda service: compiling)
    monkeypatch.setattr(module, "Workers", lambda service: measuring)
    return compiling, measuring


@pytest.fixture
def made(monkeypatch):
    pretend_gpu(monkeypatch)
    return TritonProblem("softmax-8192x4096")


def test_without_a_gpu_the_error_says_so_whether_or_not_triton_is_installed(monkeypatch):
    def absent(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(UserError, match="needs an NVIDIA GPU"):
        bbo_suite.problem("triton/matmul-4096")


def test_without_triton_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(module, "gpu_name", lambda: "a GPU")
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'needs triton, .* run: pip install "bbo_suite\[triton\]"'):
        bbo_suite.problem("triton/matmul-4096")


def test_a_candidate_is_requested_by_its_values(made):
    assert made.request(made.default) == TUNED["softmax-8192x4096"].default
    assert made.paste(made.default) == "triton.Config({'ROWS': 1, 'COLUMNS': 4096}, num_warps=8, num_stages=2)"


def test_workers_compile_and_one_child_measures_what_compiled(children, made):
    rows = np.concatenate([made.default[None], made.default[None] - [0, 1, 0, 0]])
    good, slow = map(made.request, rows)
    compiling, measuring = children
    slowly = Answer(failure="timeout", reason="slow")
    compiling.answer = lambda request: slowly if request[1] == slow else Answer([1.0] * 5)
    measuring.answer = lambda request: Answer(0.5)
    made.workers = 2
    result = made.evaluate(rows)
    assert [request[1] for request in compiling.asked] == [good, slow] and measuring.asked == [good]
    assert result.values.tolist() == [0.5, np.inf] and result.status[1] == Status.TIMEOUT
    assert result.reasons == {1: "slow"}
    made.workers = 1
    made.evaluate(rows)
    assert len(compiling.asked) == 2 and measuring.asked[1:] == [good, slow]


def test_pytorch_is_a_baseline(children, made):
    compiling, _ = children
    compiling.answer = lambda request: Answer([np.log(2.0)] * request[-1])
    assert made.baselines() == {"PyTorch": pytest.approx(0.5)}
    assert compiling.asked[0][2] == "PyTorch"


@pytest.mark.parametrize("instance", TUNED)
def test_defaults_are_candidates(instance, monkeypatch):
    pretend_gpu(monkeypatch)
    problem = TritonProblem(instance)
    assert problem.space.allowed(problem.default_row()[None])[0]
    assert problem.space.cardinality == np.prod([len(values) for values in TUNED[instance].values.values()])


def test_a_recording_of_it_is_searched_without_a_gpu(made, monkeypatch, tmp_path):
    monkeypatch.setattr(TritonProblem, "facts", lambda self: {"GPU": "a GPU"})
    monkeypatch.setattr(TritonProblem, "evaluate", lambda self, rows: Evaluations.of(1e-3 * (1 + rows.sum(axis=1))))
    monkeypatch.setattr(TritonProblem, "compile", lambda self, rows: np.outer(rows.sum(axis=1), np.arange(1.0, 6.0)))
    file, rows = tmp_path / "softmax.json.gz", made.space.sample(20, np.random.default_rng(0))
    record(Registry(()), "triton/softmax-8192x4096", file, None, 0, (), 1, lambda count: lambda *done: None)
    measured, told = made.evaluate(rows).values, made.compile(rows)
    monkeypatch.undo()
    recorded = bbo_suite.problem(f"recorded:{file}")
    assert recorded.space.cardinality == made.space.cardinality and recorded.optimum == 1e-3
    np.testing.assert_array_equal(recorded.evaluate(rows).values, measured)
    np.testing.assert_array_equal(recorded.compile(rows), told)
