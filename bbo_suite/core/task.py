"""What a strategy knows about a problem. It has no access to the problem, so every evaluation counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError, error_boundary
from ..parts.decomposition import Decomposition
from .constraint import keep_unchanged
from .level import Level
from .multipass import MultiPass
from .space import Space, row_text


@dataclass(frozen=True, repr=False)
class Graph:
    """The computation graph of a program.

    Attributes:
      node_features: `(n, f)` float32, one row per node.
      feature_names: `f` names.
      edges: `(m, 2)` int32, producer and consumer.
    """

    node_features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    edges: NDArray[np.int32]

    def __post_init__(self) -> None:
        keep_unchanged(self)

    def __repr__(self) -> str:
        """Return the numbers of nodes and edges, and the names of the features."""
        features = ", ".join(self.feature_names)
        return f"Graph({len(self.node_features):,} nodes, {len(self.edges):,} edges; features: {features})"


@dataclass(frozen=True, repr=False)
class Capacity:
    """A limit that is known without an evaluation: at no step may the usages of what lives add up to more.

    Attributes:
      firsts: `(d + 1,)` where the usages of each parameter begin.
      usages: `(sum of sizes,)` int64; index v of parameter i uses `usages[firsts[i] + v]`.
      begins, ends: `(d,)` the steps in which parameter i uses it: from `begins[i]` up to, not including, `ends[i]`.
      limit: the most that all may use at a step.
    """

    firsts: NDArray[np.int64]
    usages: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    limit: int

    def __post_init__(self) -> None:
        keep_unchanged(self)

    def over_time(self, usages: NDArray) -> NDArray:
        """Return what all use together at each step, and at one more, given the `(d,)` usages of the parameters."""
        change, lives = np.zeros(int(self.ends.max()) + 1, usages.dtype), self.begins < self.ends
        np.add.at(change, self.begins[lives], usages[lives])
        np.add.at(change, self.ends[lives], -usages[lives])
        return np.cumsum(change)


@dataclass(frozen=True, repr=False)
class Structure:
    """What a problem declares about its parameters.

    Attributes:
      starts, neighbours: the parameters that interact with parameter i are
        `neighbours[starts[i]:starts[i + 1]]` (compressed sparse rows, symmetric, without i itself).
      features: `(d, f)` float32, one row per parameter.
      feature_names: `f` names.
      graph: the computation graph, if there is one.
      edges: `(d,)` the edge of the graph that each parameter decides, -1 for none.
      nodes: `(d,)` the node of the graph that each parameter decides, -1 for none.
      passes: the chain of passes that the parameters belong to, if there is one.
      parts: says which parts any candidate has, if the problem can say so without an evaluation.
      capacity: a limit on what all parameters use together, if there is one; a candidate above it fails.
      is_paired: true if the cost is a sum of terms that depend on one parameter each, or on two that interact.
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    graph: Graph | None = None
    edges: NDArray[np.int32] | None = None
    nodes: NDArray[np.int32] | None = None
    passes: MultiPass | None = None
    parts: Decomposition | None = None
    capacity: Capacity | None = None
    is_paired: bool = False

    def __post_init__(self) -> None:
        keep_unchanged(self)

    def check(self, problem: str, d: int) -> None:
        """Raise `UserError` if what a problem declares does not fit to its d parameters or to the graph."""
        if why := self.misfit(d):
            raise UserError(f"problem {problem} declares a structure that does not fit: {why}")

    def misfit(self, d: int) -> str:
        """Return what does not fit to d parameters or to the graph, in words; empty if arrays and indices do."""
        starts, edges = self.starts, self.graph.edges if self.graph else ()
        if np.shape(starts) != (d + 1,) or starts[0] != 0 or starts[-1] != len(self.neighbours):
            return f"starts must be {d + 1} numbers for {d} parameters, from 0 to the number of neighbours"
        if (np.diff(starts) < 0).any():
            return "starts must not decrease"
        if np.shape(self.features) != (d, len(self.feature_names)):
            return "features must have one row per parameter and one column per name"
        if not np.isfinite(self.features).all():
            return "a feature is not finite"
        nodes = len(self.graph.node_features) if self.graph else 0
        given: list[tuple[str, Any, int, int]] = [
            ("neighbours", self.neighbours, 0, d),
            ("the edges of its graph", edges, 0, nodes),
        ]
        given += [("edges", self.edges, -1, len(edges)), ("nodes", self.nodes, -1, nodes)]
        for name, indices, least, count in given:
            if indices is not None and (why := _outside(np.asarray(indices), least, count)):
                return f"{name} {why}"
        return self._one_sided(d)

    def _one_sided(self, d: int) -> str:
        """Return which interaction is stated in one direction, twice, or of a parameter with itself; empty if none."""
        first, second = np.repeat(np.arange(d), np.diff(self.starts)), np.asarray(self.neighbours, np.int64)
        if (alone := first[first == second]).size:
            return f"parameter {alone[0]} is its own neighbour; leave it out"
        there, back = np.sort(first * d + second), np.sort(second * d + first)
        if (twice := there[1:][np.diff(there) == 0]).size:
            i, j = divmod(int(twice[0]), d)
            return f"parameter {i} has the neighbour {j} twice; state each once"
        if (odd := np.flatnonzero(there != back)).size:
            i, j = divmod(int(min(there[odd[0]], back[odd[0]])), d)
            return f"interactions are not symmetric: of {i} and {j}, only one has the other as its neighbour"
        return ""

    def __repr__(self) -> str:
        """Return the number of interactions, the names of the features, the graph and the passes."""
        parts = [f"{len(self.features):,} parameters, {len(self.neighbours) // 2:,} interactions"]
        parts += [f"features: {', '.join(self.feature_names)}"]
        parts += [] if self.graph is None else [repr(self.graph)]
        parts += [] if self.passes is None else [f"passes: {', '.join(self.passes.passes)}"]
        parts += [] if self.parts is None else [f"features of parts: {', '.join(self.parts.feature_names)}"]
        parts += [] if self.capacity is None else [f"capacity {self.capacity.limit:,}"]
        parts += ["costs of pairs"] if self.is_paired else []
        return f"Structure({'; '.join(parts)})"


