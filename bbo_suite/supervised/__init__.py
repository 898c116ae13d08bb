"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .cache import COMPILE, PAIRS, PARTS, Cache, PartRow, name_key, packed_by_name
from .problem import RUN, LiveProblem
from .workers import Answer, Service, Workers

__all__ = [
    "COMPILE",
    "PAIRS",
    "PARTS",
    "RUN",
    "Answer",
    "Cache",
    "LiveProblem",
    "PartRow",
    "Service",
    "Workers",
    "name_key",
    "packed_by_name",
]
