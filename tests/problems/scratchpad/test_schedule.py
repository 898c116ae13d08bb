"""Schedules of the contest's graphs: an independent simulation, repair, the default, and the rules of all problems."""

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
