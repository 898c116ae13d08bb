"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .cache import Cache
from .live_problem import RUN, LiveProblem
from .part_rows import PARTS, PartRow
from .process import Service
from .workers import Answer, Workers

__all__ = ["PARTS", "RUN", "Answer", "Cache", "LiveProblem", "PartRow", "Service", "Workers"]
