"""The child process that runs GCC: it takes flags and returns the size of the code. Imports nothing of the engine.

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
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from .. import elf

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
_COMPILE, _RUN = "compile", "run the result"
_COMPILE_SECONDS = 20.0
"""The time that every candidate has to compile; ten times as long as the default, if that is more."""
RUN_SECONDS = 10.0
"""Time limit of one run of a program."""
_CPP = (".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C", ".ii")
"""How the names of files of C++ end, as GCC knows them."""
_LIBRARIES = ("-lstdc++", "-lm")
ANSWERED = 42
"""The exit code of a program whose `run` has returned for each seed; the program itself may exit with 0."""
_SHOWN = 200
"""Characters of results in a reason."""
_FULL = "No space left on device"
_VARIES = "what it prints differs from run to run"
WANTED = "uint64_t run(uint64_t)"
_SIGNATURE = {
    "c": """
#define OF(R) R (*)(long): 1, R (*)(unsigned long): 1, R (*)(long long): 1, R (*)(unsigned long long): 1
_Static_assert(_Generic(&run, OF(long), OF(unsigned long), OF(long long), OF(unsigned long long), default: 0), "");
_Static_assert(sizeof run(0) == 8, "");
""",
    "c++": """
template <class R, class A> constexpr bool fits(R (*)(A)) {
    return sizeof(R) == 8 && sizeof(A) == 8 && R(1.5) == R(1) && A(1.5) == A(1);
}
static_assert(fits(&run), "");
""",
}
"""What compiles after a program, by its language, if its `run` takes and returns an integer of 64 bits."""
MAIN = f"""
#include <stdio.h>
#include <stdlib.h>
unsigned long long run(unsigned long long);
int main(int count, char **words) {{
    for (int i = 1; i < count; i++) printf("%llu ", run(strtoull(words[i], 0, 10)));
    return fflush(stdout) ? 1 : {ANSWERED};
}}
"""
Enter = Callable[[str, float], None]


def language(source: str) -> str:
    """Return the language of a file, by its name, as GCC calls it."""
    return "c++" if source.endswith(_CPP) else "c"


def flags(source: str) -> tuple[str, ...]:
    """Return the flags of every candidate."""
    return ("-ffp-contract=off",) if language(source) == "c++" else ("-std=c17", "-ffp-contract=off")


def headers(gcc: str, source: str) -> list[Path]:
    """Return the files that a file includes, and those that they include, but the system's; none if one is missing."""
    told = run([gcc, *flags(source), "-x", language(source), "-MM", "-MT", "program", source])
    names = re.findall(r"(?:\\.|\S)+", told.stdout.removeprefix("program:").replace("\\\n", " "))
    return [Path(re.sub(r"\\(.)", r"\1", name).replace("$$", "$")) for name in names[1:]]


