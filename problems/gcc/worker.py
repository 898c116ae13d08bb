"""The child process that runs GCC: it takes flags and returns the size of the code. Imports nothing of the suite.

It runs the compiler and the compiled program, which is a user's and gets narrow limits.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import resource
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

_CPU_SECONDS = 60
"""Limit on the processor time of every command."""
_OUTPUT = 1 << 20
"""Most bytes of any file that the program may write, and that are read of what a command prints."""
_TIMES = 3
"""How often a command is run if a signal ends it: the signal may come from outside."""
_KILLED = re.compile("signal terminated program|terminated with signal|[Ii]nternal (compiler )?error")
"""What GCC, the assembler and the linker print when a signal ended one of them."""
Done = subprocess.CompletedProcess[str]


def run(command: Sequence[str]) -> Done:
    """Run a command of the compiler and return how it ended and what it printed."""
    return _run(command, preexec_fn=_bound)


def run_program(command: Sequence[str], folder: Path, seconds: float | None) -> Done:
    """Run the compiled program in an empty folder, without an environment.

    It may start no process (root may, but the end of this process ends those) and write little.

    Args:
      folder: where to make the folder.
      seconds: time limit.

    Raises:
      subprocess.TimeoutExpired: it took longer.
    """
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
        return _run(command, preexec_fn=_confine, cwd=place, env={}, timeout=seconds)


def ending(code: int) -> str:
    """Return how a program ended that did not return its results."""
    if code >= 0:
        return f"ended with exit code {code} before it had a result"
    name = signal.Signals(-code).name
    return f"died of {name}" + (f": it wrote more than {_OUTPUT >> 20} MiB" if name == "SIGXFSZ" else "")


def _run(command: Sequence[str], preexec_fn: Callable[[], None], **settings: Any) -> Done:  # noqa: ANN401 - of `run`
    """Run a command, again if a signal ended it; files bound the memory that its output takes."""
    for _ in range(_TIMES):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            settings |= {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            code = subprocess.run(command, preexec_fn=preexec_fn, **settings).returncode
            done = Done(command, code, _start(out), _start(err))
        if code >= 0 and not _KILLED.search(done.stderr):
            break
    return done


def _start(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_OUTPUT).decode(errors="replace")


def _bound() -> None:
    """Limit a command: it ends with this process, or after `_CPU_SECONDS` of processor time."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))


def _confine() -> None:
    _bound()
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT, _OUTPUT))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


FACTS = "facts"
"""The request for facts about the program; any other request is a tuple of flags, or a pair with `_PARTS`."""
_PARTS = "parts"
_RUN = "run the result"
_RUN_SECONDS = 10.0
"""Time limit of one run of a program."""
FLAGS = ("-std=c17", "-ffp-contract=off")
"""Flags of every candidate."""
_ANSWERED = 42
"""The exit code of a program whose `run` has returned for each seed; the program itself may exit with 0."""
_FIELDS = 8
"""Of a line of readelf: number, start, size, kind, binding, visibility, section, and name."""
_SHOWN = 200
"""Characters of results in a reason."""
_FULL = "No space left on device"
_MAIN = f"""
#include <stdio.h>
#include <stdlib.h>
unsigned long long run(unsigned long long);
int main(int count, char **words) {{
    for (int i = 1; i < count; i++) printf("%llu ", run(strtoull(words[i], 0, 10)));
    return fflush(stdout) ? 1 : {_ANSWERED};
}}
"""
Enter = Callable[[str, float], None]


