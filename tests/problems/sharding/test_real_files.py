"""Files of the contest, if they are available, compared with what is published about them."""

import pytest

from bbo_suite.registry import Registry

from .conftest import REAL

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not here")

KNOWN = {"B": (816, 730, 1096, 532843), "G": (816, 769, 1023, None)}


@pytest.mark.parametrize("name", KNOWN)
def test_a_file_of_the_contest_is_known_by_its_content(name):
    problem = Registry().load(f"sharding:{REAL / f'asplos-2025-iopddl-{name}.json.gz'}")
    nodes, free, edges, optimum = KNOWN[name]
    assert problem.graph.sizes.shape == (nodes,)
    assert (problem.graph.sizes > 1).sum() == free
    assert problem.graph.edges.shape == (edges, 2)
    assert problem.optimum == optimum
    assert problem.facts()["program"].startswith(name)
    assert problem.baselines()["XLA"] < problem.baselines()["median team"]
    assert problem.evaluate(problem.default[None]).status[0] == 0


def test_the_contest_s_example():
    problem = Registry().load(f"sharding:{REAL / 'example.json'}")
    assert problem.optimum is None
    assert problem.evaluate(problem.default[None]).values[0] >= 0
