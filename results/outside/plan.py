"""How do our searches compare with published results on problems that others set?

The files of the two contests lie in `contest/`; without it, only problems that ship are searched.
"""

from functools import partial
from pathlib import Path

from bbo_problems.programs_c import large_names
from bbo_problems.scratchpad.network.networks import INSTANCES
from bbo_suite import Plan

CONTEST = Path("results/outside/contest")
GRAPHS = [f"scratchpad:{file}" for file in sorted(CONTEST.glob("mlsys-2026-*.json"))]
SECONDS = {"B": 60, "G": 120, "P": 240, "U": 300}
"""What the sharding contest gave its teams."""
SEEDS = {
    "graybox": {"B": 7, "G": 10, "P": 3, "U": 2},
    "local": {"B": 10, "G": 10},
    "annealing": {"B": 2, "G": 2},
    "mbo": {"B": 1},
}

runs = partial(Plan, budgets=(10_000,), plain_seeds=True)


def sharding(strategy: str, letter: str, seeds: int) -> Plan:
    """Return the runs of a strategy on a graph of the sharding contest."""
    file = CONTEST / f"asplos-2025-iopddl-{letter}.json.gz"
    return runs([f"sharding:{file}"] if file.exists() else [], [strategy], seeds=seeds, max_seconds=SECONDS[letter])


PIPELINES = [f"llvm-pipelines/{name}" for name in large_names()]
FLAGS = [f"gcc/{name}@wide" for name in large_names()]
compiled = partial(Plan, budgets=(1_000,), batch=20)
PLANS = [
    compiled(PIPELINES, ["annealing", "random"], seeds=3),
    compiled(PIPELINES, ["evolution", "local", "mbo"]),
    compiled(FLAGS, ["annealing", "random"], seeds=2),
    compiled(FLAGS, ["evolution", "local", "mbo"]),
    runs(
        [*GRAPHS, *(f"scratchpad/{name}" for name in INSTANCES)],
        ["annealing", "evolution", "local", "random"],
        seeds=10,
        cutoffs=(1_000,),
    ),
    *(sharding(name, letter, count) for name, counts in SEEDS.items() for letter, count in counts.items()),
]
