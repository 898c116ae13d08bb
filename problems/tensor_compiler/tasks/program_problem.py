"""The base of all tasks on programs: names, machine, loading, and the kernels of a candidate."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import NDArray

from bbo_suite import Problem
from bbo_suite.core.problem import ESTIMATE
from bbo_suite.core.program import NO_CHANGE, Change, Kernel, Program
from bbo_suite.core.task import Screen

from ..hardware.machine import MACHINES, Machine, Rate, split_machine
from .programs import lowered, names, program

if TYPE_CHECKING:
    from ..fusion.fusion_pass import CandidateKernels, Fusion
    from ..graph.graph import ProgramGraph
    from ..layout.layout_pass import LaidOutProgram

Settings = Mapping[int, Mapping[str, str]]
"""What is chosen for nodes of the first graph, by name."""


class ProgramProblem(Problem):
    """A task on a program and a machine: `family/program@machine`, or `family:path@machine` for a user's program."""

    instances: ClassVar[tuple[str, ...]] = names()
    unit = "seconds"
    reads_files = True
    costs = "simulated seconds"

    def __init__(self, instance: str | Path) -> None:
        """Load a program and prepare its task.

        Args:
          instance: `program@machine`, or the `Path` of a user's program in HLO or StableHLO text, plain or gzipped,
            `path@machine`.

        Raises:
          UserError: the file cannot be read, there is no such machine, or nothing in the program can be tuned.
        """
        from ..graph.build import build  # it imports numba, which is slow: only when a program is loaded
        from ..hlo.reader import read
        from ..hlo.simplify import Simplified, read_simplified

        name, self._machine_name = split_machine(instance)
        name = self._without_kernel(name)
        users = isinstance(instance, Path)
        path = Path(name) if users else program(name)
        self._read = read_simplified(path) if users else Simplified(read(path), "", True)
        self._graph: ProgramGraph = build(self._read.module, str(path))
        self._machine: Machine = MACHINES[self._machine_name]
        self._catalogued = "" if users else name
        self._path = path if users else None
        self._prepare(path)

    def _without_kernel(self, name: str) -> str:
        """Return the name of the program, from the part of an instance's name before the machine."""
        return name

    @abstractmethod
    def _prepare(self, path: Path) -> None:
        """Set the space and the default; errors name `path`."""

    def screen(self, model: str) -> Screen:
        """Return the compiler's own `estimate`, or a learned model: `learned`, which ships, or that of a file.

        Raises:
          UserError: the file is no such model, or one that has seen this program or is for another machine.
        """
        if model == ESTIMATE:
            return self._estimate()
        from ...learned.kernels import KernelReader
        from ...learned.screen import LearnedScreen, read_model

        read = read_model(model, self._catalogued, self._machine_name)
        return LearnedScreen(read, self._machine, KernelReader(self._graph), self._analytical_compiler())

    def _estimate(self) -> Screen:
        return super().screen(ESTIMATE)

    @abstractmethod
    def _analytical_compiler(self) -> Callable[[NDArray], CandidateKernels]:
        """Return a function that compiles a `(d,)` candidate for the machine of the analytical model."""

    def paste(self, config: NDArray) -> str:
        """Return a line `decision = label` for each difference from the compiler's choice, by operation.

        An operation of a user's program has its place in the source, if the file says it, and a fusion that the
        candidate prevents has the way to do that in JAX. There is none if both stay in one kernel, as a barrier parts
        them.
        """
        lines: dict[str, list[str]] = {}
        changes = self.changes(config)
        kernels = self._members(config) if self._sources and any(map(_is_cut, changes)) else []
        for change in changes:
            operation, what = place(change.name)
            source = self._sources.get(_plain(operation), "")
            way = f"  ({_way(change, kernels)})" if source and _is_cut(change) else ""
            heading = f"{operation}  ({source})" if source else operation
            lines.setdefault(operation, [heading]).append(f"  {what} = {change.value}{way}")
        return "\n".join(line for own in lines.values() for line in own) or NO_CHANGE

    def _members(self, config: NDArray) -> list[set[str]]:
        """Return the names of the operations in each kernel that a candidate makes."""
        made = self.picture(config)
        return [{_plain(member) for member in kernel.members} for kernel in made.kernels] if made else []

    @cached_property
    def _sources(self) -> dict[str, str]:
        """Where the instructions of a user's program come from."""
        if self._path is None:
            return {}
        from ..hlo.reader import as_hlo, read_text
        from ..hlo.sources import sources

        return sources(*as_hlo(read_text(self._path), str(self._path)))

    def usage(self) -> str:
        """Return that no real compiler takes these decisions, and whether XLA's own passes ran before."""
        doubt = "" if self._read.ran else ". XLA's own passes did not run here, so XLA may find such gains by itself"
        return (
            "for reading only: these are decisions of a simulated compiler, which no real one takes by name. They show"
            " where a real compiler may gain. JAX can ask for some: jax.lax.optimization_barrier prevents a fusion, and"
            " with_layout_constraint of jax.experimental.layout sets a layout. xla-tpu searches decisions of XLA:TPU"
            " that can be pasted"
            f"{doubt}"
        )

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the machine and the cost model."""
        content = f"{type(self).__name__}|{self._graph.cost_model}|{self._machine}|{self._graph.digest()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def facts(self) -> dict[str, str]:
        """Return the machine, what XLA's passes did, the size of the program, and what is assumed about it."""
        operations = f"{int((self._graph.kind > 1).sum()):,}"
        passes = {"XLA's passes": self._read.note or self._what_passes_did()}
        return {"machine": self._machine_name, **passes, "operations": operations, **self.assumptions()}

    def _what_passes_did(self) -> str:
        """Return what XLA's passes did to a program of ours, whose text is as after them."""
        from ..hlo.reader import read
        from ..hlo.simplify import summary

        return summary(read(lowered(self._catalogued)), self._read.module)

    def assumptions(self) -> dict[str, str]:
        """Return why XLA's passes did not run, and what is taken for unknown operations, types and lengths of loops."""
        from ..hlo.opcodes import unknown

        passes = {} if self._read.ran else {"XLA's passes": self._read.note}
        return passes | unknown(self._read.module) | self._graph.not_counted()