def serve(gcc: str, source: str, seeds: tuple[int, ...]) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program.

    Args:
      gcc: the path of the compiler.
      source: the path of the C file.
      seeds: arguments of `run` when results are compared.

    Raises:
      ValueError: the program does not compile, or `run` does not return.
    """
    return Program(gcc, source, Path.cwd(), seeds).answer


class Program:
    """One C file, its correct results, and the outcomes of the codes that were made of it."""

    def __init__(self, gcc: str, source: str, folder: Path, seeds: tuple[int, ...]) -> None:
        self._gcc, self._source, self._seeds, self._folder = gcc, source, seeds, folder
        self._main, self._object, self._linked = (folder / name for name in ("main.o", "program.o", "program"))
        (folder / "main.c").write_text(_MAIN)
        run([gcc, "-c", str(folder / "main.c"), "-o", str(self._main)])
        if error := self._compile(("-O0",)):
            raise ValueError(f"{source} does not compile: {error}")
        if not self._bytes():
            raise ValueError(f"{source} has no function, so there is no code to make smaller")
        self._why_not = self._link()
        self._correct = "" if self._why_not else self._correct_results()
        self._known: dict[bytes, Any] = {}

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - facts, a cost, or why there is none
        """Return the facts, or the bytes of code with the flags, or a status and a reason; or this and its parts."""
        if request == FACTS:
            return self._facts()
        if request[:1] == (_PARTS,):
            outcome = self.answer(request[1], enter)
            return outcome, self._functions(outcome) if isinstance(outcome, float) else []
        if error := self._compile(("-Os", *request)):
            return "compile_error", error
        content = hashlib.blake2b(self._object.read_bytes(), digest_size=16).digest()
        if content not in self._known:  # many flags change nothing
            self._known[content] = self._outcome(enter)
        return self._known[content]

    def _outcome(self, enter: Enter) -> Any:  # noqa: ANN401 - a cost, or why there is none
        if not self._why_not:
            enter(_RUN, _RUN_SECONDS)
            failed, results = self._link(), ""
            if not failed:
                failed, results = self._results()
            if failed:
                return "runtime_error", failed
            if results != self._correct:
                seeds, got, wanted = ", ".join(map(str, self._seeds)), results[:_SHOWN], self._correct[:_SHOWN]
                return "wrong_result", f"run({seeds}) gives {got}, not {wanted}"
        return float(self._bytes())

    def _compile(self, flags: Sequence[str]) -> str:
        """Return the compiler's error, empty if it made an object file."""
        process = run(
            [self._gcc, "-pipe", "-w", *FLAGS, *flags, "-c", "-x", "c", self._source, "-o", str(self._object)]
        )
        if _FULL in process.stderr:
            raise OSError(process.stderr.strip()[-200:])  # the machine's fault, not the candidate's
        lines = (
            [line for line in process.stderr.splitlines() if "error" in line]
            or process.stderr.splitlines()
            or [f"GCC {ending(process.returncode)}"]
        )
        return lines[0][:200] if process.returncode else ""

    def _bytes(self) -> int:
        listed = run(["size", "-A", str(self._object)])
        if listed.returncode:
            raise OSError(f"size {ending(listed.returncode)}")
        fields = [line.split() for line in listed.stdout.splitlines() if line.startswith(".text")]
        return sum(int(size) for _, size, *_ in fields)

    def _functions(self, total: float) -> list[tuple[str, bytes, float, float]]:
        """Return the functions of the object with their bytes, and a part of no name: what lies between them."""
        lines = [line.split() for line in run(["readelf", "-sW", str(self._object)]).stdout.splitlines()]
        symbols = [line for line in lines if len(line) == _FIELDS and line[3] == "FUNC" and line[6].isdigit()]
        distinct = {(line[6], line[1]): line for line in symbols}  # an alias is no function of its own
        rows = [(line[7], b"", 1.0, float(int(line[2], 0))) for line in distinct.values()]
        rest = total - sum(row[-1] for row in rows)
        return [*rows, ("", b"", 1.0, rest)] if rest else rows

    def _link(self) -> str:
        """Return why the object is no program, empty if it is one."""
        linked = run([self._gcc, str(self._main), str(self._object), "-o", str(self._linked)])
        if _FULL in linked.stderr:
            raise OSError(linked.stderr.strip()[-200:])
        return "it cannot be linked as uint64_t run(uint64_t)" if linked.returncode else ""

    def _results(self, seconds: float | None = None) -> tuple[str, str]:
        """Run the program; return why it failed, empty if it did not, and what it prints."""
        process = run_program([str(self._linked), *map(str, self._seeds)], self._folder, seconds)
        if process.returncode == _ANSWERED:
            return "", process.stdout.strip()
        return f"the program {ending(process.returncode)}", ""

    def _correct_results(self) -> str:
        calls = f"run for the seeds {', '.join(map(str, self._seeds))}"
        try:
            failed, results = self._results(_RUN_SECONDS)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{calls} did not return in {_RUN_SECONDS:g} s") from None
        if failed:
            raise ValueError(f"{calls} did not return, so no result can be compared: at -O0 {failed}")
        return results

    def _facts(self) -> dict[str, Any]:
        sizes = {}
        for level in ("-Oz", "-O2", "-O3"):
            sizes[level] = None if self._compile((level,)) else self._bytes()
        return {"why not run": self._why_not, "sizes": sizes}
