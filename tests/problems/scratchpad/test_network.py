"""Networks of our own: plans are feasible, move what they must, and the default is what its passes reach."""

import json

import numpy as np
import pytest

from bbo_problems.scratchpad.network.compile import Compiler
from bbo_problems.scratchpad.network.decode import decode
from bbo_problems.scratchpad.network.evaluation import evaluate
from bbo_problems.scratchpad.network.graph import Network, Role
from bbo_problems.scratchpad.network.instances import INSTANCES
from bbo_problems.scratchpad.network.machine import GRANULE, Machine
from bbo_problems.scratchpad.network.make_defaults import compiled
from bbo_problems.scratchpad.network.memory import needed
from bbo_problems.scratchpad.network.model import DEFAULTS
from bbo_problems.scratchpad.problem import ScratchpadProblem

pytestmark = pytest.mark.slow  # half a minute of compiling
SIDE = 64
WHOLE = SIDE * SIDE * 2
"""Bytes of a square tensor of the chain below."""


def chain(turned=False):
    """Two pointwise operators, with a transpose in between if wanted: x -> a (-> b) -> y."""
    net, sizes = Network(), {"i": SIDE, "j": SIDE}
    a = net.operator("a", sizes, [(net.tensor("x", (SIDE, SIDE), Role.INPUT), "ij")], "ij")
    if turned:
        a = net.operator("b", sizes, [(a, "ij")], "ji")
    net.operator("y", sizes, [(a, "ji" if turned else "ij")], "ij", role=Role.OUTPUT)
    return net


def product(m, n, k):
    net = Network()
    a, b = net.tensor("a", (m, k), Role.INPUT), net.tensor("b", (k, n))
    net.operator("product", {"m": m, "n": n, "k": k}, [(a, "mk"), (b, "kn")], "mn", role=Role.OUTPUT)
    return net


def row(machine, **wanted):
    """Return a candidate by the names of its decisions; of the others, scales take their last value."""
    config = machine.space.sizes - 1
    for column in range(len(config)):
        name = machine.space.name(column)
        if len(machine.space.values(column)) == 2 or "order" in name or "storage" in name or "stream" in name:
            config[column] = 0
        if name.replace(": ", "_").replace(" ", "_") in wanted:
            config[column] = wanted[name.replace(": ", "_").replace(" ", "_")]
    return config


def moved(machine, config):
    values = np.empty(1)
    evaluate(np.asarray(config, np.int64)[None], values, machine.at)
    return values[0]


TOGETHER = {"y_link_to_the_previous_operator": 1, "a_blocks_of_stream_0": 2}


@pytest.mark.parametrize(
    ("wanted", "capacity", "tensors"),
    [
        ({}, 1 << 20, 4),  # both go through DRAM
        ({"a_resident": 1}, 1 << 20, 2),
        (TOGETHER, 1 << 20, 2),
        ({"a_resident": 1}, WHOLE, 4),  # it does not fit beside the buffers
        (TOGETHER, WHOLE, 2),  # a fourth of it does
    ],
)
def test_what_stays_or_runs_together_does_not_move(wanted, capacity, tensors):
    machine = Machine(chain(), capacity)
    assert moved(machine, row(machine, **wanted)) == tensors * WHOLE


def test_an_eliminated_transpose_moves_nothing_and_its_reader_pays_for_short_runs():
    machine = Machine(chain(turned=True), 1 << 20)
    assert moved(machine, row(machine)) == 6 * WHOLE
    assert moved(machine, row(machine, b_eliminate=1)) == 4 * WHOLE
    assert moved(machine, row(machine, b_eliminate=1, y_link_to_the_previous_operator=1)) == 2 * WHOLE
    narrow = {"y_tile_0": 0, "y_tile_1": 0, "y_level_of_operand_0": 2, "y_level_of_result": 2}  # tiles of 4 x 4
    assert moved(machine, row(machine, b_eliminate=1, **narrow)) == 2 * WHOLE + 2 * WHOLE * GRANULE // 8


def test_a_reduction_outside_the_result_moves_sums_that_are_not_complete():
    machine = Machine(product(64, 64, 128), 1 << 20)
    tile = {"product_tile_2": 1, "product_order": 4, "product_level_of_result": 3}  # two steps, outside the others
    assert list(machine.space.values(3))[4].startswith("(2,")
    small = {"product_tile_0": 4, "product_level_of_operand_0": 0, "product_level_of_operand_1": 0}
    inputs, result = (64 * 128 + 128 * 64) * 2, 64 * 64
    assert moved(machine, row(machine, **tile, **small)) == inputs + result * 2
    changing = small | {"product_tile_0": 3}  # now the result's box changes inside the loop over steps
    steps = 128 // machine.space.values(2)[1]
    assert moved(machine, row(machine, **tile, **changing)) == inputs + result * 2 + (steps - 1) * 2 * result * 4


@pytest.mark.parametrize("instance", ["bert@1MiB", "resnet@2MiB", "transition@0.5MiB", "lstm@1MiB"])
def test_random_plans_fit_and_move_at_least_what_they_must(instance):
    problem = ScratchpadProblem(instance)
    machine = problem._model._machine
    configs = problem.space.sample(200, np.random.default_rng(0))
    values = problem.evaluate(configs).values
    assert (values >= machine.network.compulsory(GRANULE)).all()
    assert np.isfinite(values).all()
    for config in configs[:20].astype(np.int64):
        assert decode(config, machine.at)
        for head in np.flatnonzero(machine.plan.ends).tolist():
            assert needed(head, int(machine.plan.ends[head]), machine.at) <= machine.capacity


def test_the_default_is_better_than_simpler_compilers_and_lies_between_1_5_and_5_times_the_bound():
    for instance in INSTANCES:
        problem = ScratchpadProblem(instance)
        default = problem.evaluate(problem.default_row()[None]).values[0]
        assert default <= min(problem.baselines().values())
        assert 1.5 <= default / problem._model._machine.network.compulsory(GRANULE) <= 5


@pytest.mark.parametrize("size", [16, 32])
def test_the_best_of_one_operator_is_the_best_of_all_its_candidates(size):
    machine = Machine(product(size, 2 * size, size), 1500 * size // 16)
    row = Compiler(machine).alone()
    rng = np.random.default_rng(0)
    others = machine.space.sample(3000, rng).astype(np.int64)
    others[:, machine.columns.store[machine.columns.store >= 0]] = 0
    values = np.empty(len(others))
    evaluate(others, values, machine.at)
    assert moved(machine, row) <= values.min()


def test_an_operator_moves_less_with_more_memory_and_alone_they_add_up():
    networks = [product(512, 768, 384), chain(turned=True)]
    for net in networks:
        best = []
        for capacity in (16 << 10, 64 << 10, 256 << 10, 2 << 20):
            compiler = Compiler(Machine(net, capacity))
            best.append(compiler.bytes(compiler.alone()))
            assert sum(int(solution[0]) for solution in compiler._known.values()) == best[-1]
        assert best == sorted(best, reverse=True)
    assert best[-1] == 6 * WHOLE


def test_a_stored_default_is_what_the_passes_make():
    assert json.loads(DEFAULTS.read_text())["transition@1MiB"] == compiled("transition@1MiB")
