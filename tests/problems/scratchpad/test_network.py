"""Networks of our own: plans are feasible, move what they must, and the default is what its passes reach.

The closed form of an operand's traffic is what a walk over all loops counts, and what islpy counts.
"""

import itertools
import json
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from bbo_problems.scratchpad.network.compile import Compiler, default_of
from bbo_problems.scratchpad.network.decode import decode, evaluate, group_bytes
from bbo_problems.scratchpad.network.memory import needed, traffic, waiting, whole
from bbo_problems.scratchpad.network.model import DEFAULTS, NetworkModel
from bbo_problems.scratchpad.network.networks import INSTANCES, Network, Role
from bbo_problems.scratchpad.network.space import AXES, DIMS, GRANULE, Machine, State, arrays, columns, new_plan
from bbo_problems.scratchpad.problem import ScratchpadProblem
from bbo_suite.compiled import handle

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


class Loops(NamedTuple):
    tile: NDArray
    order: NDArray
    blocks: NDArray
    streams: NDArray


def random_product(rng):
    """A matrix product."""
    m, n, k = (int(v) for v in rng.integers(1, 9, 3))
    net = Network()
    a, b = net.tensor("a", (m, k), Role.INPUT), net.tensor("b", (k, n))
    net.operator("product", {"m": m, "n": n, "k": k}, [(a, "mk"), (b, "kn")], "mn")
    return net


