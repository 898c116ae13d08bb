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
    """Return the instances to check: all, but those that are alike for the rules once.

    These are the programs of a live compiler, of which one is small, and those of one model of the tensor compiler.
    """
    if issubclass(family, LiveProblem):
        small = next((name for name in ("bits", "dlrm-l1-infer") if name in family.instances), family.instances[0])
        return [] if family.available() else [small]
    if issubclass(family, ProgramProblem):
        return [name for name in family.instances if name in MODELS]
    return list(family.instances)


LOWERED = {name.split("-")[0]: f"fusion/{name}" for name in FAMILIES["fusion"].instances if name not in MODELS}
"""One program of each model that does not ship, which has to be lowered first."""
PROBLEMS = [f"{name}/{instance}" for name, family in FAMILIES.items() for instance in checked(family)]
PROBLEMS += [SEVERAL, TIMED, *LOWERED.values()]
MOST = {
    *(f"{name}/{one}" for name, family in FAMILIES.items() for one in (checked(family)[:1] + checked(family)[-1:])),
    *(f"{name}/rnn" for name, family in FAMILIES.items() if issubclass(family, ProgramProblem)),
    *(f"fusion/{name}" for name in MODELS),
    *(TIMED, LOWERED["bert"]),
}
"""Those that stand for the others of a family in `.ci/run`: the rules are about its code, which they share."""


def marks(problem: str) -> list[pytest.MarkDecorator]:
    return [] if problem in QUICK else [pytest.mark.slow, *[pytest.mark.thorough] * (problem not in MOST)]


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
        pytest.param(problem, rule, marks=marks(problem))
        for problem in PROBLEMS
        for rule in dict(problem_rules(REGISTRY.problem))
    ],
)
def test_every_rule_holds(problem: str, rule: str) -> None:
    rules(problem)[rule]()


def test_the_problems_of_the_default_run_exist() -> None:
    assert set(PROBLEMS) >= QUICK | MOST


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_describes_itself_and_how_to_use_what_it_pastes(family: type[Problem]) -> None:
    assert family.usage is not Problem.usage
    assert isinstance(family.available(), str)
    assert family.decision and family.time_per_candidate and (family.costs or isinstance(family.unit, str))
