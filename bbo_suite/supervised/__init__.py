"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .problem import COMPILE, PAIRS, PARTS, RUN, Cache, LiveProblem, PartRow, name_key, packed_by_name
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