def convolution(rng):
    """A convolution along one dimension, with strides, padding and holes between windows."""
    stride, window = int(rng.integers(1, 4)), int(rng.choice([1, 3]))
    pad = int(rng.integers(0, (window + 1) // 2 + 1)) if window > 1 else 0
    size, channels = int(rng.integers(3, 9)) * stride, int(rng.integers(1, 5))
    rows = (size + 2 * pad - window) // stride + 1
    net = Network()
    a, b = net.tensor("a", (2, size, channels), Role.INPUT), net.tensor("b", (window, channels, 3))
    sizes = {"n": 2, "y": rows, "o": 3, "c": channels, "j": window}
    window_of = ("y", stride, "j", pad)
    if window == 1:
        del sizes["j"]
        net.tensors[b] = type(net.tensors[b])("b", (channels, 3), Role.WEIGHT)
        window_of = ("y", stride, "", pad)
    net.operator("conv", sizes, [(a, ["n", window_of, "c"]), (b, "jco" if window > 1 else "co")], "nyo")
    return net


def drawn(make, seed):
    """Return a network of one operator, an operand, its loops, its level, its storage order, bytes and granule."""
    rng = np.random.default_rng(seed)
    net = make(rng)
    op = net.operators[0]
    tiled = [d for d, whole in enumerate(op.whole) if not whole]
    tile, blocks, order = np.ones(DIMS, np.int64), np.ones(DIMS, np.int64), np.zeros(DIMS, np.int64)
    blocks[: len(op.extents)] = tile[: len(op.extents)] = op.extents
    streams = np.full(2, -1)
    parallel = [d for d in tiled if not op.reduced[d]]
    chosen = rng.permutation(parallel)[: rng.integers(0, 3)]
    streams[: len(chosen)] = chosen
    for d in chosen:
        blocks[d] = rng.integers(1, op.extents[d] + 1)
    for d in tiled:
        tile[d] = rng.integers(1, blocks[d] + 1)
    order[: len(tiled)] = rng.permutation(tiled)
    x = int(rng.integers(len(op.operands)))
    rank = len(op.operands[x].axes)
    fast = np.concatenate([rng.permutation(rank), np.zeros(AXES - rank, np.int64)])
    level = int(rng.integers(0, len(tiled) + 1))
    return net, x, Loops(tile, order, blocks, streams), level, fast, int(rng.integers(1, 5)), int(rng.choice([1, 8]))


def closed(net, x, loops, level, fast, size, granule, banks=0, across=-1):
    out, plan, net_arrays = np.zeros(4, np.int64), new_plan(1, len(net.tensors)), arrays(net)
    for name, values in loops._asdict().items():
        getattr(plan, name)[0] = values
    plan.across[0, x] = across
    plan.level[0, x], plan.fast[net.operators[0].operands[x].tensor] = level, fast
    state = State(net_arrays, columns(net, net_arrays)[0], plan, np.array([0, granule, banks]))
    memory = handle(state)
    traffic(memory.ctypes.data, 0, x, size, out)
    return out.tolist()


def intervals(op, d, loops, tiled_outside):
    """Return the pieces of a dimension for each block and tile: {(block, tile): (start, length)}."""
    extent, block = op.extents[d], loops.blocks[d]
    found = {}
    for b, start in enumerate(range(0, extent, block)):
        end = min(extent, start + block)
        step = loops.tile[d] if tiled_outside else block
        for t, inner in enumerate(range(start, end, step)):
            found[b, t] = inner, min(step, end - inner)
    return found


def touched(net, op, x, axis, piece):
    """Return the elements of an axis that a piece needs."""
    where = op.operands[x].axes[axis]
    window = op.extents[where.window] if where.window >= 0 else 1
    size = net.tensors[op.operands[x].tensor].shape[axis]
    start, length = piece
    spots = {where.stride * i + j - where.pad for i in range(start, start + length) for j in range(window)}
    return frozenset(spot for spot in spots if 0 <= spot < size)


def walk(net, x, loops, level, fast, size, granule, banks=0, across=-1):
    """Run the loops outside the buffer; the load stands in the innermost one that changes the operand's box."""
    op = net.operators[0]
    outside = [int(d) for d in loops.order[:level]]
    names = [("block", int(d)) for d in loops.streams if d >= 0] + [("tile", d) for d in outside]
    pieces = [intervals(op, d, loops, d in outside) for d in range(len(op.extents))]
    mine = [pieces[axis.dim] for axis in op.operands[x].axes]
    ranges = [range(1 + max(key[kind == "tile"] for key in pieces[d])) for kind, d in names]
    boxes = {}
    for values in itertools.product(*ranges):
        at = dict(zip(names, values, strict=True))
        keys = [(at.get(("block", d), 0), at.get(("tile", d), 0)) for d in range(len(op.extents))]
        if all(key in found for key, found in zip(keys, pieces, strict=True)):
            spots = [found[keys[axis.dim]] for found, axis in zip(mine, op.operands[x].axes, strict=True)]
            boxes[values] = tuple(touched(net, op, x, a, piece) for a, piece in enumerate(spots))
    depth = max((i + 1 for i in range(len(names)) if changes_box(boxes, i)), default=0)
    loads = {values[:depth]: box for values, box in boxes.items()}
    cut = [len(set(found.values())) > 1 for found in mine]
    moved = sum(bytes_of(net, op, x, box, cut, fast, size, granule) for box in loads.values())
    return moved, max(places(box, banks, across) for box in boxes.values()), depth > 0


def places(box, banks, across):
    """Return the places of a box in the scratchpad; along the axis across the banks each row takes a place in all."""
    found = 1
    for axis, spots in enumerate(box):
        rows = {i // banks for i in range(len(spots))} if axis == across else spots
        found *= len(rows) * (banks if axis == across else 1)
    return found


def changes_box(boxes, loop):
    """True if two iterations that differ in one loop's counter only have different boxes."""
    seen = {}
    return any(seen.setdefault(v[:loop] + v[loop + 1 :], box) != box for v, box in boxes.items())


def bytes_of(net, op, x, box, cut, fast, size, granule):
    """Return the bytes of a box in runs along the axes in storage order; an axis that is cut ends the run."""
    shape = net.tensors[op.operands[x].tensor].shape
    run, runs, open_ = 1, 1, True
    for axis in fast[: len(box)]:
        spots = sorted(box[axis])
        segments = 1 + sum(b > a + 1 for a, b in itertools.pairwise(spots))
        if open_:
            run, runs = run * len(spots) // segments, runs * segments
            where = op.operands[x].axes[axis]
            window = op.extents[where.window] if where.window >= 0 else 1
            open_ = len(spots) == shape[axis] and not cut[axis] and where.stride <= window
        else:
            runs *= len(spots)
    return runs * -(-run * size // granule) * granule


@pytest.mark.parametrize("make", [random_product, convolution])
def test_the_closed_form_is_what_a_walk_counts(make):
    for seed in range(300):
        case = drawn(make, seed)
        one, passes, changes, box = closed(*case)
        moved, largest, several = walk(*case)
        assert (one * passes, box, bool(changes)) == (moved, largest, several), seed


@pytest.mark.parametrize("make", [random_product, convolution])
def test_a_box_across_banks_takes_the_places_that_a_walk_counts_and_moves_the_same(make):
    padded = 0
    for seed in range(100):
        case, rng = drawn(make, seed), np.random.default_rng(seed)
        banks, across = int(rng.integers(2, 5)), int(rng.integers(len(case[0].operators[0].operands[case[1]].axes)))
        one, passes, changes, box = closed(*case, banks, across)
        assert (one * passes, box, bool(changes)) == walk(*case, banks, across), seed
        assert [one, passes, changes] == closed(*case)[:3]
        padded += box > closed(*case)[3]
    assert padded > 20


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "bank"), [((6, 5, 3), 0), ((6, 5, 3), 1), ((6, 5, 3), 2), ((8, 4), 0), ((7,), 0)])
def test_a_tensor_across_banks_takes_the_places_that_islpy_counts(sizes, bank):
    isl = pytest.importorskip("islpy")
    net, banks = Network(), 4
    extents = dict(zip("ijk", sizes, strict=False))
    net.operator("copy", extents, [(net.tensor("x", sizes, Role.INPUT), "ijk"[: len(sizes)])], "ijk"[: len(sizes)])
    plan, net_arrays = new_plan(1, 2), arrays(net)
    plan.bank[0] = bank
    memory = handle(State(net_arrays, columns(net, net_arrays)[0], plan, np.array([0, 1, banks])))
    free = [f"x{a}" for a in range(len(sizes))]
    rules = [f"0 <= x{a} < {size}" for a, size in enumerate(sizes)]
    kept = [name for a, name in enumerate(free) if a != bank]
    places = f"{{ [{', '.join([*kept, 'row', 'b'])}] : exists {', '.join(free[bank : bank + 1])} : 0 <= b < {banks}"
    text = f"{places} and {banks} * row <= x{bank} < {banks} * row + {banks} and {' and '.join(rules)} }}"
    assert waiting(0, memory.ctypes.data) == int(isl.Set(text).count_val().to_python()) * 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_product, convolution])
