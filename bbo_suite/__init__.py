"""bbo_suite: the benchmark suite on which search strategies for compilers are compared."""

from .api import load, problem, run
from .constraint import Constraint
from .enumeration import Enumeration
from .errors import UserError
from .moves import Moves
from .multipass import Decisions, MultiPass
from .options import option
from .parameters import choice, permutation, product, scale, sequence
from .problem_base import Evaluations, Problem, Status
from .space import Kind, Space
from .strategy_base import NoOptions, Strategy
from .task import Graph, Structure, Task

__all__ = [
    "Constraint",
    "Decisions",
    "Enumeration",
    "Evaluations",
    "Graph",
    "Kind",
    "Moves",
    "MultiPass",
    "NoOptions",
    "Problem",
    "Space",
    "Status",
    "Strategy",
    "Structure",
    "Task",
    "UserError",
    "choice",
    "load",
    "option",
    "permutation",
    "problem",
    "product",
    "run",
    "scale",
    "sequence",
]
