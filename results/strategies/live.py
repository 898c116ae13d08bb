"""Which strategy with equal times on three compilers? Costs of candidates that were compiled before are not known.

The programs are all of LLVM's, the first 12 of GCC's by a digest of their names, and one-layer inference of XLA's.
"""

from collections.abc import Collection
from hashlib import blake2b

from bbo_suite import Plan
from bbo_suite.registry import Registry

STRATEGIES = ["random", "annealing", "evolution", "mbo", "nevergrad:DiscreteLenglerOnePlusOne", "pymoo:GA"]


def programs(family: str, most: int, end: str = "", among: Collection[str] = ()) -> list[str]:
    """Return the first programs of a family by a digest of their names, of some of them or of those that end so."""
    names = [f"{family}/{name}" for name in among or Registry().families()[family]().instances if name.endswith(end)]
    return sorted(names, key=lambda name: blake2b(name.encode()).digest())[:most]


def timed(problems: list[str], seconds: float) -> Plan:
    """Return runs of equal times."""
    return Plan(problems, STRATEGIES, budgets=(100_000,), batch=10, max_seconds=seconds)


PLANS = [
    timed(programs("llvm", 33), 10),
    timed(programs("gcc", 12), 20),
    timed(programs("xla-passes", 10, "-l1-infer"), 20),
]