def test_the_closed_form_is_what_islpy_counts(make):
    isl = pytest.importorskip("islpy")
    for seed in range(60):
        net, x, loops, level, fast, *_ = drawn(make, seed)
        one, passes, *_ = closed(net, x, loops, level, fast, 1, 1)
        assert one * passes == counted(isl, net, x, loops, level), seed


def counted(isl, net, x, loops, level):
    """Return how many elements the operand touches, once for each iteration of the loops up to the last that counts."""
    op = net.operators[0]
    outside = [int(d) for d in loops.order[:level]]
    named = [("b", int(d)) for d in loops.streams if d >= 0] + [("t", d) for d in outside]
    mine = {axis.dim for axis in op.operands[x].axes}
    cuts = [loops.blocks[d] < op.extents[d] if k == "b" else loops.tile[d] < loops.blocks[d] for k, d in named]
    last = max((i for i, (_, d) in enumerate(named) if d in mine and cuts[i]), default=-1)
    outer = named[: last + 1]
    free = [f"i{d}" for d in range(len(op.extents))]
    rules = [f"0 <= i{d} < {extent}" for d, extent in enumerate(op.extents)]
    for kind, d in outer:
        block = loops.blocks[d]
        if kind == "b":
            rules.append(f"{block} * b{d} <= i{d} < {block} * b{d} + {block}")
        else:
            inner = f"(i{d} mod {block})"
            rules.append(f"{loops.tile[d]} * t{d} <= {inner} < {loops.tile[d]} * t{d} + {loops.tile[d]}")
    spots = []
    for a, axis in enumerate(op.operands[x].axes):
        window = f" + i{axis.window}" if axis.window >= 0 else ""
        rules += [f"x{a} = {axis.stride} * i{axis.dim}{window} - {axis.pad}"]
        rules += [f"0 <= x{a} < {net.tensors[op.operands[x].tensor].shape[a]}"]
        spots.append(f"x{a}")
    kept = [f"{kind}{d}" for kind, d in outer] + spots
    text = f"{{ [{', '.join(kept)}] : exists {', '.join(free)} : {' and '.join(rules)} }}"
    return int(isl.Set(text).count_val().to_python())