def _is_cut(change: Change) -> bool:
    return " -> " in change.name and change.value == "False"


def _plain(name: str) -> str:
    """Return the name of an operation in the module, without the number of its copy and its opcode."""
    return name.partition(" ")[0].partition("~")[0]


def _way(change: Change, kernels: list[set[str]]) -> str:
    """Return how to ask JAX for a fusion that a candidate prevents."""
    ends = {_plain(end) for end in change.name.removeprefix("fuse ").split(" -> ")}
    if any(ends <= kernel for kernel in kernels):
        return "both stay in one kernel, for which JAX has no word"
    return "in JAX: an optimization_barrier there"


def place(name: str) -> tuple[str, str]:
    """Return the operation that a decision is about, and what is decided about it, from the decision's name."""
    operation = name.removeprefix("layout of ").removeprefix("fuse ")
    for mark, what in ((" -> ", "fused into "), (": ", "")):
        start, found, rest = operation.partition(mark)
        if found:
            return start, f"{what}{rest}"
    return operation, "layout"


def program_picture(laid: LaidOutProgram, fusion: Fusion, machine: Machine, settings: Settings) -> Program:
    """Return the program that a fusion pass has evaluated last.

    Args:
      laid: the program that the pass has fused.
      fusion: the pass.
      machine: what it runs on.
      settings: what is chosen for nodes; a kernel has those of all nodes that it computes.
    """
    fused, hertz = fusion.last_program(), float(machine.array()[Rate.HERTZ])
    names, kernels = _names(laid), []
    for i, (result, cycles) in enumerate(zip(fused.result.tolist(), fused.cycles.tolist(), strict=True)):
        nodes = fused.members[fused.starts[i] : fused.starts[i + 1]].tolist()
        chosen = {name: text for v in nodes for name, text in settings.get(int(laid.origin[v]), {}).items()}
        members = tuple(names[v] for v in nodes)
        kernels.append(Kernel(names[result], cycles / hertz, members, chosen))
    return Program(tuple(kernels), fused.edges)


def _names(laid: LaidOutProgram) -> list[str]:
    """Return a different name for each node, with the opcode where the name does not begin with it."""
    names: dict[str, None] = {}
    for node in range(len(laid.origin)):
        name, opcode = laid.name(node), laid.opcode(node)
        shown = name if name.startswith(opcode) else f"{name} ({opcode})"
        copies = (shown if number == 1 else f"{name}~{number} ({opcode})" for number in count(1))
        names[next(copy for copy in copies if copy not in names)] = None
    return list(names)
