"""A module that runs here: how it can be called, or why it cannot, and its results and time."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

WANTED = "i64 @run(i64)"
_MAINS = ("i32 ()", "i32 (i32, ptr)", "i32 (i32, ptr, ptr)")
_CALLED, _LOST = ("external", "weak_any", "weak_odr"), ("available_externally",)
"""Kinds of linkage by which a function can be called from outside, and by which its code is not in the object."""
_CONVENTION = re.compile(r"\b(?!x86_64_sysvcc)\w*cc\b|\bcc \d+")
_VARIABLE = re.compile(r'^@(?:"[^"]*"|[-\w.$]+) = (.*?\b(?:global|constant|ifunc)\b)', re.MULTILINE)
_CONSTRUCTORS = re.compile(r"^(@llvm\.global_ctors = [^\n]*?\] \[)(.*)(\].*)$", re.MULTILINE)
_SAMPLE_SECONDS = 5e-3
_OUTPUT = 1 << 20
"""Most bytes that `main` may print."""


def prepared(text: str) -> llvm.ModuleRef:
    """Return the module that a text describes, as it is compiled.

    Constructors are sorted by their priorities, because the module is run without a linker, which would do that. If no
    function can be called from outside, all are kept: otherwise the compiler would remove everything.
    """
    module = llvm.parse_assembly(text)
    bodies = [function for function in module.functions if not function.is_declaration]
    plain = _CONSTRUCTORS.sub(_in_order, str(module)) if "@llvm.global_ctors" in text else text
    if "@llvm.used" in text or any(function.linkage.name in _CALLED for function in bodies):
        return module if plain is text else llvm.parse_assembly(plain)
    kept = [f'ptr @"{_escaped(each.name)}"' for each in bodies if each.linkage.name not in _LOST]
    used = f'@llvm.used = appending global [{len(kept)} x ptr] [{", ".join(kept)}], section "llvm.metadata"'
    return llvm.parse_assembly(f"{plain}\n{used}\n" if kept else plain)


def _in_order(found: re.Match[str]) -> str:
    entries = re.findall(r"(\{ i32, ptr, ptr \} \{ i32 (\d+),[^{}]*\})", found[2])
    return found[1] + ", ".join(entry for entry, _ in sorted(entries, key=lambda each: int(each[1]))) + found[3]


def _escaped(name: str) -> str:
    return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in name.encode())


def has_main(module: llvm.ModuleRef) -> bool:
    """True if a module has no `run`, but a `main`, so that it is checked by what it prints."""
    functions = {function.name: function for function in module.functions if not function.is_declaration}
    return "run" not in functions and "main" in functions and str(functions["main"].global_value_type) in _MAINS


def why_not_callable(module: llvm.ModuleRef) -> str:
    """Return why neither `run` nor `main` can be called in this process; empty if one can."""
    functions = {function.name: function for function in module.functions}
    called = functions.get("main" if has_main(module) else "run")
    if called is None or called.is_declaration:
        return f"it defines neither main nor {WANTED}"
    return _why_another_function(called) or _why_another_machine(module) or _why_unlinked(module)


def _why_another_function(called: llvm.ValueRef) -> str:
    kind, header = str(called.global_value_type), str(called).lstrip().split("@", 1)[0]
    if called.name == "run" and kind != "i64 (i64)":
        return f"its run is {kind}, not {WANTED}"
    if called.linkage.name not in _CALLED:
        return f"its {called.name} is {called.linkage.name}, which cannot be called from outside"
    if convention := _CONVENTION.search(header):
        return f"its {called.name} has the calling convention {convention[0]}"
    return ""


def _why_another_machine(module: llvm.ModuleRef) -> str:
    here, there = (llvm.get_triple_parts(triple) for triple in (llvm.get_process_triple(), module.triple))
    same = (here.Arch, here.ObjectFormat) == (there.Arch, there.ObjectFormat) and there.OS in (here.OS, "unknown")
    if not same:
        return f"it is for {module.triple}, and this is {llvm.get_process_triple()}"
    current = llvm.parse_bitcode(module.as_bitcode()).data_layout  # that of an older version is brought up to date
    if {_layout(module.triple), current or _layout(module.triple)} != {_layout(llvm.get_process_triple())}:
        return "its data layout is not that of this machine"
    known = llvm.get_host_cpu_features()
    for feature in re.findall(r"\+([\w.-]+)", " ".join(re.findall(r'"target-features"="([^"]*)"', str(module)))):
        if known.get(feature) is False:
            return f"it is for processors with {feature}, which this one lacks"
    return ""


def _layout(triple: str) -> str:
    return str(llvm.Target.from_triple(triple).create_target_machine(jit=True).target_data)


def _why_unlinked(module: llvm.ModuleRef) -> str:
    for words in _VARIABLE.findall(str(module)):
        for word, what in (("thread_local", "thread-local data"), ("ifunc", "functions that are chosen at run time")):
            if word in words.split() or f"{word}(" in words:
                return f"it has {what}"
    process = ctypes.CDLL(None)
    for symbol in (*module.functions, *module.global_variables):
        outside = symbol.is_declaration or symbol.linkage.name in _LOST
        if outside and not symbol.name.startswith("llvm.") and not hasattr(process, symbol.name):
            return f"it needs {symbol.name}, which is not here"
    return ""


class Running:
    """A module compiled into this process. The module cannot be used afterwards; leaving the context frees the code.

    Global constructors run before the first call.

    Args:
      effort: optimisation level of the code generator: 0 to compare results, 2 to measure time.
    """

    def __init__(self, module: llvm.ModuleRef, effort: int, name: str = "run") -> None:
        machine = llvm.Target.from_triple(module.triple).create_target_machine(opt=effort, jit=True)
        self._engine, self._name, self._calls = llvm.create_mcjit_compiler(module, machine), name, 0

    def __enter__(self) -> Running:
        self._engine.finalize_object()
        address = self._engine.get_function_address(self._name)
        if not address:
            raise RuntimeError(f"{self._name} is not in the compiled code")
        self._run = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(address)
        self._main = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:  # otherwise the code may still be running
            self._engine.close()

    def results(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return the result of `run` for each seed."""
        self._engine.run_static_constructors()
        return tuple(self._run(seed) for seed in seeds)

    def first_results(self, seeds: Sequence[int], seconds: float, before: Callable[[], None]) -> tuple[int, ...]:
        """Return the result for each seed of a program that has never run before and may not end.

        A call that does not return ends only with this process, so the calls are made in a thread.

        Args:
          before: called in that thread before the first call.

        Raises:
          ValueError: it has not returned after `seconds`.
        """
        found: list[int] = []

        def call() -> None:
            before()
            self._engine.run_static_constructors()
            for seed in seeds:
                found.append(self._run(seed))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(seconds)
        if len(found) < len(seeds):
            raise ValueError(f"run({seeds[len(found)]}) did not return in {seconds:g} s")
        return tuple(found)

    def output(self, seconds: float, before: Callable[[], None]) -> tuple[str, str]:
        """Run `main` in a process of its own, without arguments and input.

        Args:
          before: called in that process first.

        Returns:
          Why it has no result, empty if it has, and what it printed, with its exit code.
        """
        with tempfile.TemporaryFile() as file:
            if (process := os.fork()) == 0:
                self._become_main(file.fileno(), before)
            failed, code = _ended(process, seconds)
            file.seek(0)
            return failed, "" if failed else f"{file.read().decode(errors='replace')}exit code {code}"

    def _become_main(self, output: int, before: Callable[[], None]) -> None:
        try:
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT, _OUTPUT))
            before()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            words, variables = (ctypes.c_char_p * 2)(b"program", None), (ctypes.c_char_p * 1)()
            self._engine.run_static_constructors()
            code = self._main(1, ctypes.addressof(words), ctypes.addressof(variables))
            ctypes.CDLL(None).fflush(None)
            os._exit(code & 255)
        finally:
            os._exit(255)

    def seconds(self, seed: int) -> float:
        """Return the processor seconds of one call: of as many in a row as can be timed."""
        self._calls = self._calls or max(1, int(_SAMPLE_SECONDS / max(self._sample(seed, 1), 1e-7)))
        return self._sample(seed, self._calls)

    def _sample(self, seed: int, calls: int) -> float:
        started = time.thread_time()
        for _ in range(calls):
            self._run(seed)
        return max(time.thread_time() - started, 1e-9) / calls


def _ended(process: int, seconds: float) -> tuple[str, int]:
    """Wait for a process; return why it has no exit code, empty if it has, and this."""
    until = time.monotonic() + seconds
    while (done := os.waitpid(process, os.WNOHANG))[0] == 0:
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return f"main did not return in {seconds:g} s", 0
        time.sleep(1e-3)
    code = os.waitstatus_to_exitcode(done[1])
    return (f"main died of {signal.Signals(-code).name}" if code < 0 else ""), code
