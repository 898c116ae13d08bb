"""The child process that runs GCC: it takes flags and returns the size of the code. Imports nothing of the suite."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FACTS = "facts"
"""The request for facts about the program; any other request is a tuple of flags."""
_RUN = "run the result"
_RUN_SECONDS = 10.0
"""Time limit of one run of a program."""
_CPU_SECONDS = 60
"""Limit on the processor time of every command."""
FLAGS = ("-std=c17", "-ffp-contract=off")
"""Flags of every candidate."""
_FULL = "No space left on device"
_MAIN = """
#include <stdio.h>
#include <stdlib.h>
unsigned long long run(unsigned long long);
int main(int count, char **words) {
    for (int i = 1; i < count; i++) printf("%llu ", run(strtoull(words[i], 0, 10)));
    return 0;
}
"""
Enter = Callable[[str, float], None]


def serve(gcc: str, source: str, folder: str, seeds: tuple[int, ...]) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program.

    Args:
      gcc: the path of the compiler.
      source: the path of the C file.
      folder: for object files; the caller removes it.
      seeds: arguments of `run` when results are compared.

    Raises:
      ValueError: the program does not compile, or does not end.
    """
    return Program(gcc, source, Path(folder), seeds).answer


class Program:
    """One C file, its correct results, and the outcomes of the codes that were made of it."""

    def __init__(self, gcc: str, source: str, folder: Path, seeds: tuple[int, ...]) -> None:
        self._gcc, self._source, self._seeds = gcc, source, seeds
        stem = folder / str(os.getpid())
        self._main, self._object, self._linked = (stem.with_suffix(suffix) for suffix in (".main.o", ".o", ".exe"))
        stem.with_suffix(".main.c").write_text(_MAIN)
        _run([gcc, "-c", str(stem.with_suffix(".main.c")), "-o", str(self._main)])
        if error := self._compile(("-O0",)):
            raise ValueError(f"{source} does not compile: {error}")
        if not self._bytes():
            raise ValueError(f"{source} has no function, so there is no code to make smaller")
        status, self._correct = self._correct_results()
        self._why_not = self._correct if status else ""
        self._known: dict[bytes, Any] = {}

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - facts, a cost, or why there is none
        """Return the facts, or the bytes of code with the flags, or a status and a reason."""
        if request == FACTS:
            return self._facts()
        if error := self._compile(("-Os", *request)):
            return "compile_error", error
        content = hashlib.blake2b(self._object.read_bytes(), digest_size=16).digest()
        if content not in self._known:  # many flags change nothing
            self._known[content] = self._outcome(enter)
        return self._known[content]

    def _outcome(self, enter: Enter) -> Any:  # noqa: ANN401 - a cost, or why there is none
        if not self._why_not:
            enter(_RUN, _RUN_SECONDS)
            status, results = self._results()
            if status:
                return "runtime_error", results
            if results != self._correct:
                return "wrong_result", f"run({', '.join(map(str, self._seeds))}) gives {results}, not {self._correct}"
        return float(self._bytes())

    def _compile(self, flags: Sequence[str]) -> str:
        """Return the compiler's error, empty if it made an object file."""
        process = _run(
            [self._gcc, "-pipe", "-w", *FLAGS, *flags, "-c", "-x", "c", self._source, "-o", str(self._object)]
        )
        if _FULL in process.stderr:
            raise OSError(process.stderr.strip()[-200:])  # the machine's fault, not the candidate's
        lines = (
            [line for line in process.stderr.splitlines() if "error" in line]
            or process.stderr.splitlines()
            or ["failed"]
        )
        return lines[0][:200] if process.returncode else ""

    def _bytes(self) -> int:
        listed = _run(["size", "-A", str(self._object)]).stdout.splitlines()
        fields = [line.split() for line in listed if line.startswith(".text")]
        return sum(int(size) for _, size, *_ in fields)

    def _results(self, seconds: float | None = None) -> tuple[int, str]:
        """Link and run the program; return 0 and what it prints, or 1 and why it prints nothing."""
        linked = _run([self._gcc, str(self._main), str(self._object), "-o", str(self._linked)])
        if _FULL in linked.stderr:
            raise OSError(linked.stderr.strip()[-200:])
        if linked.returncode:
            return 1, "it cannot be linked as uint64_t run(uint64_t)"
        process = _run([str(self._linked), *map(str, self._seeds)], seconds)
        if process.returncode:
            return 1, f"the program ended with {process.returncode} (a signal if negative)"
        printed = process.stdout.strip()
        return (0, printed) if printed else (1, "the program ended before it had a result")

    def _correct_results(self) -> tuple[int, str]:
        try:
            return self._results(_RUN_SECONDS)
        except subprocess.TimeoutExpired as error:
            calls = f"run for the seeds {', '.join(map(str, self._seeds))}"
            raise ValueError(f"{calls} did not return in {error.timeout:g} s") from None

    def _facts(self) -> dict[str, Any]:
        sizes = {}
        for level in ("-Oz", "-O2", "-O3"):
            sizes[level] = "this GCC does not have it" if self._compile((level,)) else f"{self._bytes():,}"
        return {"why not run": self._why_not, "sizes": sizes}


def _run(command: Sequence[str], seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        preexec_fn=_bound,
        timeout=seconds,
    )


def _bound() -> None:
    """Limit a command: it ends with this process, or after `_CPU_SECONDS` of processor time."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
