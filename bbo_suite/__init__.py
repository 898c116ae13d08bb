"""bbo_suite: the benchmark suite on which search strategies for compilers are compared."""
# ruff: noqa: E402 - Ctrl-C is handled before the imports that take long

import os
import sys

_MODULE = "bbo_suite" in sys.orig_argv and sys.argv[:1] == ["-m"]
if _MODULE and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - no import yet
    sys.path.append(sys.path.pop(0))  # a user's json.py where the command runs must not hide the library

import signal
from importlib import import_module
from typing import Any


def _stop(*_: object) -> None:
    """End the command line at Ctrl-C while it starts, when it would end in the traceback of an import."""
    os.write(2, b"stopped\n")
    os._exit(130)


_STARTING = _MODULE or os.path.basename(sys.argv[0] if sys.argv else "") == "bbo-suite"  # noqa: PTH119 - no import yet
"""True while `python -m bbo_suite` or the script `bbo-suite` imports this package."""
if _STARTING and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _stop)

from .api import load, problem, run
from .core.constraint import Constraint
from .core.enumeration import Enumeration
from .core.evaluation import evaluate
from .core.level import Level
from .core.moves import Moves
from .core.multipass import Decisions, MultiPass
from .core.options import option
from .core.problem import Evaluations, Problem, Status
from .core.space import Kind, Space, choice, permutation, product, scale, sequence
from .core.strategy import NoOptions, Strategy, Told
from .core.task import Compiler, Graph, Structure, Task
from .embedding import Optimizer, optimizer
from .errors import UserError
from .loop import Batch, search
from .parts.decomposition import Decomposition, Description
from .parts.parts import Parts
from .plan import Plan, Search
from .pretraining import TaskFamily
from .study import Study

__all__ = [
    "Batch",
    "Compiler",
    "Constraint",
    "Decisions",
    "Decomposition",
    "Description",
    "Enumeration",
    "Evaluations",
    "Graph",
    "Kind",
    "Level",
    "Moves",
    "MultiPass",
    "NoOptions",
    "Optimizer",
    "Parts",
    "Plan",
    "Problem",
    "Search",
    "Space",
    "Status",
    "Strategy",
    "Structure",
    "Study",
    "Task",
    "TaskFamily",
    "Told",
    "UserError",
    "choice",
    "evaluate",
    "load",
    "optimizer",
    "option",
    "permutation",
    "problem",
    "product",
    "run",
    "scale",
    "search",
    "sequence",
]

_LAZY = ("LiveProblem", "__version__", "figures", "stats")
"""Public names whose modules take long to import."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module, a class or a text
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name == "LiveProblem":
        from .supervised import LiveProblem

        return LiveProblem
    if name in _LAZY:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY])
