"""The library of kernels: what it lists and times is what the tasks of the suite list and time."""

import itertools

import numpy as np
import pytest

from bbo_problems.learned.fleet import TpuKernels, released
from bbo_problems.tensor_compiler.hardware.all_settings import fitting_settings, setting_counts, times
from bbo_problems.tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS, compile_kernels
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.tasks.kernel_families import OneKernel
from bbo_problems.tensor_compiler.tasks.kernel_problem import FlagsProblem, TileProblem

pytestmark = pytest.mark.slow  # compiles code for single kernels


@pytest.mark.parametrize("made", [TileProblem, FlagsProblem])
def test_settings_and_times_are_those_of_the_tasks(made):
    """Every candidate of a task of one kernel, by the task and by the lists for many kernels."""
    machine, slots = MACHINES["v5e"], TILE_SLOTS if made is TileProblem else FLAG_SLOTS
    whole = made("rnn")
    compiled = compile_kernels(whole.kernels, np.ones(len(whole.kernels)), machine)
    starts, settings = fitting_settings(whole.kernels, compiled.chosen, slots, machine)
    owner = np.repeat(np.arange(len(whole.kernels)), np.diff(starts))
    seconds = times(whole.kernels, owner, settings, machine)
    for number in (0, 3, len(whole.kernels) - 1):
        task = made(f"rnn#{number}")
        rows = np.array(list(itertools.product(*map(range, task.space.sizes))))
        costs = task.evaluate(rows).values
        assert (seconds[starts[number] : starts[number + 1]] == costs[np.isfinite(costs)]).all()
        assert setting_counts(task.kernels)[0, int(made is FlagsProblem)] == len(rows)


def test_the_task_of_a_kernel_costs_what_its_settings_cost():
    whole = TileProblem("rnn")
    for version in (0, 1):
        task, rng = OneKernel(whole.kernels[0], range(9), released(version)), np.random.default_rng(0)
        rows = np.vstack([task.default_row(), task.space.sample(200, rng)])
        seconds = times(whole.kernels[:1], np.zeros(len(rows), int), task.settings(rows), released(version))
        assert (task.evaluate(rows).values == seconds).all() and np.isfinite(seconds).sum() > 20


def test_a_library_of_real_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library = TpuKernels("small")
    assert library.fingerprint() == TpuKernels("small").fingerprint()
    assert len(np.unique(library.content)) == len(library.content) > 1000
    every = np.flatnonzero(library.tunable(0))
    usual = library.default_seconds(0)
    given = library.defaults(0, every)
    for stage in range(2):
        picks = library.picks(every, given, stage)
        n, m, w = picks.shape
        seconds = library.seconds(0, np.repeat(every, m), picks.reshape(-1, w)).reshape(n, m)
        given = picks[np.arange(n), seconds.argmin(axis=1)]
    gain = np.maximum(0, 1 - seconds.min(axis=1) / usual[every])
    assert gain.mean() > 0.02 and np.corrcoef(gain, library.predicted[every])[0, 1] > 0.5