def serve(gcc: str, level: str, source: str, seeds: tuple[int, ...]) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program.

    Args:
      gcc: the path of the compiler.
      level: the flag that candidates change, such as -Oz.
      source: the path of the file of C or C++.
      seeds: arguments of `run` when results are compared.

    Raises:
      ValueError: the program does not compile, or `run` does not return.
    """
    return Program(gcc, level, source, Path.cwd(), seeds).answer


class Program:
    """One file, its correct results, and the outcomes of the codes that were made of it.

    A program with `main` is checked by what it prints and its exit code, any other by what its `run` returns.
    """

    def __init__(self, gcc: str, level: str, source: str, folder: Path, seeds: tuple[int, ...]) -> None:
        self._gcc, self._level, self._source, self._folder = gcc, level, source, folder
        self._main, self._object, self._linked, self._plain = (
            folder / name for name in ("main.o", "program.o", "program", "plain")
        )
        (folder / "main.c").write_text(MAIN)
        run([gcc, "-c", str(folder / "main.c"), "-o", str(self._main)])
        started = time.perf_counter()
        for each in (level, "-O0"):
            if error := self._compile((each,)):
                missing = "; install g++" if "cc1plus" in error else ""
                raise ValueError(f"{source} does not compile: {error}{missing}")
            if not self._bytes():
                raise ValueError(
                    f"{source} has no function that is visible outside, so it gives no code to make smaller"
                )
        self._compile_seconds = 10 * (time.perf_counter() - started)
        functions = {each.name for each in elf.text(self._object).functions if not each.is_local}
        self._has_main, self._seeds = "main" in functions, () if "main" in functions else seeds
        self._correct, self._known = "", dict[bytes, Any]()
        self._why_not = self._why_not_callable(functions) or self._link(self._plain) or self._why_not_compared()

    def _why_not_callable(self, functions: set[str]) -> str:
        """Return why neither `main` nor `run` can be called, empty if one can."""
        if self._has_main:
            return ""
        if "run" in functions:
            check = self._folder / "signature"
            check.write_text(_SIGNATURE[language(self._source)])
            known = ["-w", *flags(self._source), "-x", language(self._source), "-include", self._source]
            fits = not run([self._gcc, *known, "-fsyntax-only", str(check)]).returncode
            return "" if fits else f"its run is not {WANTED}"
        if any(name.startswith("_Z3run") for name in functions):
            return f'its run is a function of C++; declare it extern "C" {WANTED}'
        return f"it defines neither main nor {WANTED}, visible outside the file"

    def _why_not_compared(self) -> str:
        """Keep the results at -O0; return why those of other flags cannot be compared with them, empty if they can."""
        if failed := self._keep_results():
            return failed
        if error := self._compile((self._level,)) or self._link():
            return error
        failed, results = self._first_results(self._linked)
        failed = failed or ("" if results == self._correct else "its results differ from those at -O0")
        return f"at {self._level} {failed}, as if its behaviour was undefined" if failed else ""

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - facts, a cost, or why there is none
        """Return the facts, or the bytes of code with the flags, or a status and a reason; or this and its parts."""
        if request == FACTS:
            return self._facts(enter)
        if self._compile_seconds > _COMPILE_SECONDS:
            enter(_COMPILE, self._compile_seconds)
        if request[:1] == (_PARTS,):
            outcome = self.answer(request[1], enter)
            return outcome, self._functions(outcome) if isinstance(outcome, float) else []
        if error := self._compile((self._level, *request)):
            return "compile_error", error
        content = hashlib.blake2b(self._object.read_bytes(), digest_size=16).digest()
        if content not in self._known:  # many flags change nothing
            self._known[content] = self._outcome(enter)
        return self._known[content]

    def _outcome(self, enter: Enter) -> Any:  # noqa: ANN401 - a cost, or why there is none
        if not self._why_not:
            enter(_RUN, RUN_SECONDS)
            failed, results = self._link(), ""
            if not failed:
                failed, results = self._results()
            if (failed or results != self._correct) and not self._varies():
                return ("runtime_error", failed) if failed else ("wrong_result", self._difference(results))
        return float(self._bytes())

    def _difference(self, results: str) -> str:
        what = "it prints" if self._has_main else f"run({', '.join(map(str, self._seeds))}) gives"
        return f"{what} {results[:_SHOWN]}, not {self._correct[:_SHOWN]}"

    def _varies(self) -> bool:
        """Return whether the unoptimised program with `main` has other results now, as if they depend on the time."""
        if self._has_main and self._results(program=self._plain) != ("", self._correct):
            self._why_not = _VARIES
        return bool(self._why_not)

    def _compile(self, options: Sequence[str]) -> str:
        """Return the compiler's error, empty if it made an object file."""
        command = [self._gcc, "-pipe", "-w", *flags(self._source), *options]
        process = run([*command, "-c", "-x", language(self._source), self._source, "-o", str(self._object)])
        if _FULL in process.stderr:
            raise OSError(process.stderr.strip()[-200:])  # the machine's fault, not the candidate's
        lines = (
            [line for line in process.stderr.splitlines() if "error" in line]
            or process.stderr.splitlines()
            or [f"GCC {ending(process.returncode)}"]
        )
        return lines[0][:200] if process.returncode else ""

    def _bytes(self) -> int:
        return elf.text(self._object).length

    def _functions(self, total: float) -> list[tuple[str, bytes, float, float]]:
        """Return the functions of the object with their bytes, and a part of no name: what lies between them."""
        found = elf.text(self._object).functions
        distinct = {each.place: each for each in found}  # an alias is no function of its own
        rows = [(each.name, b"", 1.0, float(each.length)) for each in distinct.values()]
        rest = total - sum(row[-1] for row in rows)
        return [*rows, ("", b"", 1.0, rest)] if rest else rows

    def _link(self, program: Path | None = None) -> str:
        """Return why the object is no program, empty if it is one."""
        objects = [str(self._object)] if self._has_main else [str(self._main), str(self._object)]
        libraries = _LIBRARIES if language(self._source) == "c++" else _LIBRARIES[1:]
        linked = run([self._gcc, *objects, "-o", str(program or self._linked), *libraries])
        if _FULL in linked.stderr:
            raise OSError(linked.stderr.strip()[-200:])
        why = re.search(r"undefined reference to .*|multiple definition of .*", linked.stderr)
        return f"it cannot be linked ({why[0][:80] if why else 'ld failed'})" if linked.returncode else ""

    def _results(self, seconds: float | None = None, program: Path | None = None) -> tuple[str, str]:
        """Run the program; return why it failed, empty if it did not, and what it prints or `run` returns."""
        process = run_program([str(program or self._linked), *map(str, self._seeds)], self._folder, seconds)
        if self._has_main and process.returncode >= 0:
            return "", f"{process.stdout}exit code {process.returncode}"
        if not self._has_main and process.returncode == ANSWERED:
            return "", process.stdout.strip()
        return f"the program {ending(process.returncode)}", ""

    def _keep_results(self) -> str:
        """Keep the results at -O0; return why they cannot be those of a program with `main`.

        Raises:
          ValueError: `run` does not return.
        """
        failed, self._correct = self._first_results(self._plain)
        if failed and not self._has_main:
            raise ValueError(
                f"at -O0 {failed}, so that no result can be compared; rename run if it is not to be called"
            )
        varies = not failed and self._has_main and self._first_results(self._plain) != ("", self._correct)
        return _VARIES if varies else failed and f"at -O0 {failed}"

    def _first_results(self, program: Path) -> tuple[str, str]:
        """Return the same of a program that may not end."""
        try:
            return self._results(RUN_SECONDS, program)
        except subprocess.TimeoutExpired:
            calls = "main" if self._has_main else f"run for the seeds {', '.join(map(str, self._seeds))}"
            return f"{calls} did not return in {RUN_SECONDS:g} s", ""

    def _facts(self, enter: Enter) -> dict[str, Any]:
        if self._compile_seconds > _COMPILE_SECONDS:
            enter(_COMPILE, 4 * self._compile_seconds)
        sizes = {}
        for level in ("-Oz", "-Os", "-O2", "-O3"):
            if level != self._level:
                sizes[level] = None if self._compile((level,)) else self._bytes()
        of_main, of_run = "run, and its output compared with that of -O0", "run and compared with those of -O0"
        return {"why not run": self._why_not, "compared": of_main if self._has_main else of_run, "sizes": sizes}
