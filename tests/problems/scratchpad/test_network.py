"""Networks of our own: plans are feasible, move what they must, and the default is what its passes reach."""

import json

import numpy as np
import pytest

from bbo_problems.scratchpad.network.compile import Compiler, default_of
from bbo_problems.scratchpad.network.decode import decode, evaluate, group_bytes
from bbo_problems.scratchpad.network.memory import needed, whole
from bbo_problems.scratchpad.network.model import DEFAULTS, NetworkModel
from bbo_problems.scratchpad.network.networks import INSTANCES, Network, Role
from bbo_problems.scratchpad.network.space import GRANULE, Machine
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


def turned_chain():
    return chain(turned=True)


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


def products():
    """Two products in a row: (x y) z; the second sums over the columns of the first's result."""
    net = Network()
    x, y = net.tensor("x", (SIDE, SIDE), Role.INPUT), net.tensor("y", (SIDE, SIDE))
    first = net.operator("first", {"m": SIDE, "n": SIDE, "k": SIDE}, [(x, "mk"), (y, "kn")], "mn")
    sizes = {"m": SIDE, "n": SIDE, "k": SIDE}
    net.operator("second", sizes, [(first, "mk"), (net.tensor("z", (SIDE, SIDE)), "kn")], "mn", role=Role.OUTPUT)
    return net


@pytest.mark.parametrize(
    ("make", "wanted", "tensors"),
    [
        (products, {"first_across_the_banks": 0}, 6),  # what goes through DRAM lies as its reader needs it
        (products, {"first_across_the_banks": 1, "first_resident": 1}, 4),
        (products, {"first_across_the_banks": 0, "first_resident": 1}, 6),  # the second sums over columns
        (turned_chain, {"a_across_the_banks": 0, "b_across_the_banks": 1, "a_resident": 1}, 4),
        (
            turned_chain,
            {"a_across_the_banks": 0, "b_across_the_banks": 0, "a_resident": 1},
            6,
        ),  # b works across the other
        (turned_chain, {"a_across_the_banks": 1, "b_across_the_banks": 1, "a_resident": 1, "b_resident": 1}, 4),
        (turned_chain, {"a_across_the_banks": 1, "b_eliminate": 1, "a_resident": 1}, 2),  # y works as the turned a lies
    ],
)
def test_what_waits_across_other_banks_than_its_reader_needs_goes_through_dram(make, wanted, tensors):
    machine = Machine(make(), 1 << 20, banks=SIDE)
    assert moved(machine, row(machine, **wanted)) == tensors * WHOLE


def clashes(machine, op, x):
    """True if an operand that waits lies across another dimension than its operator needs."""
    net, plan, operator = machine.network, machine.plan, machine.network.operators[op]
    last = len(operator.operands) - 1

    def across(x):
        tensor = operator.operands[x].tensor
        axes = plan.axis[tensor, : len(net.tensors[tensor].shape)].tolist()
        bank = int(plan.bank[plan.root[tensor]])
        return operator.operands[x].axes[axes.index(bank)].dim if bank >= 0 else -1

    free = [d for d, whole in enumerate(operator.whole) if not whole]
    parallel = [d for d in free if not operator.reduced[d]]
    if len(free) > len(parallel):  # a product
        return across(x) >= 0 and across(x) not in (set(parallel) if x == last else set(free) - set(parallel))
    working = [d for d in map(across, range(last, -1, -1)) if d in parallel] + parallel + [-1]
    return across(x) >= 0 and across(x) != working[0]


@pytest.mark.parametrize("instance", [name for name in INSTANCES if name.endswith("@banks")])
def test_random_plans_pay_for_what_a_walk_over_their_operands_finds_across_other_banks(instance):
    problem = ScratchpadProblem(instance)
    machine, paid = NetworkModel(instance).machine, 0
    for config in problem.space.sample(50, np.random.default_rng(0)).astype(np.int64):
        value, plan = moved(machine, config), machine.plan
        extra = 0
        for op, operator in enumerate(machine.network.operators):
            for x, operand in enumerate(operator.operands if not plan.gone[op] else ()):
                if plan.served[op, x] and clashes(machine, op, x):
                    extra += 2 * whole(machine.net, int(plan.root[operand.tensor]), GRANULE)
        plan.clash[:] = False
        heads = np.flatnonzero(plan.ends).tolist()
        assert value == extra + sum(group_bytes(head, machine.at) for head in heads)
        paid += extra > 0
    assert paid > 5


@pytest.mark.parametrize("instance", ["bert@1MiB", "resnet@2MiB", "transition@0.5MiB", "lstm@1MiB", "bert@8MiB@banks"])
def test_random_plans_fit_and_move_at_least_what_they_must(instance):
    problem = ScratchpadProblem(instance)
    machine = NetworkModel(instance).machine
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
        assert 1.5 <= default / NetworkModel(instance).machine.network.compulsory(GRANULE) <= 5


def test_a_pasted_plan_counts_the_loads_that_it_avoids():
    problem = ScratchpadProblem("bert@4MiB")
    row, words = problem.default_row() * 0, "{0} of 16 loads of intermediate results are avoided, {0} of 4 transposes"
    assert words.format(0) in problem.paste(row)
    names = [problem.space.name(i) for i in range(len(problem.space))]
    transposes = [i for i, name in enumerate(names) if name.endswith(": eliminate")]
    row[transposes] = 1
    assert words.format(4) in problem.paste(row)


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


def test_an_operator_moves_less_with_more_memory():
    networks = [product(512, 768, 384), chain(turned=True)]
    for net in networks:
        best = []
        for capacity in (16 << 10, 64 << 10, 256 << 10, 2 << 20):
            compiler = Compiler(Machine(net, capacity))
            best.append(compiler.bytes(compiler.alone()))
        assert best == sorted(best, reverse=True)
    assert best[-1] == 6 * WHOLE


def test_a_stored_default_is_what_the_passes_make():
    assert json.loads(DEFAULTS.read_text())["transition@1MiB"] == default_of("transition@1MiB")
