"""The child process that runs LLVM: it takes a sequence of actions and returns a cost."""

from __future__ import annotations

import hashlib
import math
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import llvmlite.binding as llvm

from bbo_suite.supervised import COMPILE, PAIRS, PARTS
from bbo_suite.timing import Ratios, SharedCosts, pair

from ..pass_order.state import STATE, described
from .actions import FUNCTIONS, MODULE
from .machine_code import OPCODES, Row, code_bytes, code_functions, graph, instructions, text_functions
from .running import WANTED, Running, has_main, prepared, why_not_callable

_KEPT = 256
_SHARED_BYTES = 128 << 20
_SWAPPED = """define i64 @f(i64 %x) {
  %y = add i64 %x, 1
  %z = add i64 %x, %y
  ret i64 %z
  uselistorder i64 %x, { 1, 0 }
}"""
State = tuple[bytes, tuple[str, ...]]
"""Bitcode, and the single passes that are still to be run on it: all that the result depends on."""


class Passes:
    """Applies actions to a module that is given as bitcode.

    After every pipeline the module is written to bitcode and read again, even if the result is known already. Bitcode
    does not keep the order of uses, so without this the later passes would depend on what was remembered. Sequences
    that reach the same state share the rest.

    Args:
      level: optimisation level of the pipelines; 2, with functions that ask for minimal size, is clang's -Oz.
    """

    def __init__(self, bitcode: bytes, machine: llvm.TargetMachine, level: int) -> None:
        self._bitcode, self._machine = bitcode, machine
        self._tuning = llvm.create_pipeline_tuning_options(level)
        self._tuning.slp_vectorization = True  # as in clang: with it the counts agree to the instruction
        self._builder = self._new_builder()
        self._after = lru_cache(_KEPT)(self._piped)
        self._shared: dict[bytes, bytes] | None = {} if text_is_whole() else None

    def run(self, actions: Sequence[str]) -> llvm.ModuleRef:
        """Return a new module: the actions, in their order, applied to the program."""
        return self.finish(self.state(actions))

    def state(self, actions: Sequence[str]) -> State:
        """Return the bitcode after the last pipeline of the actions, and the single passes after it."""
        bitcode, waiting = self._bitcode, list[str]()
        for action in actions:
            if action in (FUNCTIONS, MODULE):
                bitcode, waiting = self._after(bitcode, tuple(waiting), action), []
            else:
                waiting.append(action)
        return bitcode, tuple(waiting)

    def finish(self, state: State) -> llvm.ModuleRef:
        """Return a new module: the state after its single passes have run."""
        bitcode, names = state
        module = llvm.parse_bitcode(bitcode, llvm.create_context())  # the global one would keep all constants
        if names:
            manager = llvm.create_new_module_pass_manager()
            for name in names:
                getattr(manager, f"add_{name}_pass")()
            manager.run(module, self._new_builder())
            manager.close()
        return module

    def _piped(self, bitcode: bytes, names: tuple[str, ...], pipeline: str) -> bytes:
        module = self.finish((bitcode, names))
        if self._shared is None:
            return self.through(module, pipeline).as_bitcode()
        text = hashlib.blake2b(f"{pipeline} {module}".encode(), digest_size=16).digest()
        if text not in self._shared:  # different passes often give the same module
            if len(self._shared) * len(self._bitcode) > _SHARED_BYTES:
                self._shared.clear()
            self._shared[text] = self.through(module, pipeline).as_bitcode()
        return self._shared[text]

    def through(self, module: llvm.ModuleRef, pipeline: str) -> llvm.ModuleRef:
        """Run a pipeline on a module, and return it."""
        if pipeline == MODULE:
            manager = self._builder.getModulePassManager()
            manager.run(module, self._new_builder())
        else:
            manager = self._builder.getFunctionPassManager()
            for function in module.functions:
                if not function.is_declaration:
                    manager.run(function, self._new_builder())
        manager.close()
        return module

    def _new_builder(self) -> llvm.PassBuilder:
        """Return a builder for one run: each run adds callbacks to its builder, which all later passes would call."""
        return llvm.create_pass_builder(self._machine, self._tuning)


