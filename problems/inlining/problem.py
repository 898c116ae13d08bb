"""Inlining decisions of LLVM as a problem."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Graph, Parts, Space, Structure, UserError
from bbo_suite.core.libraries import refusal
from bbo_suite.core.program import Kernel, Program, Words
from bbo_suite.core.task import interacting
from bbo_suite.core.variants import split_variant
from bbo_suite.supervised import LiveProblem, PartRow, Service, name_key, packed_by_name

from ..llvm.ir import SOURCES, argument, names, read, shipped
from ..llvm.machine_code import OPCODES
from ..llvm.problem import OLDEST, llvm_version
from ..packages import installed_version
from ..programs_c import SEEDS
from .replay import NOTHING, replayed, replaying

if TYPE_CHECKING:
    from .decomposition import CallGraph, InliningDecomposition

OBJECTIVES = {"bytes": "bytes", "data": "bytes", "instructions": "instructions", "time": "times the default"}
"""Each objective and its unit."""
VALUES = ("default", "call", "inline")
_OPTIMA = Path(__file__).with_name("optima.json")
"""By compiler, and by program that ships: the least bytes of all its candidates (results/inlining)."""
_FORMAT = 3
"""Increase it when the cost of a candidate changes."""
_LARGEST_CLIQUE = 24
"""Above so many decisions around one function, only those that follow each other are said to interact."""


class InliningProblem(LiveProblem):
    """Which calls LLVM inlines: `inlining/program`, or `inlining:file.c`, `.cpp`, `.ll`, or `inlining:a.c+b.c`.

    Each call whose callee the module defines is a decision: left to LLVM, called, or inlined. The default leaves all to
    LLVM, which is -Oz, or -O3 for time. The cost is the bytes of code of the object; with `@data` those of read-only
    data, too; with `@instructions` the instructions that remain; with `@time` the processor time of a call of
    `uint64_t run(uint64_t)` over that of the default, both measured in turns, where equal code is measured once.
    Several files become one module. A file of C or C++ is compiled by zig's clang. Every candidate is run as in
    `llvm/...`, and wrong if its results differ. A candidate that would grow beyond four times the module and 10,000
    instructions fails.

    Parts are the functions of the object, see `InliningDecomposition`: nearly exact; times have none. `graph` has the
    call graph, the features of each site, and what the default does. Sites that the source decides, and recursive ones,
    are left out.
    """

    variant_marks: ClassVar[str] = "@"
    instances: ClassVar[tuple[str, ...]] = names()
    reads_files = True
    decision = "which calls LLVM inlines"
    optimum_known = "18 small programs"
    costs = "bytes of code, instructions, or time over the default's"
    time_per_candidate = "0.02 to 2 s"

    def __init__(self, instance: str | Path) -> None:
        """Read the program, and let LLVM compile it once to see its calls.

        Args:
          instance: the name of a program that ships, or the `Path` of a user's file or of files between `+`; optionally
            with `@objective`.

        Raises:
          UserError: a file cannot be read or compiled, has no open call, or there is no such objective.
        """
        name, variant = split_variant(instance, OBJECTIVES)
        objective = variant or "bytes"
        self.unit = OBJECTIVES[objective]  # type: ignore[misc]
        self.noisy = self.timed = objective == "time"
        self.tells_parts = not self.timed
        self.statistics = ("bytes of code", "functions", *OPCODES) if self.timed else ()
        self._files = _split(name) if isinstance(instance, Path) else []
        self._stem = self._files[0].stem if self._files else name
        own = f"@{variant}" if variant else ""  # or else the variants of one program would share a file
        self.pasted_file = f"{self._stem}{own}.inlining" if self._is_one_source() else ""
        texts = tuple(read(file, with_lines=True) for file in self._files) or (shipped(name),)
        compiler = f"llvmlite-{installed_version('llvmlite', OLDEST, 'inlining/...')}"
        seconds = 20 + 120 * sum(map(len, texts)) / (1 << 20)
        arguments = (texts, objective, SEEDS)
        title = f"LLVM on {name}"
        self._serve(Service(f"{__package__}.worker:serve", arguments, seconds, name=title, confined=True))
        self.graph = self._asked()
        self._decided = np.flatnonzero(self.graph.columns >= 0)
        self.space = Space(
            np.where(self.graph.inlinable[self._decided], 3, 2), names=self._name, values=lambda i: VALUES
        )
        self.default = np.zeros(len(self._decided), np.int64)
        self._keys = np.array([name_key(name) for name in self.graph.names], np.uint64)
        content = "|".join((str(_FORMAT), compiler, objective, self.space.digest(), *texts))
        self._identify(content, "" if self.noisy else compiler)
        if objective == "bytes" and not self._files:
            self.optimum = json.loads(_OPTIMA.read_text()).get(compiler, {}).get(name)

    def _asked(self) -> CallGraph:
        from .decomposition import CallGraph
        from .worker import GRAPH

        found: dict[str, Any] = self.query(GRAPH)
        sites = np.array(found["sites"], np.int64).reshape(-1, 8).T
        free = sites[6] > 0
        columns = np.where(free, np.cumsum(free) - 1, -1)
        self._runs: tuple[bool, str] = found["results"]
        return CallGraph(
            tuple(found["names"]),
            np.array(found["hidden"], np.int64),
            np.array(found["sizes"], np.int64),
            *(sites[0], sites[1], sites[2] > 0, sites[3], sites[4], sites[5], columns, sites[7]),
            tuple(found["lines"]),
        )

    def _name(self, i: int) -> str:
        graph, site = self.graph, int(self._decided[i])
        caller, callee = (graph.names[side[site]] for side in (graph.callers, graph.callees))
        alike = (graph.callers == graph.callers[site]) & (graph.callees == graph.callees[site])
        place = f"at {graph.lines[site]}" if graph.lines[site] else f"call {1 + int(alike[:site].sum())}"
        return f"{caller} -> {callee}, {place}"

    @classmethod
    def available(cls) -> str:
        """Return whether llvmlite is missing or too old."""
        return refusal(lambda: installed_version("llvmlite", OLDEST, "inlining/..."))

    def request(self, config: NDArray) -> str:
        """Return the number of each decision, one digit each."""
        return "".join(map(str, config.tolist()))

    def _packed(self, rows: Sequence[PartRow]) -> bytes:
        return packed_by_name(rows)

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the costs with those of the functions that are described, and of the rest; times have none."""
        found = super().evaluate_parts(configs)
        if found.parts is None:
            return found
        by_name = [found.parts.of_candidate(i) for i in range(len(configs))]
        told = [self._told(*each) for each in zip(configs, found.values.tolist(), by_name, strict=True)]
        starts = np.cumsum([0, *(len(keys) for keys, _ in told)])
        keys, costs = (np.concatenate(column) for column in zip(*told, strict=True))
        parts = Parts(starts, keys, np.ones(len(keys)), costs)
        return Evaluations(found.values, found.status, found.reasons, found.seconds, parts)

    def _told(self, config: NDArray, value: float, by_name: Parts) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return keys and costs of the functions of a candidate and of the rest, nothing if it failed."""
        if not np.isfinite(value):
            return np.empty(0, np.uint64), np.empty(0)
        places, keys, _ = self.decomposition.described(config)
        known = dict(zip(by_name.keys.tolist(), by_name.costs.tolist(), strict=True))
        costs = np.array([known.get(key, 0.0) for key in self._keys[places[:-1]].tolist()])
        return keys, np.append(costs, value - costs.sum())

    def ratios(self, config: NDArray, reference: NDArray | str, first: int, count: int) -> Sequence[float]:
        """Return logarithms of ratios of two candidates' times, measured in turns; none if the cost is no time."""
        if not self.timed or isinstance(reference, str):
            return ()
        return self._ratios(self.request(config), self.request(reference), first, count)

    @property
    def _level(self) -> str:
        return "-O3" if self.timed else "-Oz"

    @property
    def decomposition(self) -> InliningDecomposition:
        """The functions of any candidate."""
        if not hasattr(self, "_decomposition"):
            from .decomposition import InliningDecomposition

            self._decomposition = InliningDecomposition(self.graph)
        return self._decomposition

    def structure(self) -> Structure:
        """Return the call graph, features of its sites, and the decomposition into functions.

        Decisions interact if they call a function or stand in it.
        """
        graph, sites = self.graph, self._decided
        callers, callees = graph.callers[sites], graph.callees[sites]
        starts, neighbours = interacting(_around(callers, callees, len(graph.names)), len(sites))
        uses = np.bincount(graph.callees, minlength=len(graph.names))
        calls = np.bincount(graph.callers, minlength=len(graph.names))
        features = {
            **{f"caller's {kind}": graph.sizes[callers, i] for i, kind in enumerate(_KINDS)},
            **{f"callee's {kind}": graph.sizes[callees, i] for i, kind in enumerate(_KINDS)},
            "callee's calls of the module": calls[callees],
            "calls of the callee": uses[callees],
            "callee is hidden": graph.hidden[callees] > 0,
            "arguments": graph.arguments[sites],
            "constants": graph.constants[sites],
            "loops around": graph.depths[sites],
            "inlinable": graph.inlinable[sites],
            "inlined by default": graph.default[sites] > 0,
        }
        edges = np.stack([callers, callees], axis=1).astype(np.int32)
        return Structure(
            starts,
            neighbours,
            np.stack(list(features.values()), axis=1).astype(np.float32),
            tuple(features),
            Graph(graph.sizes.astype(np.float32), _KINDS, edges),
            edges=np.arange(len(sites), dtype=np.int32),
            parts=None if self.timed else self.decomposition,
        )

    def picture(self, config: NDArray) -> Program | None:
        """Return the functions of the object with their sizes, the bodies in each, and the calls that are left.

        Which calls are inlined is as `InliningDecomposition` sees it; None if it fails or its cost is a time.
        """
        found = super().evaluate_parts(config[None])
        if found.parts is None or not len(found.parts.keys):
            return None
        sizes = dict(zip(found.parts.keys.tolist(), found.parts.costs.tolist(), strict=True))
        costs = np.array([sizes.get(key, 0.0) for key in self._keys.tolist()])
        return _drawn(self.graph, self.decomposition.inlined(config), costs, float(found.values[0]))

    def _is_one_source(self) -> bool:
        return len(self._files) == 1 and self._files[0].suffix in SOURCES

    def paste(self, config: NDArray) -> str:
        """Return what is inlined where, in lines that clang replays; of other files than C and C++ the decisions."""
        if not self.pasted_file:
            return super().paste(config)
        from .worker import REMARKS

        return "\n".join(self.query((REMARKS, self.request(config)))) or NOTHING

    def usage(self) -> str:
        """Return clang's command line that replays the decisions."""
        if not self.pasted_file:
            return "for reading only; for a file of C or C++ it is a file that clang replays"
        file = self._files[0]
        compiler = "clang++" if file.suffix in SOURCES[1:] else "clang"
        words = [compiler, *replaying(self.pasted_file, self._level), "-c", argument(str(file))]
        return f"{shlex.join(words)}; the code must be as it was, and LLVM {llvm_version()}"

    def replayed(self, config: NDArray, value: float) -> str:
        """Return whether clang makes of the pasted lines what was promised, and whether the results are right."""
        if not self.pasted_file:
            return ""
        from .worker import RESULTS, TEXT

        promised = value if self.unit == "bytes" else None
        module, lines = self.query(TEXT), self.paste(config)
        return replayed(module, lines, self._level, promised, lambda text: self.query((RESULTS, text)))

    def facts(self) -> dict[str, str]:
        """Return the compiler, the call graph, and whether results are compared."""
        graph, (main, why_not) = self.graph, self._runs
        compared = "run, and its output compared with that" if main else "run and compared with those"
        return {
            "compiler": f"LLVM through llvmlite {version('llvmlite')}",
            "default is": self._level,
            "functions": f"{len(graph.names):,}",
            "calls": f"{len(graph.callers):,} of these functions, {len(self._decided):,} to decide",
            "inlined by default": f"{int((graph.default[self._decided] > 0).sum()):,}",
            "results": f"NOT run: {why_not}" if why_not else f"{compared} of the unoptimised program",
        }


