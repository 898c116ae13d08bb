"""Every registered problem keeps the contract."""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from bbo_problems.llvm_pipelines import library
from bbo_problems.tensor_compiler.models import MODELS
from bbo_suite import Problem, UserError
from bbo_suite.conformance.kit import problem_rules
from bbo_suite.registry import Registry
from bbo_suite.supervised import LiveProblem

REGISTRY = Registry()


def has_libllvm() -> bool:
    """True if whole pipelines can run."""
    with suppress(UserError):
        return bool(library.path())
    return False


LIVE = ("llvm/bits", "llvm-pipelines/script", "gcc/bits", "pallas/matmul", "xla-tpu/lstm")
"""One small program for each live compiler; for the rules all its programs are alike."""
NEEDS = {
    "gcc": shutil.which("gcc"),
    "llvm-pipelines": has_libllvm(),
    "pallas": find_spec("libtpu"),
    "xla-tpu": find_spec("libtpu"),
}
"""What must be installed for a family; falsy if it is not."""


def is_checked(problem: str) -> bool:
    """True for every family on the programs that ship, and for fusion on those that have to be lowered first."""
    live = problem in LIVE and NEEDS.get(problem.partition("/")[0], True)
    return ships(problem) or problem.startswith("fusion/") or bool(live)


def ships(problem: str) -> bool:
    """True if the problem's program is part of the package, or quickly drawn."""
    family, _, instance = problem.partition("/")
    return (instance in MODELS and family not in NEEDS) or family in ("ehrlich", "ordering", "recorded", "scratchpad")


def is_quick(problem: str) -> bool:
    """True if all rules together take a second or two, and need no code that takes long to compile."""
    large = problem.endswith("/mobilenet") or problem in ("sharding/resnet50", "sharding/transformer")
    compiles = problem.startswith(("joint/", "layout/", "scratchpad/"))
    return (ships(problem) and not large and not compiles) or problem == "llvm/bits"


def load(problem: str) -> Problem:
    """Load a problem anew; a live compiler's without its cache, which would hide costs that differ."""
    loaded = REGISTRY.load(problem)
    if isinstance(loaded, LiveProblem):
        loaded.leave_cache()
    return loaded


CASES = [
    pytest.param(problem, marks=[] if is_quick(problem) else [pytest.mark.slow])
    for problem in filter(is_checked, REGISTRY.instances())
]


@pytest.mark.parametrize("problem", CASES)
def test_every_rule_holds(problem: str) -> None:
    for _, rule in problem_rules(partial(load, problem)):
        rule()


EACH_FAMILY = [
    *(f"{family}/rnn" for family in ("fusion", "layout", "tile", "flags", "joint")),
    *("ordering/small-a", "ordering/once-50-a", "ehrlich/32x32-a", "recorded/llvm-tree", "llvm/bits"),
]


@pytest.mark.parametrize("problem", EACH_FAMILY)
def test_a_direct_call_checks_width_type_and_range(problem: str) -> None:
    loaded = REGISTRY.problem(problem)
    row = loaded.default_row()[None]
    one = 1000 * (np.arange(row.size) == row.size - 1)
    for rows in (row[:, :-1], np.pad(row, (0, 1)), row.astype(float), row + one, row - one):
        with pytest.raises(ValueError, match="candidate"):
            loaded.evaluate(rows)


def test_every_family_says_how_to_use_what_it_pastes() -> None:
    silent = [name for name, family in REGISTRY.families().items() if family().usage is Problem.usage]
    assert silent == []
