"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .cache import PARTS, Cache, PartRow, name_key, packed_by_name
from .problem import RUN, LiveProblem
from .workers import Answer, Service, Workers

__all__ = [
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