_KINDS = ("instructions", "memory instructions", "calls", "branches")


_WORDS = Words(
    *("function", "body", "a call", "called by", "calls"),
    strip="of the object, as wide as they are large",
    gone="others have its body",
)
_REST = "(other code)"


def _drawn(graph: CallGraph, inlined: NDArray[np.bool_], costs: NDArray[np.float64], total: float) -> Program:
    """Return the functions that have a cost, with the bodies in each and the calls between them, and the rest."""
    left = np.flatnonzero(costs > 0)
    bodies = [_bodies(f, graph.callers[inlined], graph.callees[inlined]) for f in left.tolist()]
    names = [tuple(graph.names[body] for body in own) for own in bodies]
    kernels = [Kernel(own[0], cost, own) for own, cost in zip(names, costs[left].tolist(), strict=True)]
    if (rest := total - costs.sum()) > 0:
        kernels.append(Kernel(_REST, rest, (_REST,)))
    called = [np.unique(graph.callees[~inlined & np.isin(graph.callers, own)]) for own in bodies]
    edges = [(a, b) for a, own in enumerate(called) for b in np.flatnonzero(np.isin(left, own)).tolist() if a != b]
    return Program(tuple(kernels), np.array(edges, np.int64).reshape(-1, 2), _WORDS)


