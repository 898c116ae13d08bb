"""Live compilers in supervised child processes: an abort, a hang or too much memory costs one candidate."""

from .cache import COMPILE, PAIRS, PARTS, Cache, PartRow, name_key, packed_by_name
from .problem import RUN, LiveProblem
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
