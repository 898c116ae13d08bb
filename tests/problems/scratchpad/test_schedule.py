"""Schedules of the contest's graphs: its worked examples, an independent simulation, repair, and all rules."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # compiles long


@pytest.fixture
def mixed(contents):
    """Products of different depths and pointwise operations, with a result that two operations read."""
    widths = [48, 96, 96, 32, 32, 96, 96, 32, 32, 32]
    heights = [64, 48, 64, 96, 64, 64, 64, 64, 64, 64]
    return contents["chain"] | {
        "widths": widths,
        "heights": heights,
        "inputs": [[0, 1], [2], [5, 2], [6, 3], [7, 4], [8, 7]],
        "outputs": [[2], [5], [6], [7], [8], [9]],
        "base_costs": [700, 90, 80, 900, 60, 50],
        "op_types": ["MatMul", "Pointwise", "Pointwise", "MatMul", "Pointwise", "Pointwise"],
        "fast_memory_capacity": 3000,
        "native_granularity": [32, 16],
    }


def simulated(content, schedule):
    """Return the time of each group by visiting every tile and every step, and check what is in fast memory."""
    made = {tensors[0]: op for op, tensors in enumerate(content["outputs"])}
    kept, times, written = set(), [], set(range(len(content["widths"]))) - made.keys()
    names = ("subgraphs", "granularities", "tensors_to_retain", "traversal_orders")
    order = zip(*(schedule[name] for name in names), strict=True)
    for ops, (width, height, depth), keeps, visits in order:
        inner = {tensor for op in ops for tensor in content["inputs"][op]}
        (result,) = {content["outputs"][op][0] for op in ops} - inner
        rows, columns = content["heights"][result], content["widths"][result]
        tiles = [(i, j) for i in range(-(-rows // height)) for j in range(-(-columns // width))]
        slices, reduced = needed(content, ops, result, made)
        steps = max([-(-k // depth) for k in reduced], default=1)
        extent = {"tile rows": height, "tile columns": width, "depth": depth}
        size = {s: np.prod([extent.get(kind, kind) for kind in s[1:]]) for s in slices if s[0] not in kept}
        whole = {t: content["widths"][t] * content["heights"][t] for t in {*kept, *keeps}}
        held = sum(size.values()) + sum(whole.values()) + (0 if result in keeps else width * height)
        chain = all(len(content["inputs"][op]) == 1 for op in ops) and not whole  # it works in place
        held -= width * height if chain else 0
        assert held <= content["fast_memory_capacity"]
        assert {s[0] for s in slices} <= written | kept
        native = -(-width // content["native_granularity"][0]) * -(-height // content["native_granularity"][1])
        there, total = set(), 0.0
        for place in range(len(tiles)) if visits is None else visits:
            there = there if visits else set()
            for step in range(steps):
                index = {"tile rows": tiles[place][0], "tile columns": tiles[place][1], "depth": step}
                now = {(s, *(index.get(kind) for kind in s[1:])) for s in size}
                moved = sum(size[s[0]] for s in now - there)
                last = step == steps - 1
                moved += width * height * (last and result not in keeps)
                work = sum(work_of(content, op, result, steps, last, ops) for op in ops) * native
                total, there = total + max(work, moved / content["slow_memory_bandwidth"]), now
        times.append(total)
        kept, written = set(keeps), written | ({result} - set(keeps))
    return times


def work_of(content, op, result, steps, last, ops):
    """Return the work of one step: a pointwise operation on the result's own tile runs once, in the last step."""
    if content["op_types"][op] == "Pointwise" and on_tile(content, op, result, ops):
        return content["base_costs"][op] if last else 0
    return content["base_costs"][op] / steps


def on_tile(content, op, result, ops):
    """True if only pointwise operations lie between an operation and the result."""
    tensor = content["outputs"][op][0]
    if tensor == result:
        return True
    readers = [o for o in ops if tensor in content["inputs"][o]]
    return any(content["op_types"][o] == "Pointwise" and on_tile(content, o, result, ops) for o in readers)


def needed(content, ops, result, made):
    """Return the slices that a group loads, (tensor, rows, columns), and the depths that it reduces over."""
    waiting, found, depths, seen = [(result, "tile rows", "tile columns")], set(), set(), set()
    while waiting:
        tensor, rows, columns = waiting.pop()
        op = made.get(tensor)
        if op not in ops or (tensor, rows, columns) in seen:
            if op not in ops:
                found.add((tensor, rows, columns))
            continue
        seen.add((tensor, rows, columns))
        operands = content["inputs"][op]
        if content["op_types"][op] == "Pointwise":
            waiting += [(t, rows, columns) for t in operands]
            continue
        outer = (rows, columns) == ("tile rows", "tile columns")
        full = content["widths"][operands[0]]
        depths |= {full} if outer else set()
        deep = "depth" if outer else full
        waiting += [(operands[0], rows, deep), (operands[1], deep, columns)]
    return found, depths


@pytest.mark.parametrize("capacity", [900, 3000, 9000])
def test_random_schedules_cost_what_a_walk_over_all_steps_finds(load, mixed, capacity):
    content = mixed | {"fast_memory_capacity": capacity}
    problem, walks = load(content), 0
    for config in problem.space.sample(60, np.random.default_rng(1)):
        schedule = json.loads(problem.paste(config))
        if not loads_what_it_computes(content, schedule):
            walks += 1
            walked = simulated(content, schedule)
            assert schedule["subgraph_latencies"] == pytest.approx(walked, rel=1e-12)
            assert problem.evaluate(config[None]).values[0] == pytest.approx(sum(walked), rel=1e-12)
    assert walks >= 20