def _outside(indices: NDArray, least: int, count: int) -> str:
    """Return that indices are no integers from `least` to `count` - 1, in words; empty if they are."""
    if indices.size and indices.dtype.kind not in "iu":
        return f"are of type {indices.dtype}, not integers"
    odd = indices[(indices < least) | (indices >= count)]
    return f"have the index {odd[0]}, but there are {count}" if odd.size else ""


def interacting(pairs: NDArray, d: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return `starts` and `neighbours` of a `Structure` with d parameters.

    Args:
      pairs: `(k, 2)` parameters that interact, in any order; what is repeated counts once, and a pair of one
        parameter with itself not at all.
    """
    first, second = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64).T
    keys = np.sort((first * d + second)[first != second])
    keys = keys[np.diff(keys, prepend=-1) > 0]  # a tenth of the time of `np.unique`
    return np.searchsorted(keys, np.arange(d + 1) * d), (keys % d).astype(np.int32)


class Strategies(Protocol):
    """Finds subclasses of `Strategy` by id, for a strategy that runs others; `bbo_suite.registry.Registry` is one."""

    def strategies(self) -> Mapping[str, Callable[[], type[Any]]]:
        """Return the loader of each strategy by id."""
        ...

    def strategy(self, name: str) -> type[Any]:
        """Return a strategy's class by its id.

        Raises:
          UserError: there is none.
        """
        ...


Compile = Callable[[NDArray], NDArray[np.float64]]
"""Returns the `(n, k)` statistics of `(n, d)` candidates, which it compiles."""
Screen = Callable[[NDArray], NDArray[np.float64]]
"""Predicts the `(n,)` costs of `(n, d)` candidates without an evaluation; inf for those that it expects to fail."""


class Compiler:
    """Compiles candidates without measuring them, and counts them; see `Problem.compile`.

    Attributes:
      statistics: the names of what a compilation tells.
      count: the candidates compiled so far.
    """

    def __init__(self, problem: str, space: Space, statistics: Sequence[str], function: Compile) -> None:
        self.statistics, self.count = tuple(statistics), 0
        self._problem, self._space, self._function = problem, space, function

    def __call__(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, k)` statistics of `(n, d)` candidates; a row of nan for one that cannot be compiled.

        Raises:
          ValueError: they are not rows of the space.
          UserError: the problem raised an exception, or returned another shape.
        """
        configs = self._space.check(configs)
        told, allowed = np.full((len(configs), len(self.statistics)), np.nan), self._space.allowed(configs)
        self.count += int(allowed.sum())
        if allowed.any():
            with error_boundary(f"problem {self._problem}", "compile"):
                found = np.asarray(self._function(configs[allowed]), np.float64)
                if found.shape != (wanted := (int(allowed.sum()), len(self.statistics))):
                    raise ValueError(
                        f"it returned shape {found.shape}, not {wanted}: a row a candidate, a column a name"
                    )
            told[allowed] = found
        return told


@dataclass(frozen=True, repr=False)
class Task:
    """A problem as a strategy sees it.

    Attributes:
      problem: the problem's id, for messages only.
      space: the candidates.
      default: `(d,)` the candidate that the compiler would choose itself.
      unit: the unit of the costs, which are minimised.
      structure: what the problem declares about its parameters; None if nothing, or if the strategy is black-box.
      strategies: the strategies that the study knows, including plugins, for a strategy that runs others; None: only
        installed ones.
      screen: returns the model of costs with a name, or in a file; see `Problem.screen`. None as for the structure.
      compiler: says what compiling a candidate tells, without measuring it; None if nothing, or if the strategy sees
        only costs.
    """

    problem: str
    space: Space
    default: NDArray
    unit: str
    structure: Structure | None = None
    strategies: Strategies | None = None
    screen: Callable[[str], Screen] | None = None
    compiler: Compiler | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "default", np.array(self.default))
        keep_unchanged(self)

    def at(self, level: Level) -> Task:
        """Return the task with what a strategy of a level may know, if this one knows as much."""
        structure, screen = self.structure, self.screen
        if level < Level.STRUCTURE:
            structure = screen = None
        elif level < Level.PARTS and structure is not None:
            structure = replace(structure, parts=None)
        compiler = self.compiler if level >= Level.COMPILATION else None
        return replace(self, structure=structure, screen=screen, compiler=compiler)

    def __repr__(self) -> str:
        """Return the problem's id, the space, the default, the unit and the structure."""
        default = row_text(self.default)
        return f"Task({self.problem!r}, {self.space!r}, default {default}, unit {self.unit!r}, {self.structure!r})"
