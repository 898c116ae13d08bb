import ctypes

import numpy as np
import pytest

import bbo_suite
from bbo_problems.triton import problem as module
from bbo_problems.triton.problem import TritonProblem
from bbo_problems.triton.spaces import TUNED
from bbo_suite import Evaluations, UserError
from bbo_suite.core import libraries
from bbo_suite.recording.record import record
from bbo_suite.registry import Registry


def pretend_gpu(monkeypatch):
    """Make the problem load where there is neither a GPU nor Triton."""
    monkeypatch.setattr(module, "gpu_name", lambda: "a GPU")
    monkeypatch.setattr(module, "version", lambda library: "1.0")
    monkeypatch.setattr(module, "require", lambda *arguments: None)


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


@pytest.mark.parametrize("instance", TUNED)
def test_defaults_are_candidates(instance, monkeypatch):
    pretend_gpu(monkeypatch)
    problem = TritonProblem(instance)
    assert problem.space.allowed(problem.default_row()[None])[0]
    assert problem.space.cardinality == np.prod([len(values) for values in TUNED[instance].values.values()])


def test_a_recording_of_it_is_searched_without_a_gpu(made, monkeypatch, tmp_path):
    monkeypatch.setattr(TritonProblem, "facts", lambda self: {"GPU": "a GPU"})
    monkeypatch.setattr(TritonProblem, "evaluate", lambda self, rows: Evaluations.of(1e-3 * (1 + rows.sum(axis=1))))
    file, rows = tmp_path / "softmax.json.gz", made.space.sample(20, np.random.default_rng(0))
    record(Registry(()), "triton/softmax-8192x4096", file, None, 0, (), 1, lambda count: lambda *done: None)
    measured = made.evaluate(rows).values
    monkeypatch.undo()
    recorded = bbo_suite.problem(f"recorded:{file}")
    assert recorded.space.cardinality == made.space.cardinality and recorded.optimum == 1e-3
    np.testing.assert_array_equal(recorded.evaluate(rows).values, measured)
