"""Which way each tensor of a program lies on a mesh of devices."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Graph, Parts, Problem, Space, Status, Structure, UserError
from bbo_suite.core.task import Capacity, interacting
from bbo_suite.core.variants import split_variant

from .graph import IMPOSSIBLE, ShardingGraph
from .known import REFERENCES, SOURCE, Optimum, Reference, optima
from .mesh import Mesh

if TYPE_CHECKING:
    from bbo_suite.parts.table import PairDecomposition

    from .program import ShardedProgram

VERSION = "1"
"""Increase it when the cost of a candidate changes."""
PENALTY = "penalty"


class ShardingProblem(Problem):
    """A strategy for each node of a program: how its tensor is divided among devices.

    `sharding:FILE` reads a problem of the ASPLOS 2025 contest on intra-operator parallelism, plain or gzipped. The cost
    is the sum of a cost for each node and strategy, and one for each edge and pair of strategies. All are integers. A
    cost of 10^18 or more means "impossible". Each strategy needs memory while its node lives, and there is a limit.

    A candidate with an impossible cost, or above the limit, fails. In the variant `sharding:FILE@penalty` it pays
    instead: 10^18 for each impossible cost, and 10^18 times the share by which it is above the limit. That variant
    tells no parts, because what the memory costs is not a part.

    The default of a file is the candidate of least memory, repaired where it is impossible. It is feasible and no more,
    so look at the gap to the best known cost and not at the speedup.

    `sharding/PROGRAM` is one of our own programs on a mesh of 2 x 4 devices, `sharding/PROGRAM@4x8` on another. Costs
    are nanoseconds: of each operation, and of the collectives that bring an operand from how it lies to how it is
    wanted. The default is a propagation from inputs that are split by the batch, with weights on all devices, and the
    limit is the memory that it needs. On meshes of 2 x 4 and 4 x 8 devices an exact solver has found the optimum of
    all but mobilenet (`optima.json`).
    """

    variant_marks: ClassVar[str] = "@"
    instances: ClassVar[tuple[str, ...]] = ("transformer", "resnet50", "rnn", "mobilenet")
    unit = "cost"
    reads_files = True
    decision = "which way each tensor lies on a mesh of devices"
    costs = "nanoseconds, or as in a file"
    optimum_known = "some"
    time_per_candidate = "30 µs to 3 ms"

    def __init__(self, instance: str | Path) -> None:
        """Build or read the graph.

        Args:
          instance: the name of a program, or the `Path` of a user's file, with the variant if one is wanted.

        Raises:
          UserError: the file cannot be read, its content is wrong, no feasible candidate is found, or the variant is
            unknown.
        """
        from .evaluation import Evaluator

        self._program: ShardedProgram | None = None
        if isinstance(instance, Path):
            path, penalty = split_variant(instance, (PENALTY,))
            self._pays = bool(penalty)
            self._read(Path(path))
        else:
            name, *marks = instance.split("@")
            self._pays = PENALTY in marks
            self._build(name, [mark for mark in marks if mark != PENALTY])
        self._evaluator = Evaluator(self.graph)
        self.reference: Reference | None = REFERENCES.get(self.graph.digest)
        if self.reference:
            self.optimum, self.bound, self.published_in = self.reference.optimum, self.reference.bound, SOURCE
        self._solved: Optimum | None = optima().get(self.graph.digest) if self._program else None
        if self._solved:
            self.optimum, self.bound = self._solved.optimum, self._solved.bound

    def _read(self, path: Path) -> None:
        from .evaluation import feasible
        from .graph import read

        self.graph: ShardingGraph = read(path)
        self.space = Space(self.graph.sizes, names="node {}".format)
        default = feasible(self.graph)
        if default is None:
            remedy = "lower a cost" if self.graph.limit is None else "raise the limit"
            raise UserError(f"cannot use {path}: no candidate without an impossible cost was found; {remedy}")
        self.default = default.astype(self.space.dtype)

    def _build(self, name: str, marks: list[str]) -> None:
        from .program import sharded

        self._program = made = sharded(name, mesh_of(marks))
        self.graph, self.unit = made.graph, "nanoseconds"  # type: ignore[misc]
        self.space = Space(self.graph.sizes, names=made.names, values=lambda i: [str(s) for s in made.strategies[i]])
        self.default = made.default.astype(self.space.dtype)

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` candidates."""
        rest, impossible, memory, steps = self._evaluator.run(configs).T
        limit = np.iinfo(np.int64).max if self.graph.limit is None else self.graph.limit
        if self._pays:
            over = np.maximum(memory - limit, 0) / max(1, limit)
            return Evaluations.of(rest + float(IMPOSSIBLE) * (impossible + over))
        failed = (impossible > 0) | (memory > limit)
        status = np.where(failed, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        reasons = {
            i: _reason(int(impossible[i]), int(memory[i]), int(self.graph.times[steps[i]]), limit)
            for i in np.flatnonzero(failed).tolist()
        }
        return Evaluations(np.where(failed, np.inf, rest), status, reasons)

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the costs of candidates, and those of their nodes and edges; an impossible one is infinite."""
        found = self.evaluate(configs)
        if self._pays:
            return found
        places = self.graph.places(configs)
        n, p = places.shape
        costs = self.graph.tables[places.ravel()].astype(np.float64)
        costs[costs >= IMPOSSIBLE] = np.inf
        keys = places.ravel().astype(np.uint64)
        parts = Parts(np.arange(0, n * p + 1, p), keys, np.ones(n * p), costs)
        return Evaluations(found.values, found.status, found.reasons, parts=parts)

    @property
    def tells_parts(self) -> bool:
        """False for the variant in which failures pay."""
        return not self._pays

    def structure(self) -> Structure:
        """Return the graph, the memory of each strategy, and the decomposition into nodes and edges."""
        graph = self.graph
        starts, neighbours = interacting(graph.edges, len(graph.sizes))
        features, names = graph.features()
        return Structure(
            starts,
            neighbours,
            features,
            names,
            Graph(features, names, graph.edges.astype(np.int32)),
            nodes=np.arange(len(graph.sizes), dtype=np.int32),
            parts=None if self._pays else self._decomposition(),
            capacity=None
            if graph.limit is None
            else Capacity(graph.firsts, graph.usages, graph.begins, graph.ends, graph.limit),
            is_paired=True,
        )

    def _decomposition(self) -> PairDecomposition:
        from bbo_suite.parts.table import PairDecomposition

        graph = self.graph
        n, m = len(graph.sizes), len(graph.edges)
        first = np.concatenate([np.arange(n), graph.edges[:, 0]])
        second = np.concatenate([np.full(n, -1), graph.edges[:, 1]])
        is_edge = np.repeat([0.0, 1.0], [n, m])[:, None]
        return PairDecomposition(graph.sizes, first, second, graph.starts, is_edge, ("edge",))

    def fingerprint(self) -> str:
        """Return a text that changes with the graph and the default."""
        content = f"{VERSION}|{self._pays}|{self.graph.digest}|{self.default.tolist()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def baselines(self) -> dict[str, float]:
        """Return the published costs of XLA and of teams of the contest, or the best that an exact solver found."""
        if self._solved and self._solved.cost and self.optimum is None:
            return {"exact solver": float(self._solved.cost)}
        return {} if self.reference is None else dict(self.reference.costs)

    def facts(self) -> dict[str, str]:
        """Return the program, the size of the graph and its memory limit."""
        graph, known = self.graph, self.reference
        free = int((graph.sizes > 1).sum())
        return {
            "program": known.program if known else graph.name or "unnamed",
            "nodes": f"{len(graph.sizes):,}, of which {free:,} have a choice",
            "edges": f"{len(graph.edges):,}",
            "memory limit": "none" if graph.limit is None else f"{graph.limit:,} bytes",
        }

    def usage(self) -> str:
        """Return what the numbers are."""
        if self._program:
            return "for reading only: the loop of each operation that each axis of the mesh splits"
        return "the strategy of each node, by its number in the file; the contest's solution lists them in this order"

    def paste(self, config: NDArray) -> str:
        """Return the strategies as the contest's solution, a list in JSON; of our own programs what differs."""
        return super().paste(config) if self._program else str(config.tolist())


def _reason(impossible: int, memory: int, time: int, limit: int) -> str:
    if impossible:
        return f"{impossible:,} of its costs mean impossible"
    return f"it needs {memory:,} bytes at time {time}, and the limit is {limit:,}"


def mesh_of(marks: list[str]) -> Mesh:
    """Return the mesh that a variant names, such as `4x8`; 2 x 4 devices if there is none.

    Raises:
      UserError: it is no mesh of two axes with 1 to 64 devices.
    """
    found = re.fullmatch(r"(\d{1,2})x(\d{1,2})", marks[0] if marks else "2x4")
    if len(marks) > 1 or not found or not all(1 <= int(n) <= 64 for n in found.groups()):
        raise UserError(f"{'@'.join(marks)!r} is no variant of sharding; give a mesh such as 4x8, or {PENALTY}")
    return Mesh((int(found[1]), int(found[2])))
