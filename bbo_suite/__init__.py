"""bbo_suite: the benchmark suite on which search strategies for compilers are compared."""

from .api import load, problem, run
from .core.constraint import Constraint
from .core.enumeration import Enumeration
from .core.moves import Moves
from .core.multipass import Decisions, MultiPass
from .core.options import option
from .core.parameters import choice, permutation, product, scale, sequence
from .core.problem import Evaluations, Problem, Status
from .core.space import Kind, Space
from .core.strategy import NoOptions, Strategy
from .core.task import Graph, Structure, Task
from .errors import UserError

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
