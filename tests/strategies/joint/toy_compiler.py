"""A compiler of three passes for a chain of operations, small enough to know every candidate.

Layout: each operation computes in layout 0 or 1; a copy is inserted where two meet. Fusion: joins each operation, and
each copy, with what stands before it. Tile: one value for each kernel; 0 leaves it to the compiler. Layout 1 pays only
where operations are fused, which is what a search that tunes one pass after the other cannot see.
"""

import hashlib
import itertools
from dataclasses import dataclass

import numpy as np

from bbo_suite import Decisions, Evaluations, MultiPass, Problem, Space, Structure

TILES = 5


def number(*content):
    """Return 64 bits that stand for some content."""
    return int.from_bytes(hashlib.blake2b(repr(content).encode(), digest_size=8).digest())


@dataclass(frozen=True)
class Graph:
    """What there is before a pass: `kinds`, then also `layouts`, then also `kernels`, tuples of operation numbers.

    A copy before operation i is number -i.
    """

    kinds: str
    layouts: tuple = ()
    kernels: tuple = ()

    def nodes(self):
        """Return the numbers of operations and copies in order."""
        cut = [i for i in range(1, len(self.layouts)) if self.layouts[i - 1] != self.layouts[i]]
        return [node for i in range(len(self.kinds)) for node in ([-i, i] if i in cut else [i])]

    def content(self, kernel):
        """Return what tells kernels apart: kinds and layouts."""
        return tuple((self.kinds[node] if node >= 0 else "copy", self.layouts[abs(node)]) for node in kernel)


class Passes(MultiPass):
    """The passes; `calls` says what was asked."""

    passes = ("layout", "fusion", "tile")
    separable = frozenset({"tile"})
    automatic = frozenset({"tile"})

    def __init__(self, kinds):
        self.source, self._cache, self.calls = Graph(kinds), {}, []
        n = len(kinds)
        self._all = {"layout": np.arange(n), "fusion": n + np.arange(2 * n), "tile": 3 * n + np.arange(2 * n)}

    def columns(self, name):
        """Return n columns of layout; 2n of fusion and tile, by operation, then by the copy before it."""
        return self._all[name]

    def place(self, node):
        """Return the place of a node among the columns of a pass."""
        return node if node >= 0 else len(self.source.kinds) - node

    def _cached(self, key, make):
        return self._cache.setdefault(key, None) or self._cache.__setitem__(key, make()) or self._cache[key]

    def decisions(self, name, graph):
        """Return one decision an operation, one a node but the first, or one a kernel."""
        self.calls.append(("decisions", name))
        return self._cached((name, graph), lambda: getattr(self, f"_{name}")(graph))

    def _made(self, name, nodes, sizes, keys, share):
        order = np.argsort([self.place(node) for node in nodes])
        columns = self._all[name][[self.place(nodes[i]) for i in order]] if len(nodes) else np.empty(0, int)
        arrays = [np.array(a)[order] for a in (sizes, nodes, share)] if len(nodes) else [np.empty(0, int)] * 3
        return Decisions(columns, arrays[0], np.array([keys[i] for i in order], np.uint64), arrays[1], arrays[2])

    def _layout(self, graph):
        n = len(graph.kinds)
        return self._made("layout", range(n), [2] * n, [number(i) for i in range(n)], [1 / n] * n)

    def _fusion(self, graph):
        nodes = graph.nodes()
        keys = [number(*pair) for pair in itertools.pairwise(nodes)]
        return self._made("fusion", nodes[1:], [2] * len(keys), keys, [1.0] * len(keys))

    def _tile(self, graph):
        roots = [kernel[-1] for kernel in graph.kernels]
        sizes = [min(TILES, 2 + len(kernel)) for kernel in graph.kernels]
        keys = [number(graph.content(kernel)) for kernel in graph.kernels]
        return self._made("tile", roots, sizes, keys, [len(kernel) for kernel in graph.kernels])

    def default(self, name, graph):
        """Return that copies are fused with what stands before them, and nothing else."""
        self.calls.append(("default", name))
        decisions = self.decisions(name, graph)
        return (decisions.nodes < 0).astype(int) if name == "fusion" else np.zeros(len(decisions.nodes), int)

    def apply(self, name, graph, config):
        """Return the graph after a pass, the same object for the same decisions."""
        self.calls.append(("apply", name))
        values = config[self._all[name]]
        if name == "layout":
            made = Graph(graph.kinds, tuple(values.tolist()))
        elif name == "fusion":
            kernels = []
            for node in graph.nodes():
                fused = kernels and values[self.place(node)]
                kernels = [*kernels[:-1], (*kernels[-1], node)] if fused else [*kernels, (node,)]
            made = Graph(graph.kinds, graph.layouts, tuple(kernels))
        else:
            made = graph
        return self._cached(made, lambda: made)


def kernel_cost(content, tile):
    """Return the cost of one kernel: its launch, its operations, its edges by layout, and its tile."""
    cost = 10.0 + sum((2.0, 4.0)[layout] if kind != "copy" else 1.0 for kind, layout in content)
    cost += sum((1.0, -9.0)[a[1]] + 5.0 * (a[1] != b[1]) for a, b in itertools.pairwise(content)) / 2
    best = 1 + number("best tile", content) % (min(TILES, 2 + len(content)) - 1)
    return cost + (2.0 if tile == 0 else 3.0 * abs(tile - best))


class ToyCompiler(Problem):
    """The chain of operations as a flat problem; an instance is the kinds of its operations."""

    instances = ("abab", "abcabca")
    unit = "units"

    def __init__(self, instance="abab", fail=False):
        n = len(instance)
        self.passes, self._fail, self.id = Passes(instance), fail, f"toy_compiler/{instance}"
        self.space = Space([2] * (3 * n) + [TILES] * (2 * n))
        self.default = np.zeros(len(self.space), int)

    def fingerprint(self):
        """Return what tells instances apart."""
        return self.passes.source.kinds

    def structure(self):
        """Return the passes, and that no parameter is known to interact."""
        d = len(self.space)
        return Structure(np.zeros(d + 1, int), np.empty(0, np.int32), np.ones((d, 1)), ("one",), passes=self.passes)

    def evaluate(self, configs):
        """Return the sums of the kernels' costs."""
        return Evaluations.of([np.inf if self._fail else self.cost(row) for row in configs])

    def cost(self, row):
        """Return the cost of one row, whatever it holds where nothing is decided."""
        graph = self.passes.source
        for name in ("layout", "fusion"):
            graph = self.passes.apply(name, graph, row)
        decisions = self.passes.decisions("tile", graph)
        tiles = dict(
            zip(decisions.nodes.tolist(), np.minimum(row[decisions.columns], decisions.sizes - 1), strict=True)
        )
        return sum(kernel_cost(graph.content(kernel), tiles[kernel[-1]]) for kernel in graph.kernels)