def loads_what_it_computes(content, schedule):
    """True if a group computes again what an earlier one wrote: the schedule does not say which of the two is read."""
    results = []
    for ops in schedule["subgraphs"]:
        tensors = {content["outputs"][op][0] for op in ops}
        if tensors & set(results):
            return True
        results += tensors - {t for op in ops for t in content["inputs"][op]}
    return False


def test_the_default_runs_each_operation_alone_and_no_tile_is_faster(load, mixed):
    problem = load(mixed)
    default = problem.default_row()
    assert json.loads(problem.paste(default))["subgraphs"] == [[0], [1], [2], [3], [4], [5]]
    best = problem.evaluate(default[None]).values[0]
    alone = [
        c for c in range(len(default)) if "take in" not in problem.space.name(c) and "keep" not in problem.space.name(c)
    ]
    for seed in range(200):
        other = default.copy()
        chosen = np.random.default_rng(seed).choice(alone, 4, replace=False)
        other[chosen] = np.random.default_rng(seed).integers(0, problem.space.sizes[chosen])
        assert problem.evaluate(other[None]).values[0] >= best


def test_operations_that_are_alike_get_the_default_of_one_alone(load, mixed):
    """A network of thousands of equal operations loads fast because each kind is looked at once."""
    kinds = (mixed["widths"], mixed["heights"])
    many = mixed | {
        "widths": kinds[0] * 3,
        "heights": kinds[1] * 3,
        **{key: [[t + 10 * i for t in ts] for i in range(3) for ts in mixed[key]] for key in ("inputs", "outputs")},
        "base_costs": [*mixed["base_costs"] * 2, *(3 * cost for cost in mixed["base_costs"])],
        "op_types": mixed["op_types"] * 3,
    }
    last = mixed | {"base_costs": many["base_costs"][-6:]}
    alone = [load(content).default for content in (mixed, mixed, last)]
    assert load(many).default.tolist() == np.concatenate(alone).tolist()
    assert alone[0].tolist() != alone[2].tolist()


def row(problem, order="rows", **wanted):
    """Return a candidate by the names of its decisions, such as `o0_width=64`; the rest runs alone on whole tensors."""
    config = problem.space.sizes - 1
    for column in range(len(config)):
        operation, what = problem.space.name(column).removeprefix("operation ").split(": ")
        values = list(problem.space.values(column))
        given = wanted.get(f"o{operation}_{what.replace(' ', '_')}")
        if what == "order":
            config[column] = values.index(order)
        elif given is not None:
            config[column] = values.index(given)
        elif len(values) == 2:
            config[column] = 0
    return config.astype(problem.space.dtype)


def tiles(width, height, *operations):
    return {f"o{op}_{side}": size for op in operations for side, size in (("width", width), ("height", height))}


TOGETHER = {"o1_take_in_operation_0": 1}
CASES = {
    "1A": ("chain", {}, "nothing stays", [3276.8, 3276.8]),
    "1B": ("chain", TOGETHER, "nothing stays", [3276.8]),
    "1C": ("chain", TOGETHER | tiles(64, 64, 1), "nothing stays", [4400.0]),
    "2A": ("large chain", tiles(128, 128, 0, 1), "nothing stays", [13107.2, 13107.2]),
    "2B": ("large chain", TOGETHER | tiles(128, 128, 1), "nothing stays", [13107.2]),
    "3A": ("diamond", {}, "nothing stays", [3276.8, 3276.8, 4915.2]),
    "3B": ("diamond", TOGETHER | {"o2_take_in_operation_0": 1, "o1_keep_its_result": 1}, "rows", [3000.0, 3276.8]),
    "3C": ("diamond", {"o0_keep_its_result": 1, "o2_take_in_operation_1": 1}, "rows", [1638.4, 3000.0]),
    "4A": ("product", tiles(64, 64, 0), "nothing stays", [8192.0]),
    "4B": ("product", tiles(64, 64, 0), "rows, snake", [6548.0]),
    "4, rows": ("product", tiles(64, 64, 0), "rows", [7096.0]),
    "5B": ("two products", TOGETHER | {"o1_depth": 32}, "nothing stays", [6915.2]),
}


@pytest.mark.parametrize("case", CASES)
def test_worked_example(load, contents, case):
    name, wanted, order, times = CASES[case]
    problem = load(contents[name])
    config = row(problem, order, **wanted)
    schedule = json.loads(problem.paste(config))
    assert schedule["subgraph_latencies"] == pytest.approx(times, rel=1e-15)  # the last bit of a float
    assert problem.evaluate(config[None]).values[0] == pytest.approx(sum(times), rel=1e-15)


def test_the_order_of_tiles_is_written_as_the_contest_numbers_them(load, contents):
    problem = load(contents["product"])
    orders = ("nothing stays", "rows", "rows, snake", "columns", "columns, snake")
    pasted = [json.loads(problem.paste(row(problem, order, **tiles(64, 64, 0)))) for order in orders]
    numbers = [schedule["traversal_orders"][0] for schedule in pasted]
    assert numbers == [None, [0, 1, 2, 3], [0, 1, 3, 2], [0, 2, 1, 3], [0, 2, 3, 1]]


def test_a_result_stays_only_for_the_next_group_and_where_it_fits(load, contents):
    keep = {"o0_keep_its_result": 1}
    problem = load(contents["diamond"])  # two groups read the result of operation 0
    assert json.loads(problem.paste(row(problem, **keep)))["tensors_to_retain"] == [[], [], []]
    for capacity, kept in ((3 * 128 * 128, [[1], []]), (2 * 128 * 128 - 1, [[], []])):
        problem = load(contents["chain"] | {"fast_memory_capacity": capacity})
        assert json.loads(problem.paste(row(problem, **keep)))["tensors_to_retain"] == kept
