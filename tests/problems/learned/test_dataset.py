"""Data sets, kernels as graphs and their batches; the library of kernels has what the tasks of the suite have."""

import itertools

import numpy as np
import pytest

from bbo_problems.learned import dataset
from bbo_problems.learned.dataset import HELD_OUT, TRAINING, VALIDATION, generate, load, save
from bbo_problems.learned.fleet import TpuKernels, released
from bbo_problems.learned.kernels import BATCH_NODES, NODE_FEATURES, OPCODES, KernelGraphs, KernelReader, batched, pad
from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.hardware.all_settings import fitting_settings, setting_counts, times
from bbo_problems.tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS, compile_kernels
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.tasks.fusion_problem import FusionProblem
from bbo_problems.tensor_compiler.tasks.kernel_families import OneKernel
from bbo_problems.tensor_compiler.tasks.kernel_problem import FlagsProblem, TileProblem
from bbo_problems.tensor_compiler.tasks.programs import names
from bbo_suite import UserError

from ..tensor_compiler.small_programs import V5E, graph_of

pytestmark = pytest.mark.slow  # a data set of kernels is made with compiled code


def test_labels_are_positive_times_and_all_kernels_differ(kernels):
    assert len(kernels) == 60 and np.isfinite(kernels.seconds).all() and (kernels.seconds > 0).all()
    assert len(np.unique(kernels.rows, axis=0)) == len(kernels)
    for own in (kernels.tiles, kernels.flags):
        assert np.isfinite(own.seconds).all() and (own.seconds > 0).all() and (own.estimates > 0).all()
        assert own.starts[-1] == len(own.seconds) == len(own.values) == len(own.estimates)


@pytest.fixture
def first_plan(monkeypatch):
    """Take the kernels of the compiler's own layout and fusion only."""
    every = dataset.plans
    monkeypatch.setattr(dataset, "plans", lambda *arguments: itertools.islice(every(*arguments), 1))


def test_the_default_kernels_add_up_to_the_default(first_plan):
    problem = FusionProblem("rnn")
    cost = problem.evaluate(problem.default_row()[None]).values[0]
    every = generate(["rnn"], "v5e", 10**6, 1, np.random.default_rng(0), lambda *_: None)
    parts = problem.evaluate_parts(problem.default_row()[None]).parts
    assert set(np.round(every.seconds, 15)) == set(np.round(parts.costs, 15)) and parts.sums()[0] == pytest.approx(cost)


def test_all_tiles_of_a_kernel_cost_what_the_task_says(first_plan):
    problem = TileProblem("rnn#0")
    every = generate(["rnn"], "v5e", 10**6, 10**6, np.random.default_rng(0), lambda *_: None)
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


SIZE = "f32[1024,1024]{1,0}"
DIAMOND = (
    *(f"p{i} = {SIZE} parameter({i})" for i in range(2)),
    f"e = {SIZE} exponential(p0)",
    f"n = {SIZE} negate(e)",
    f"m = {SIZE} multiply(e, p1)",
    f"ROOT t = ({SIZE}, {SIZE}) tuple(n, m)",
)


def diamond(*fused):
    """Return the kernels of a program in which two operations use the exponential of a parameter."""
    graph = graph_of(*DIAMOND)
    layout = LayoutPass(graph, V5E)
    laid = layout.apply(layout.default())
    fusion = Fusion(laid, V5E)
    names = [layout.fusion_name(column) for column in fusion.columns]
    kernels = fusion.kernels(np.array([name in fused for name in names], np.int8))
    return KernelReader(graph).read(laid, fusion, kernels.result), [laid.name(r) for r in kernels.result]


def described(graphs, place):
    """Return the opcodes of a kernel, which of them are read, and its edges."""
    own = graphs.take(np.array([place]))
    opcodes = [OPCODES[number] for number in own.opcodes]
    read = own.nodes[:, NODE_FEATURES.index("is read from memory")].astype(bool)
    return opcodes, [name for name, is_read in zip(opcodes, read, strict=True) if is_read], own.edges.tolist()


def test_a_kernel_has_its_operations_those_of_its_guests_and_what_it_reads():
    graphs, names = diamond()
    opcodes, read, edges = described(graphs, names.index("e"))
    assert names == ["e"]  # the other two read what it makes, element by element
    assert sorted(opcodes) == ["exponential", "multiply", "negate", "parameter", "parameter"]
    assert read == ["parameter", "parameter"]
    ends = [(opcodes[start], opcodes[end]) for start, end in edges]
    assert sorted(ends) == [
        ("exponential", "multiply"),
        ("exponential", "negate"),
        ("parameter", "exponential"),
        ("parameter", "multiply"),
    ]


def test_an_operation_that_is_computed_twice_is_in_both_kernels():
    graphs, names = diamond("e -> n", "e -> m")
    assert len(graphs) == 2 and all("exponential" in described(graphs, i)[0] for i in range(2))
    root = graphs.nodes[:, NODE_FEATURES.index("is the result")]
    assert root.sum() == 2 and OPCODES[graphs.opcodes[np.flatnonzero(root)[names.index("n")]]] == "negate"


def test_every_kernel_is_in_one_batch_and_padding_is_no_node(kernels):
    batches = list(batched(kernels.graphs))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(kernels)))
    for own in batches:
        batch = pad(kernels.graphs, own)
        b, n = batch.opcodes.shape
        assert b * n == BATCH_NODES and len(own) <= b
        sizes = np.diff(kernels.graphs.node_starts)[own]
        assert np.array_equal(batch.real.sum(axis=1)[: len(own)], sizes) and not batch.real[len(own) :].any()
        assert (batch.edges[batch.edges[:, :, 0] < n].max(initial=0)) < sizes.max()


def test_a_kernel_that_is_too_large_is_refused():
    large = KernelGraphs(np.array([0, 500]), np.zeros(500, np.int16), np.zeros((500, 1)), np.zeros(2, int), None)
    with pytest.raises(ValueError, match="500 nodes; at most 128"):
        list(batched(large))


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