def _bodies(function: int, callers: NDArray[np.int64], callees: NDArray[np.int64]) -> list[int]:
    """Return a function and all that is inlined into it, directly or not."""
    found = [function]
    for body in found:  # it grows
        found += [f for f in callees[callers == body].tolist() if f not in found]
    return list(dict.fromkeys(found))


def _split(name: str) -> list[Path]:
    """Return the files that a path means: one, or several between `+`."""
    files, rest = list[Path](), name.split("+")
    while rest:  # names may have a + of their own: the longest that exists
        ends = (end for end in range(len(rest), 0, -1) if Path("+".join(rest[:end])).exists())
        if not (part := "+".join(rest[: (end := next(ends, 1))])):
            raise UserError(f"{name!r} has a + without a file; write a.c+b.c")
        files.append(Path(part))
        rest = rest[end:]
    return files


def _around(callers: NDArray[np.int64], callees: NDArray[np.int64], functions: int) -> NDArray[np.int64]:
    """Return `(m, 2)` pairs of decisions that stand in one function or call it."""
    found = [np.empty((0, 2), np.int64)]
    for function in range(functions):
        group = np.flatnonzero((callers == function) | (callees == function))
        if len(group) > _LARGEST_CLIQUE:
            found.append(np.stack([group[:-1], group[1:]], axis=1))
        else:
            found.append(np.stack(np.meshgrid(group, group), axis=-1).reshape(-1, 2))
    return np.concatenate(found)
