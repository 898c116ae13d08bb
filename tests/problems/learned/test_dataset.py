"""Data sets: labels that are times, settings that fit, files that hold no code."""

import numpy as np
import pytest

from bbo_problems.learned.dataset import load, save
from bbo_problems.learned.generate import HELD_OUT, TRAINING, VALIDATION, generate
from bbo_problems.tensor_compiler.tasks.fusion_problem import FusionProblem
from bbo_problems.tensor_compiler.tasks.kernel_problem import TileProblem
from bbo_problems.tensor_compiler.tasks.programs import names
from bbo_suite import UserError

pytestmark = pytest.mark.slow  # a data set of kernels is made with compiled code


def test_labels_are_positive_times_and_all_kernels_differ(kernels):
    assert len(kernels) == 60 and np.isfinite(kernels.seconds).all() and (kernels.seconds > 0).all()
    assert len(np.unique(kernels.rows, axis=0)) == len(kernels)
    for own in (kernels.tiles, kernels.flags):
        assert np.isfinite(own.seconds).all() and (own.seconds > 0).all() and (own.estimates > 0).all()
        assert own.starts[-1] == len(own.seconds) == len(own.values) == len(own.estimates)


def test_the_default_kernels_add_up_to_the_default(kernels):
    problem = FusionProblem("rnn")
    cost = problem.evaluate(problem.default_row()[None]).values[0]
    every = generate(["rnn"], "v5e", 10**6, 1, np.random.default_rng(0), lambda *_: None, only_default=True)
    parts = problem.evaluate_parts(problem.default_row()[None]).parts
    assert set(np.round(every.seconds, 15)) == set(np.round(parts.costs, 15)) and parts.sums()[0] == pytest.approx(cost)


def test_all_tiles_of_a_kernel_cost_what_the_task_says():
    problem = TileProblem("rnn#0")
    every = generate(["rnn"], "v5e", 10**6, 10**6, np.random.default_rng(0), lambda *_: None, only_default=True)
    rows = np.stack(np.unravel_index(np.arange(np.prod(problem.space.sizes)), problem.space.sizes), axis=1)
    values = problem.evaluate(rows).values
    wanted = np.sort(values[np.isfinite(values)])
    found = [every.tiles.take(np.array([k])).seconds for k in range(len(every))]
    assert any(len(own) == len(wanted) and np.allclose(np.sort(own), wanted) for own in found)


def test_a_saved_data_set_is_loaded_unchanged(kernels, tmp_path):
    save(kernels, tmp_path / "a.npz")
    back = load(tmp_path / "a.npz")
    assert back.programs == ("rnn",) and back.machine == "v5e" and np.array_equal(back.seconds, kernels.seconds)
    assert np.array_equal(back.graphs.edges, kernels.graphs.edges)
    assert np.array_equal(back.tiles.values, kernels.tiles.values)


def test_a_data_set_without_an_array_is_refused(kernels, tmp_path):
    save(kernels, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "seconds"}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match="is damaged"):
        load(tmp_path / "a.npz")


def test_programs_that_are_held_out_are_not_trained_on():
    models = {name.split("-")[0] for name in HELD_OUT.values()} | {"resnet50", "rnn"}
    assert not models & {name.split("-")[0] for name in TRAINING}
    assert set(HELD_OUT.values()) | set(TRAINING) <= set(names()) and set(VALIDATION) < set(TRAINING)
