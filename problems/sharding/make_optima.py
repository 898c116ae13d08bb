"""Solves our own instances exactly and stores what was found: `python -m bbo_problems.sharding.make_optima`.

It takes a few minutes. With names, such as `rnn@4x8`, only those are solved; with `--nodes N`, the solver's search tree
has at most so many nodes, and what it has shown by then is stored.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from bbo_suite.solvers import Minimum, PairCosts, minimise

from .graph import IMPOSSIBLE, ShardingGraph
from .known import TABLE
from .sharding_problem import ShardingProblem

MESHES = ("", "@4x8")


def solved(problem: ShardingProblem, most_nodes: int | None = None) -> Minimum:
    """Return the optimum of a problem, and the bound that the solver proved."""
    structure = problem.structure()
    return minimise(costs_of(problem.graph), structure.capacity, most_nodes=most_nodes)


def costs_of(graph: ShardingGraph) -> PairCosts:
    """Return the costs of a graph as the solver takes them."""
    n, (first, second) = len(graph.sizes), graph.edges.T
    tables = np.where(graph.tables < IMPOSSIBLE, graph.tables, np.inf)
    parts = zip(graph.starts[:n], graph.sizes, strict=True)
    nodes = np.concatenate([tables[start : start + size] for start, size in parts])
    return PairCosts(graph.sizes, nodes, first, second, graph.starts[n:], tables)


def row(name: str, problem: ShardingProblem, found: Minimum) -> dict[str, object]:
    """Return what is stored of a solution; `bound` is at most its cost."""
    if found.config is None:
        return {"name": name, "bound": int(np.ceil(found.bound))}
    config = found.config.astype(problem.space.dtype)
    cost = int(problem.evaluate(config[None]).values[0])
    bound = min(cost, int(np.ceil(found.bound * (1 - 1e-9))))
    return {"name": name, "bound": bound, "cost": cost, "candidate": problem.space.pack(config)}


def main() -> None:
    """Solve the named instances, or all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--nodes", type=int)
    options = parser.parse_args()
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    for name in options.names or [program + mesh for program in ShardingProblem.instances for mesh in MESHES]:
        problem = ShardingProblem(name)
        table[problem.graph.digest] = made = row(name, problem, solved(problem, options.nodes))
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(name, made["bound"], made.get("cost"), flush=True)


if __name__ == "__main__":
    main()