@cache
def text_is_whole() -> bool:
    """Make LLVM write the order of uses in this process from now on, and return whether it does.

    With it, passes depend on a module's text alone; without it, 1 of 116 modules of equal text gave another result.
    """
    llvm.set_option("", "-preserve-ll-uselistorder")
    return "uselistorder" in str(llvm.parse_assembly(_SWAPPED))


FACTS = "facts"
"""The request for facts about the program; others are a tuple of actions, or `PARTS`, `STATE` or `COMPILE` and one."""
_RUN = "run the result"
FIRST_SECONDS = 10.0
"""Time limit of the unoptimised program: nearly every candidate is run, too."""
_SHOWN = 200
"""Characters of results in a reason."""
_VARIES = "what it prints differs from run to run"
_REMEMBERED = 4096
"""Outcomes that are kept in memory."""
Enter = Callable[[str, float], None]


def serve(
    text: str, fast_text: str, objective: str, seeds: tuple[int, ...], default: tuple[str, ...] = ()
) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program.

    Args:
      text: the module.
      fast_text: the same, without attributes that ask for small code.
      objective: `instructions`, `bytes` or `time`.
      seeds: arguments of `run` when results are compared.
      default: the actions of the default; none: its results are not compared first.

    Raises:
      ValueError: the program cannot be optimised, or does not end.
    """
    prepare()
    return Optimiser(text, fast_text, objective, seeds, default, forbid_processes).answer


def prepare() -> None:
    """Prepare this process for compiling and running a program."""
    os.environ.clear()  # the program runs in this process, and it is a user's
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # for inline assembly in what is run


def forbid_processes() -> None:
    """Let this process start no other; root still may, and the end of this process ends those."""
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


class Optimiser:
    """One program, its correct results, and the outcomes of the modules that were made of it.

    Attributes:
      run_seconds: least time limit of an optimised program.

    Args:
      default: the actions of the default, whose results are compared first; none: they are not.
      confine: called before the program runs for the first time.
      make_passes: what runs actions: takes the module, the target and the level of optimisation.
    """

    run_seconds = 5.0

    def __init__(
        self,
        text: str,
        fast_text: str,
        objective: str,
        seeds: tuple[int, ...],
        default: tuple[str, ...] = (),
        confine: Callable[[], None] = lambda: None,
        make_passes: Callable[[llvm.ModuleRef, llvm.TargetMachine, int], Any] = lambda module, *others: Passes(
            module.as_bitcode(), *others
        ),
    ) -> None:
        self._objective, self._seeds, self._fast_text, self._confine = objective, seeds, fast_text, confine
        module = _parsed(fast_text if objective == "time" else text)
        _check(module)
        if objective != "time":
            _ask_for_size(module)
        target = llvm.Target.from_triple(module.triple)
        self.machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")  # as in clang -c
        self.passes = make_passes(module, self.machine, 3 if objective == "time" else 2)
        self._before = instructions(str(module))
        self._known: dict[bytes, Any] = {}
        self._plain, self._calls_main = module.as_bitcode(), has_main(module)
        self._called = "main" if self._calls_main else "run"
        self.correct: tuple[Any, ...] | None = None
        self._why_not = why_not_callable(module) or self._why_not_compared(default)
        if objective == "time" and (self._why_not or self._calls_main):
            raise ValueError(f"its time cannot be measured: {self._why_not or f'it defines no {WANTED}'}")
        if objective == "time":
            self._reference, code = self._compiled(default or (MODULE,))
            self._reference.__enter__().results(seeds)  # stays to be compared with
            self._ratios, self._costs = Ratios(lambda: self._seconds(self._reference)), SharedCosts(code, 1.0)

    def _why_not_compared(self, default: tuple[str, ...]) -> str:
        """Keep the results of the unoptimised program; return why others cannot be compared with them, if so."""
        print("while it ran the unoptimised program", flush=True)  # explains a death of this process
        started = time.perf_counter()
        results = self._first_results(self._unoptimised())
        self._run_limit = max(self.run_seconds, 50 * (time.perf_counter() - started))
        if self._calls_main and results[0]:
            return f"unoptimised, {results[0]}"
        if self._calls_main and self._first_results(self._unoptimised()) != results:
            return _VARIES
        print("while it ran the program that the default makes", flush=True)
        if default and self._first_results(self.passes.run(default)) != results:
            return "the default makes it return something else, as if its behaviour was undefined"
        self.correct = results
        return ""

    def _unoptimised(self) -> llvm.ModuleRef:
        return llvm.parse_bitcode(self._plain)

    def _first_results(self, module: llvm.ModuleRef) -> tuple[Any, ...]:
        """Return the results of a program that may not end; of `main` why there are none, and what it prints."""
        with Running(module, 0, self._called) as running:
            if self._calls_main:
                return running.output(FIRST_SECONDS, self._confine)
            return running.first_results(self._seeds, FIRST_SECONDS, self._confine)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - facts, a cost, or why there is none
        """Return the facts, or the cost of a sequence of actions, or a status and a reason; or this and its parts."""
        if request == FACTS:
            return self._facts()
        if request[:1] == (STATE,):
            return self._seen(request[1], enter)
        if request[:1] == (COMPILE,):
            return statistics(self.passes.run(request[1]), self.machine)
        if request[:1] == (PAIRS,):
            return self._pairs(enter, *request[1:])
        if self._objective == "time":
            return self._timed(request, enter)
        with_parts = request[:1] == (PARTS,)
        state = self.passes.state(request[1] if with_parts else request)
        key = _digest(state[0] + repr((state[1], with_parts)).encode())
        if key not in self._known:  # many sequences reach the same state
            self._keep(key, self._of_content(self.passes.finish(state), with_parts, enter))
        return self._known[key]

    def _seen(self, actions: tuple[str, ...], enter: Enter) -> tuple[Any, ...]:
        """Return the fields of a state.

        Raises:
          ValueError: the optimised program computes something else.
        """
        if isinstance(cost := self.answer(actions, enter), tuple):
            raise ValueError(": ".join(cost))
        return cost, *described(graph(str(self.passes.run(actions))))

    def _of_content(self, module: llvm.ModuleRef, with_parts: bool, enter: Enter) -> Any:  # noqa: ANN401 - as `answer` does
        module.verify()
        text = str(module)
        content = _digest(f"{with_parts}{text}".encode())
        if content not in self._known:  # and many states give the same module
            self._keep(content, self._sized(module, text, with_parts, enter))
        return self._known[content]

    def _keep(self, key: bytes, outcome: Any) -> None:  # noqa: ANN401 - a cost, or why there is none
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = outcome

    def _sized(self, module: llvm.ModuleRef, text: str, with_parts: bool, enter: Enter) -> Any:  # noqa: ANN401
        parts = self._parts(module, text) if with_parts else []
        cost = sum(part[-1] for part in parts) if with_parts else self._cost(module, text)
        wrong = self._why_wrong(module, enter)
        return (wrong or cost, [] if wrong else parts) if with_parts else wrong or cost

    def _parts(self, module: llvm.ModuleRef, text: str) -> list[Row]:
        return text_functions(text) if self._objective == "instructions" else code_functions(module, self.machine)

    def _cost(self, module: llvm.ModuleRef, text: str) -> float:
        return float(instructions(text) if self._objective == "instructions" else code_bytes(module, self.machine))

    def _why_wrong(self, module: llvm.ModuleRef, enter: Enter) -> tuple[str, str] | None:
        if self.correct is None:
            return None
        enter(_RUN, self._run_limit)
        with Running(module, 0, self._called) as running:
            endless = math.inf, self._confine
            results = running.output(*endless) if self._calls_main else running.results(self._seeds)
        return None if results == self.correct or self._varies() else self._wrong(results)

    def _varies(self) -> bool:
        """Return whether the unoptimised program with `main` has other results now, as if they depend on the time."""
        if self._calls_main and self._first_results(self._unoptimised()) != self.correct:
            self.correct, self._why_not = None, _VARIES
        return self.correct is None

    def _timed(self, actions: tuple[str, ...], enter: Enter) -> Any:  # noqa: ANN401 - a cost, or why there is none
        """Return the time over the default's, measured in turns."""
        running, code = self._compiled(actions)

        def measured(again: bool) -> Any:  # noqa: ANN401 - as above
            enter(_RUN, 10 * self._run_limit)
            return self._wrong_when_run(running) or self._ratios.of(lambda: self._seconds(running), again)

        with running:
            return self._costs.of(actions, code, measured)

    def _compiled(self, actions: Sequence[str]) -> tuple[Running, str]:
        """Return a program that can run, and a hash of its code."""
        module = self.passes.run(actions)
        module.verify()
        bitcode = module.as_bitcode()  # emitting code changes the module
        code = _digest(self.machine.emit_object(module)).hex()
        return Running(llvm.parse_bitcode(bitcode), 2), code

    def _wrong_when_run(self, running: Running) -> tuple[str, str] | None:
        results = running.results(self._seeds)
        return None if results == self.correct else self._wrong(results)

    def _seconds(self, running: Running) -> float:
        return running.seconds(self._seeds[0])

    def _pairs(self, enter: Enter, ours: Sequence[str], theirs: Sequence[str], first: int, count: int) -> list[float]:
        """Return the logarithms of the ratios of two candidates, in turns; one that fails is infinitely dear."""
        (running, code), (other, others_code) = self._compiled(ours), self._compiled(theirs)
        if code == others_code:
            return [0.0] * count
        with running, other:
            enter(_RUN, 10 * self._run_limit)
            if self._wrong_when_run(running):
                return [math.inf]
            self._wrong_when_run(other)  # its constructors run, too
            measures = (lambda: self._seconds(running)), (lambda: self._seconds(other))
            return [pair(*measures, first + i) for i in range(count)]

    def _wrong(self, results: tuple[Any, ...]) -> tuple[str, str]:
        assert self.correct is not None
        if self._calls_main:
            differs = f"it prints {results[1][:_SHOWN]}, not {self.correct[1][:_SHOWN]}"
            return ("runtime_error", results[0]) if results[0] else ("wrong_result", differs)
        pairs = zip(self._seeds, results, self.correct, strict=True)
        seed, got, wanted = next(triple for triple in pairs if triple[1] != triple[2])
        return "wrong_result", f"run({seed}) returns {got}, not {wanted}"

    def _facts(self) -> dict[str, Any]:
        """Return facts for `show`."""
        module = _parsed(self._fast_text)
        fastest = Passes(module.as_bitcode(), self.machine, 3).run([MODULE])
        counted = instructions(text := str(fastest))
        return {
            "main": self._calls_main,
            "instructions": self._before,
            "-O3": counted,
            "cost at -O3": None if self._objective == "time" else self._cost(fastest, text),
            "why not run": self._why_not,
        }


def statistics(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> list[float]:
    """Return the bytes of code, the functions with a body, and the instructions of each of `OPCODES`."""
    module.verify()
    kinds = Counter(kind for _, kind, _ in graph(str(module)))
    bodies = sum(not function.is_declaration for function in module.functions)
    return [float(code_bytes(module, machine)), float(bodies), *(float(kinds[opcode]) for opcode in OPCODES)]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _parsed(text: str) -> llvm.ModuleRef:
    module = prepared(text)
    module.triple = module.triple or llvm.get_process_triple()
    return module


def _check(module: llvm.ModuleRef) -> None:
    module.verify()  # the parser takes what makes passes hang
    bodies = [function for function in module.functions if not function.is_declaration]
    if not bodies:
        raise ValueError("it defines no function")
    if any(b"optnone" in attributes for function in bodies for attributes in function.attributes):
        raise ValueError("its functions forbid optimisation (optnone); make it with -O1 -Xclang -disable-llvm-passes")


def _ask_for_size(module: llvm.ModuleRef) -> None:
    for function in module.functions:
        if not function.is_declaration:
            function.add_function_attribute("minsize")
            function.add_function_attribute("optsize")
