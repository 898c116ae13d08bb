import numpy as np
import pytest

from bbo_suite import UserError
from bbo_suite.conformance.kit import problem_rules

from .toy_compiler import Passes, ToyCompiler


class Restless(Passes):
    def decisions(self, name, graph):
        self._cache.pop((name, graph), None)
        return super().decisions(name, graph)


class Greedy(Passes):
    def columns(self, name):
        return np.arange(len(self.source.kinds) * 5)


class Shifted(Passes):
    def default(self, name, graph):
        return super().default(name, graph) + 5


class Different(Passes):
    def default(self, name, graph):
        return 1 - np.minimum(super().default(name, graph), 1)


def broken(passes=Passes, cost=None):
    """Return the complaints about the toy with other passes or costs."""

    def load():
        problem = ToyCompiler()
        problem.passes = passes("abab")
        problem.cost = cost or problem.cost
        return problem

    found = []
    for _, rule in problem_rules(load):
        try:
            rule()
        except (AssertionError, UserError, ValueError) as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"passes": Restless}, "layout returns a new object"),
        ({"passes": Greedy}, "belongs to no pass, or to two"),
        ({"passes": Shifted}, "the default of layout is out of range"),
        ({"passes": Different}, "the choices of the passes cost"),
        ({"cost": lambda row: 1.0 + row.sum()}, "does not apply to its graph"),
    ],
)
def test_a_broken_compiler_breaks_its_rule(changes, says):
    assert any(says in complaint for complaint in broken(**changes))


def test_a_sound_compiler_breaks_none():
    assert broken() == []
