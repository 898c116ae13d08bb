"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .cache import COMPILE, PARTS, Cache, PartRow
from .problem import RUN, LiveProblem
from .workers import Answer, Service, Workers

__all__ = ["COMPILE", "PARTS", "RUN", "Answer", "Cache", "LiveProblem", "PartRow", "Service", "Workers"]
