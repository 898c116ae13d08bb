"""Every registered problem keeps the contract."""

from __future__ import annotations

import shutil
from functools import partial
from importlib.util import find_spec

import pytest

from bbo_problems.tensor_compiler.models import MODELS
from bbo_suite import Problem
from bbo_suite.conformance.kit import problem_rules
from bbo_suite.registry import Registry
from bbo_suite.supervised import LiveProblem

LIVE = ("llvm/bits", "gcc/bits", "pallas/matmul", "xla-tpu/lstm")
"""One small program for each live compiler; the others differ in nothing that the rules look at."""
NEEDS = {"gcc": shutil.which("gcc"), "pallas": find_spec("libtpu"), "xla-tpu": find_spec("libtpu")}
"""What must be installed for a family."""


def is_checked(problem: str) -> bool:
    """Every family on the programs that ship; the others, which have to be lowered first, for fusion only."""
    live = problem in LIVE and NEEDS.get(problem.partition("/")[0], True)
    return ships(problem) or problem.startswith("fusion/") or bool(live)


def ships(problem: str) -> bool:
    """Is the problem's program part of the package, or drawn at once?"""
    family, _, instance = problem.partition("/")
    return (instance in MODELS and family not in NEEDS) or family in ("ehrlich", "ordering", "recorded")


def is_quick(problem: str) -> bool:
    """Do the rules take seconds?"""
    return ships(problem) or problem == "llvm/bits"


def load(problem: str) -> Problem:
    """Load a problem anew; a live compiler's without its cache, which would hide that costs differ."""
    loaded = Registry().load(problem)
    if isinstance(loaded, LiveProblem):
        loaded._cache = None
    return loaded


CASES = [
    pytest.param(rule, id=f"{problem}: {words}", marks=[] if is_quick(problem) else [pytest.mark.slow])
    for problem in filter(is_checked, Registry().instances())
    for words, rule in problem_rules(partial(load, problem))
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()
