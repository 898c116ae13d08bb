"""Live compilers: supervised child processes that may abort, hang or eat memory at the cost of one candidate."""

from .cache import Cache
from .live_problem import RUN, LiveProblem
from .process import Service
from .workers import Answer, Workers

__all__ = ["RUN", "Answer", "Cache", "LiveProblem", "Service", "Workers"]
