"""Any error in a file gives one sentence that names the file and the place."""

import gzip
import json

import pytest

from bbo_suite import UserError
from bbo_suite.registry import Registry

HUGE = [[2**63 - 1] * k for k in (2, 3, 2, 2, 1)]
CASES = {
    "no problem": ([], "problem", ..., "its JSON has no object 'problem'"),
    "an unknown key beside the problem": ([], "more", 1, "the file has the unknown key 'more'"),
    "an unknown key": (["problem"], "mesh", [2, 4], "problem has the unknown key 'mesh'"),
    "an unknown key of nodes": (["problem", "nodes"], "names", [], "nodes has the unknown key 'names'"),
    "no edges": (["problem"], "edges", ..., "problem has no key 'edges'"),
    "nodes that are a list": (["problem"], "nodes", [], "nodes is a list, not an object"),
    "no nodes": (["problem", "nodes"], "costs", [], "it has no nodes"),
    "fewer intervals": (["problem", "nodes"], "intervals", [[0, 1]], "nodes.intervals has 1 pairs for 5 nodes"),
    "half an interval": (["problem", "nodes", "intervals"], 1, [5], "nodes.intervals[1] has 1 numbers, not 2"),
    "fewer usages": (["problem", "nodes"], "usages", [[1, 2]], "nodes.usages has 1 lists for 5"),
    "a usage too few": (["problem", "nodes", "usages"], 1, [1, 5], "nodes.usages[1] has 2 numbers, not 3"),
    "a node without strategies": (["problem", "nodes", "costs"], 3, [], "nodes.costs[3] has 0 numbers"),
    "a cost too many": (["problem", "edges", "costs"], 2, [0] * 5, "edges.costs[2] has 5 numbers, not 4"),
    "an edge to nowhere": (["problem", "edges", "nodes"], 1, [2, 5], "edges.nodes[1] is [2, 5], not two different"),
    "an edge to itself": (["problem", "edges", "nodes"], 1, [2, 2], "edges.nodes[1] is [2, 2], not two different"),
    "a negative cost": (["problem", "nodes", "costs", 1], 2, -1, "nodes.costs[1] holds -1; numbers must be from 0"),
    "a huge cost": (["problem", "nodes", "costs", 1], 2, 2**63, "nodes.costs[1] holds 9223372036854775808"),
    "a huge time": (["problem", "nodes", "intervals", 0], 1, 2**70, "nodes.intervals[0] holds 1180591620717411303424"),
    "a negative edge": (["problem", "edges", "nodes", 0], 0, -1, "edges.nodes[0] holds -1"),
    "a fraction": (["problem", "nodes", "costs", 1], 2, 1.5, "nodes.costs[1] holds 1.5; it must hold integers"),
    "a truth value": (["problem", "nodes", "usages", 1], 2, True, "nodes.usages[1] holds True; it must hold integers"),
    "text": (["problem", "edges", "costs", 1], 2, "7", "edges.costs[1] holds text; it must hold integers"),
    "a number for a list": (["problem", "edges", "costs"], 1, 7, "edges.costs[1] is 7, not a list"),
    "a limit in words": (["problem"], "usage_limit", "30", "usage_limit holds text"),
    "a limit too low": (["problem"], "usage_limit", 13, "at time 5 the least usages add up to 14, and the limit is 13"),
    "costs that overflow": (
        ["problem", "nodes"],
        "costs",
        [[2**63 - 1] * k for k in (2, 3, 2, 2, 1)],
        "costs may add up to more than 2^63",
    ),
    "usages that overflow": (["problem", "nodes", "usages"], 0, [2**63 - 1] * 2, "usages may add up to more than 2^63"),
    "no way through": (["problem", "edges", "costs"], 2, [10**18] * 4, "no candidate without an impossible cost"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence(case, write, document):
    parents, key, value, words = CASES[case]
    target = document
    for parent in parents:
        target = target[parent]
    if value is ...:
        del target[key]
    else:
        target[key] = value
    path = write(document)
    with pytest.raises(UserError) as caught:
        Registry().load(f"sharding:{path}")
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cut_files(write, document):
    text = json.dumps(document).encode()
    packed = gzip.compress(text)
    for name, whole in (("a.json", text), ("b.json", packed)):
        for length in (0, 1, 2, len(whole) // 2, len(whole) - 1):
            path = write(whole[:length], name)
            with pytest.raises(UserError, match=r"cannot use .* (JSON|damaged)"):
                Registry().load(f"sharding:{path}")


def test_no_file(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*none.json"):
        Registry().load(f"sharding:{tmp_path / 'none.json'}@penalty")
