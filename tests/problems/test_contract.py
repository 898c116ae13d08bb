"""Every registered problem keeps the contract. A new family needs no entry here: it says whether it is available."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import pytest

from bbo_problems.tensor_compiler.models import MODELS
from bbo_problems.tensor_compiler.tasks.program_problem import ProgramProblem
from bbo_suite import Problem
from bbo_suite.conformance.kit import problem_rules
from bbo_suite.registry import Registry
from bbo_suite.supervised import LiveProblem

REGISTRY = Registry()
FAMILIES = {name: load() for name, load in REGISTRY.families().items()}
SEVERAL = "several:ordering/train-40-a+ordering/train-40-b"
QUICK = {
    *("ehrlich/32x32-a", "ordering/small-a", "ordering/once-50-a", "recorded/halide-blur", "recorded/tile-transformer"),
    *("tile/rnn", SEVERAL),
}
"""Cheap problems that stand for all in the default run."""
TIMED = "inlining/bits@time"


def checked(family: type[Problem]) -> list[str]:
    """Return the instances to check: the first and the last, for the rules are about a family's code.

    Of a live compiler it is one that is small, and of the tensor compiler one that ships and is small.
    """
    if issubclass(family, LiveProblem):
        small = next((name for name in ("bits", "dlrm-l1-infer") if name in family.instances), family.instances[0])
        return [] if family.available() else [small]
    if issubclass(family, ProgramProblem):
        return ["rnn"]
    return [*family.instances[:1], *family.instances[-1:]]


OTHERS = [f"fusion/{name}" for name in sorted(MODELS)] + ["fusion/bert-tiny-infer-b64-s128"]
"""All programs that ship, and one that has to be lowered first."""
PROBLEMS = [f"{name}/{instance}" for name, family in FAMILIES.items() for instance in checked(family)]
PROBLEMS = list(dict.fromkeys([*PROBLEMS, *OTHERS, *sorted(QUICK), TIMED]))


@lru_cache(maxsize=2)
def rules(problem: str) -> dict[str, Callable[[], None]]:
    """Return the rules for a problem by their names; they share what they load."""
    return dict(problem_rules(partial(anew, problem)))


def anew(problem: str) -> Problem:
    """Load a problem; a live compiler's without its cache, which would hide costs that differ."""
    loaded = REGISTRY.load(problem)
    loaded.leave_cache()
    return loaded


@pytest.mark.parametrize(
    ("problem", "rule"),
    [
        pytest.param(problem, rule, marks=[] if problem in QUICK else pytest.mark.slow)
        for problem in PROBLEMS
        for rule in dict(problem_rules(REGISTRY.problem))
    ],
)
def test_every_rule_holds(problem: str, rule: str) -> None:
    rules(problem)[rule]()


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_describes_itself_and_how_to_use_what_it_pastes(family: type[Problem]) -> None:
    assert family.usage is not Problem.usage
    assert isinstance(family.available(), str)
    assert family.decision and family.time_per_candidate and (family.costs or isinstance(family.unit, str))
