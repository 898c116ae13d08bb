"""The child process that compiles a module with decisions on its call sites, and returns a cost."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import llvmlite.binding as llvm

from ..llvm.actions import FUNCTIONS, MODULE
from ..llvm.ir import without_size
from ..llvm.machine_code import Row, code_functions, instructions, sections, text_functions
from ..llvm.worker import Enter, Optimiser, Passes, forbid_processes, prepare
from .sites import Function, Module

GRAPH, TEXT, REMARKS, DECIDED, RESULTS = "graph", "text", "remarks", "decided", "results"
"""Requests for the call graph and for the module; `(REMARKS, decisions)` asks for what a candidate inlines, in lines
that clang replays, `(DECIDED, decisions)` for what LLVM makes of each decision, and `(RESULTS, text)` whether a module
that another compiler made of this one has the same results. A candidate is a text with the number of each decision."""
_READ_ONLY = (b".rodata", b".data.rel.ro")
_GROWTH, _SPARE = 4.0, 10_000
"""Before it is compiled, a candidate may have so many times the instructions of the module, and so many more."""
_REMARK = re.compile(
    r"^remark: [^\n]*?:(\d+):0: '[^\n]*' inlined into '([^\n]*)' with \(cost=([-\w]+)(?:, threshold=(-?\d+))?",
    re.MULTILINE,
)
_VERDICT = re.compile(r"^remark: [^\n]*?:(\d+):0: '[^\n]*?' ((?:not |will not be )?)inlined into '", re.MULTILINE)
_VERDICTS = {(True, False): "1", (False, True): "2"}
"""By whether a call is left in some copy, and whether it is inlined in some."""
_LAST_CALL = 15_000
"""By how much LLVM lowers the cost of inlining the last call of a function that then vanishes."""
_NAMED = re.compile(r'^define [^@]*@("[^"]*"|[-\w.$]+)\(.*?^\}', re.MULTILINE | re.DOTALL)
_KINDS = {
    "memory": r"^  (?:%\S+ = )?(?:load|store|atomicrmw|cmpxchg)\b",
    "calls": r"^  (?:%\S+ = )?(?:tail |musttail |notail )?(?:call|invoke) (?!.*@llvm\.(?:lifetime|dbg|assume))",
    "branches": r"^  (?:br i1|switch)\b",
}


def serve(texts: tuple[str, ...], objective: str, seeds: tuple[int, ...]) -> Callable[[Any, Enter], Any]:
    """Return the handler for one module.

    Args:
      texts: of modules, which are linked to one.
      objective: `instructions`, `bytes`, `data` or `time`.
      seeds: arguments of `run` when results are compared.

    Raises:
      ValueError: the modules cannot be linked or compiled, or there is nothing to decide.
    """
    prepare()
    return _Inliner(_linked(texts), objective, seeds).answer


def _linked(texts: tuple[str, ...]) -> str:
    if len(texts) == 1:
        return texts[0]
    first, *others = (llvm.parse_assembly(text) for text in texts)
    for other in others:
        if (found := _machine(other)) and (wanted := _machine(first)) and found != wanted:
            raise ValueError(f"its files are for {first.triple} and {other.triple}; compile them for one machine")
        first.link_in(other)
    return str(first)


def _machine(module: llvm.ModuleRef) -> tuple[str, ...]:
    """Return the processor and the system that a module is for; empty if it does not say."""
    parts = llvm.get_triple_parts(module.triple) if module.triple else None
    return (parts.Arch, parts.OS, parts.ObjectFormat) if parts else ()


class _Inliner(Optimiser):
    """A module, its call sites, and the outcomes of decisions."""

    def __init__(self, text: str, objective: str, seeds: tuple[int, ...]) -> None:
        super().__init__(text, without_size(text), objective, seeds, (MODULE,), forbid_processes, Decisions)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - as the base class
        """Return the call graph, the module, what a candidate inlines, a verdict, or what the base class does."""
        if request == GRAPH:
            return self._graph()
        if request == TEXT:
            return self.passes.module.text
        if request[:1] == (RESULTS,):
            return self._verdict(request[1], enter)
        if request[:1] == (DECIDED,):
            return self.passes.decided(request[1])
        return self.passes.inlined(request[1]) if request[:1] == (REMARKS,) else super().answer(request, enter)

    def _verdict(self, text: str, enter: Enter) -> str:
        try:
            wrong = self._why_wrong(llvm.parse_assembly(text), enter)
        except RuntimeError:
            return "its results were not compared: LLVM here cannot read what clang writes"
        if self.correct is None:  # it may have turned out just now that they vary
            return f"its results were not compared: {self._why_not}"
        return "its results are right" if wrong is None else f"WRONG results: {wrong[1]}"

    def _cost(self, module: llvm.ModuleRef, text: str) -> float:
        return sum(row[-1] for row in self._parts(module, text))

    def _parts(self, module: llvm.ModuleRef, text: str) -> list[Row]:
        if self._objective == "instructions":
            return text_functions(text)
        rows = code_functions(module, self.machine)
        if self._objective == "data":
            named = ((each.name() or b"", each.size()) for each in sections(module, self.machine))  # the first has none
            kept = sum(size for name, size in named if name.startswith(_READ_ONLY))
            rows.append(("read-only data", b"", 1.0, float(kept)))
        return rows

    def _graph(self) -> dict[str, Any]:
        """Return the functions, their sizes when simplified alone, the free sites, and what the default inlines."""
        decisions: Decisions = self.passes
        module, default = decisions.module, decisions.by_default()
        return {
            "names": [function.name for function in module.functions],
            "hidden": [decisions.hidden(function) for function in module.functions],
            "sizes": decisions.sizes(),
            "sites": [
                (*site[:2], site.inlinable, site.arguments, site.constants, site.depth, site.free, default[number])
                for number, site in enumerate(module.sites)
            ],
            "lines": decisions.lines(),
            "results": (self._calls_main, self._why_not),
        }


class Decisions:
    """Compiles a module with decisions on its sites, as `Passes` compiles one with actions."""

    def __init__(self, module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int) -> None:
        llvm.set_option("", "-inline-cost-full")  # else LLVM looks at no stated cost of what it thinks too dear
        self.module = Module(str(module))
        if not self.module.decisions:
            raise ValueError("it has no call whose inlining is open: none of a function that it defines itself")
        self._passes = Passes(module.as_bitcode(), machine, level)
        self._sizes = [instructions("\n".join(["", *(line for _, line in f.lines)])) for f in self.module.functions]
        self._most = _GROWTH * sum(self._sizes) + _SPARE

    def run(self, decisions: str | Sequence[str]) -> llvm.ModuleRef:
        """Return a new module, compiled with decisions, or with the actions `(MODULE,)`: the default."""
        if isinstance(decisions, str):
            return self.finish((b"", decisions))
        return self._compiled(self.module.text)

    def state(self, decisions: str) -> tuple[bytes, str]:
        """Return what `finish` takes."""
        return b"", decisions

    def finish(self, state: tuple[bytes, str]) -> llvm.ModuleRef:
        """Return a new module, compiled with decisions.

        Raises:
          ValueError: it would become too large.
        """
        grown = self._grown(state[1])
        if grown > self._most:
            raise ValueError(f"inlining would make {grown:,.0f} instructions of {sum(self._sizes):,}")
        return self._compiled(self.module.decided(state[1]))

    def _compiled(self, text: str) -> llvm.ModuleRef:
        return self._passes.through(llvm.parse_assembly(text, llvm.create_context()), MODULE)

    def _grown(self, decisions: str) -> float:
        """Return the instructions after all that is asked for is inlined, before anything is simplified."""
        into: list[list[int]] = [[] for _ in self._sizes]
        for site, decision in zip(self.module.decisions, decisions, strict=True):
            if decision == "2":
                into[site.caller].append(site.callee)
        grown = dict[int, float]()

        def of(function: int, around: frozenset[int]) -> float:
            if function not in grown:
                inner = around | {function}
                own = sum(of(callee, inner) for callee in into[function] if callee not in inner)
                grown[function] = self._sizes[function] + own
            return grown[function]

        return sum(of(function, frozenset()) for function in range(len(self._sizes)))

    def sizes(self) -> list[list[int]]:
        """Return for each function its instructions, and those of each kind, after it is simplified alone."""
        passed = self._passes.through(llvm.parse_assembly(self.module.text), FUNCTIONS)
        bodies = {found[1].strip('"'): found[0] for found in _NAMED.finditer(str(passed))}
        found = [bodies.get(function.name, "") for function in self.module.functions]
        return [[instructions(b), *(len(re.findall(k, b, re.MULTILINE)) for k in _KINDS.values())] for b in found]

    def hidden(self, function: Function) -> int:
        """Return 1 if only calls that are seen here can reach a function, 2 if it never has code, 0 otherwise."""
        if "available_externally" in function.header:
            return 2
        name = function.name if re.fullmatch(r"[-\w.$]+", function.name) else f'"{function.name}"'
        return int(function.local and not re.search(rf"@{re.escape(name)}(?![-\w.$(])", self.module.text))

    def inlined(self, decisions: str) -> list[str]:
        """Return what LLVM says of each call that it inlines; nothing of those in files without debug information."""
        with _remarks() as said:
            self.finish((b"", decisions))
            lines = [line.removeprefix("remark: ") for line in said().splitlines()]
        return list(dict.fromkeys(line for line in lines if "' inlined into '" in line and " at callsite " in line))

    @cached_property
    def _numbered(self) -> Module:
        """The module with the number of each site as its line, as LLVM prints it."""
        return Module(str(llvm.parse_assembly(self.module.numbered())))

    def decided(self, decisions: str) -> str:
        """Return for each decision what LLVM does: 1 leaves the call, 2 inlines it, 0 if it does both or neither."""
        with _remarks() as said:
            self._compiled(self._numbered.decided(decisions))
            made = {(int(line), not kept) for line, kept in _VERDICT.findall(said())}
        free = (number for number, site in enumerate(self.module.sites, start=1) if site.free)
        return "".join(_VERDICTS.get(((n, False) in made, (n, True) in made), "0") for n in free)

    def by_default(self) -> list[int]:
        """Return for each site what LLVM does where it is written; as `CallGraph.default`."""
        module, found = self.module, [0] * len(self.module.sites)
        with _remarks() as said:
            made = self._compiled(module.numbered())
            remarks = _REMARK.findall(said())
        left = {function.name for function in made.functions if not function.is_declaration}
        for line, caller, cost, threshold in remarks:
            name = module.functions[module.sites[int(line) - 1].caller].name
            if name == caller or name not in left:  # of a function that vanishes, its copies tell
                is_last = bool(threshold) and int(threshold) <= int(cost) + _LAST_CALL < _LAST_CALL // 2
                found[int(line) - 1] = found[int(line) - 1] or (2 if is_last else 1)
        return found

    def lines(self) -> list[str]:
        """Return the file, line and column of each site, as far as there is debug information."""
        files = dict(re.findall(r'^!(\d+) = !DIFile\(filename: "([^"]*)"', self.module.text, re.MULTILINE))
        scopes = dict(
            re.findall(r"^!(\d+) = (?:distinct )?!DI\w+\([^\n]*?file: !(\d+)", self.module.text, re.MULTILINE)
        )
        pattern = r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)(?:, column: (\d+))?, scope: !(\d+)"
        places = {
            number: ":".join([files.get(scopes.get(scope, ""), "?"), line, *([column] if column else [])])
            for number, line, column, scope in re.findall(pattern, self.module.text, re.MULTILINE)
        }
        return [places.get(site.location, "") for site in self.module.sites]


@contextmanager
def _remarks() -> Iterator[Callable[[], str]]:
    """Collect what LLVM says of inlining."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        _remark_on("inline")
        try:
            yield lambda: (file.seek(0), file.read().decode(errors="replace"))[1]
        finally:
            _remark_on("none")
            os.dup2(before, 2)
            os.close(before)


def _remark_on(passes: str) -> None:
    for kind in ("pass-remarks", "pass-remarks-missed"):
        llvm.set_option("", f"-{kind}={passes}")
