"""Every worked example of the contest's text comes out to the last digit."""

import json

import pytest

pytestmark = pytest.mark.slow  # compiles long


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
