"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .cache import Cache
from .live_problem import RUN, LiveProblem
from .process import Service
from .workers import Answer, Workers

__all__ = ["RUN", "Answer", "Cache", "LiveProblem", "Service", "Workers"]
