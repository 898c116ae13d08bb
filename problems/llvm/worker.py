"""The child process that runs LLVM: it takes a sequence of actions and returns a cost."""

from __future__ import annotations

import hashlib
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from ..pass_order.state import STATE, described
from .actions import MODULE
from .functions import Row, code_functions, graph, text_functions
from .machine_code import Running, code_bytes, instructions, runnable
from .passes import Passes

FACTS = "facts"
"""The request for facts about the program; others are a tuple of actions, or a pair of `_PARTS` or `STATE` and one."""
_PARTS = "parts"
_RUN = "run the result"
_FIRST_SECONDS = 10.0
"""Time limit of the unoptimised program: nearly every candidate is run, too."""
_REMEMBERED = 4096
"""Outcomes that are kept in memory."""
Enter = Callable[[str, float], None]


def serve(text: str, fast_text: str, objective: str, seeds: tuple[int, ...]) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program.

    Args:
      text: the module.
      fast_text: the same, without attributes that ask for small code.
      objective: `instructions`, `bytes` or `time`.
      seeds: arguments of `run` when results are compared.

    Raises:
      ValueError: the program cannot be optimised, or does not end.
    """
    prepare()
    return Optimiser(text, fast_text, objective, seeds, forbid_processes).answer


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
        self._machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")  # as in clang -c
        self._passes = make_passes(module, self._machine, 3 if objective == "time" else 2)
        self._before = instructions(str(module))
        self._correct = self._correct_results(module) if runnable(module) else None
        if objective == "time" and self._correct is None:
            raise ValueError("its time cannot be measured: it defines no i64 @run(i64) that can be called here")
        self._known: dict[bytes, Any] = {}

    def _correct_results(self, module: llvm.ModuleRef) -> tuple[int, ...]:
        started = time.perf_counter()
        print("while it ran the unoptimised program", flush=True)  # explains a death of this process
        with Running(module, 0) as running:
            results = running.first_results(self._seeds, _FIRST_SECONDS, self._confine)
        self._run_limit = max(self.run_seconds, 50 * (time.perf_counter() - started))
        return results

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - facts, a cost, or why there is none
        """Return the facts, or the cost of a sequence of actions, or a status and a reason; or this and its parts."""
        if request == FACTS:
            return self._facts()
        if request[:1] == (STATE,):
            return self._seen(request[1], enter)
        if self._objective == "time":
            return self._timed(self._passes.run(request), enter)
        told = request[:1] == (_PARTS,)
        state = self._passes.state(request[1] if told else request)
        key = _digest(state[0] + repr((state[1], told)).encode())
        if key not in self._known:  # many sequences reach the same state
            self._keep(key, self._of_content(self._passes.finish(state), told, enter))
        return self._known[key]

    def _seen(self, actions: tuple[str, ...], enter: Enter) -> tuple[Any, ...]:
        """Return the fields of a state.

        Raises:
          ValueError: the optimised program computes something else.
        """
        if isinstance(cost := self.answer(actions, enter), tuple):
            raise ValueError(": ".join(cost))
        return cost, *described(graph(str(self._passes.run(actions))))

    def _of_content(self, module: llvm.ModuleRef, told: bool, enter: Enter) -> Any:  # noqa: ANN401 - as `answer` does
        module.verify()
        text = str(module)
        content = _digest(f"{told}{text}".encode())
        if content not in self._known:  # and many states give the same module
            self._keep(content, self._sized(module, text, told, enter))
        return self._known[content]

    def _keep(self, key: bytes, outcome: Any) -> None:  # noqa: ANN401 - a cost, or why there is none
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = outcome

    def _sized(self, module: llvm.ModuleRef, text: str, told: bool, enter: Enter) -> Any:  # noqa: ANN401
        parts = self._parts(module, text) if told else []
        cost = sum(part[-1] for part in parts) if told else self._cost(module, text)
        wrong = self._why_wrong(module, enter)
        return (wrong or cost, [] if wrong else parts) if told else wrong or cost

    def _parts(self, module: llvm.ModuleRef, text: str) -> list[Row]:
        return text_functions(text) if self._objective == "instructions" else code_functions(module, self._machine)

    def _cost(self, module: llvm.ModuleRef, text: str) -> float:
        return float(instructions(text) if self._objective == "instructions" else code_bytes(module, self._machine))

    def _why_wrong(self, module: llvm.ModuleRef, enter: Enter) -> tuple[str, str] | None:
        if self._correct is None:
            return None
        enter(_RUN, self._run_limit)
        with Running(module, 0) as running:
            results = running.results(self._seeds)
        return None if results == self._correct else self._wrong(results)

    def _timed(self, module: llvm.ModuleRef, enter: Enter) -> Any:  # noqa: ANN401 - a cost, or why there is none
        module.verify()
        enter(_RUN, 10 * self._run_limit)
        with Running(llvm.parse_bitcode(module.as_bitcode()), 2) as running:
            if (results := running.results(self._seeds)) != self._correct:
                return self._wrong(results)
            return running.seconds(self._seeds[0])

    def _wrong(self, results: tuple[int, ...]) -> tuple[str, str]:
        assert self._correct is not None
        pairs = zip(self._seeds, results, self._correct, strict=True)
        seed, got, wanted = next(triple for triple in pairs if triple[1] != triple[2])
        return "wrong_result", f"run({seed}) returns {got}, not {wanted}"

    def _facts(self) -> dict[str, Any]:
        """Return facts for `show`."""
        module = _parsed(self._fast_text)
        fastest = Passes(module.as_bitcode(), self._machine, 3).run([MODULE])
        return {"instructions": self._before, "-O3": instructions(str(fastest)), "executed": self._correct is not None}


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _parsed(text: str) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text)
    module.triple = module.triple or llvm.get_process_triple()
    return module


def _check(module: llvm.ModuleRef) -> None:
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
