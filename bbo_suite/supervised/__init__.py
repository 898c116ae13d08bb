"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .problem import COMPILE, PAIRS, PARTS, RUN, Cache, LiveProblem, PartRow, name_key, packed_by_name
from .workers import GPU_ADDRESSES, Answer, Service, Workers, addresses

__all__ = [
    "COMPILE",
    "GPU_ADDRESSES",
    "PAIRS",
    "PARTS",
    "RUN",
    "Answer",
    "Cache",
    "LiveProblem",
    "PartRow",
    "Service",
    "Workers",
    "addresses",
    "name_key",
    "packed_by_name",
]
