"""The choice of GCC's flags as a problem."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import choice, product, scale
from bbo_suite.core.libraries import refusal
from bbo_suite.core.variants import split_variant
from bbo_suite.files.reading import read_bounded
from bbo_suite.supervised import LiveProblem, Service

from ..programs_c import SEEDS, large_names, names, source
from ..reading import explained
from .compiler import installed_gcc
from .worker import flags, headers, language

_LARGEST = 1 << 26
"""Largest file in bytes."""
_FORMAT = 1
"""Increase it when the cost of a candidate changes."""
_CHECKS = 2
"""Increase it when another candidate counts as wrong, so that no cached outcome is used."""


class GccProblem(LiveProblem):
    """Which flags make GCC's code smallest: `gcc/program`, or `gcc:file.c` or `.cpp`, also with `@wide`.

    A candidate sets all on/off flags for optimisation and some numeric parameters of the installed GCC; with `@wide`
    all parameters of optimisations, in wider ranges, and flags whose values are words. Flags that change the program's
    meaning, interface or unwind tables are left out. The cost is the size of the code (the text sections) in bytes. The
    default is -Oz, or -Os where GCC has no -Oz. Every compiled program is run, and if its results differ from those at
    -O0, it is a wrong result: what `uint64_t run(uint64_t)` returns, or what a program with `main` prints. Another
    version of GCC is another problem.
    """

    variant_marks: ClassVar[str] = "@"
    instances: ClassVar[tuple[str, ...]] = (*names(), *large_names())
    unit = "bytes"
    tells_parts = True
    reads_files = True
    decision = "flags of GCC"
    costs = "bytes of code"
    time_per_candidate = "0.1 s"

    def __init__(self, instance: str | Path) -> None:
        """Find the compiler and read the program.

        Args:
          instance: the name of a program that ships, or the `Path` of a user's file; optionally with `@wide`.

        Raises:
          UserError: the file cannot be read, there is no GCC, or no such variant.
        """
        name, wide = split_variant(instance, ("wide",))
        file = Path(name).absolute() if isinstance(instance, Path) else source(name)
        self._gcc, self._source = installed_gcc(), str(file)
        valued = self._gcc.valued if wide else {}
        self._parameters = self._gcc.wide if wide else self._gcc.parameters
        flags = [choice(name, (f"-fno-{name[2:]}", name)) for name in self._gcc.flags]
        words = [choice(name, values) for name, (values, _) in valued.items()]
        parameters = [scale(name, values) for name, (values, _) in self._parameters.items()]
        self.space = product(*flags, *words, *parameters)
        places = [place for _, place in (*valued.values(), *self._parameters.values())]
        self.default = np.array([*self._gcc.flags.values(), *places], np.int64)
        with explained(file, "a file of C or C++"):
            program = read_bounded(file, _LARGEST)
            own = headers(self._gcc.path, self._source) if isinstance(instance, Path) else []
            program += b"".join(b"|%d|" % len(text) + text for text in (read_bounded(each, _LARGEST) for each in own))
        arguments = (self._gcc.path, self._gcc.level, self._source, SEEDS)
        service = Service(f"{__package__}.worker:serve", arguments, start_seconds=600, name="GCC", confined=True)
        self._serve(service)
        self._identify(self._content(program), f"gcc-{self._gcc.version}-{_CHECKS}")

    @classmethod
    def available(cls) -> str:
        """Return whether there is no GCC."""
        return refusal(installed_gcc)

    def _content(self, program: bytes) -> bytes:
        parameters = ",".join([*self._gcc.flags, *self._parameters])
        added = f"{self._gcc.level}|" if self._gcc.level != "-Os" else ""
        added += "c++|" if language(self._source) == "c++" else ""
        return f"{_FORMAT}|{self._gcc.version}|{self.space.digest()}|{parameters}|{added}".encode() + program

    def request(self, config: NDArray) -> tuple[str, ...]:
        """Return the flags by which a candidate differs from the default level."""
        return tuple(self._flag(i, int(config[i])) for i in np.flatnonzero(config != self.default).tolist())

    def _flag(self, i: int, index: int) -> str:
        name, value = self.space.name(i), self.space.values(i)[index]
        if i < len(self._gcc.flags):
            return str(value)
        return f"{name}={value}" if name.startswith("-f") else f"--param={name}={value}"

    def paste(self, config: NDArray) -> str:
        """Return the command line that compiles the program with a candidate's flags."""
        command = [Path(self._gcc.path).name, *flags(self._source), self._gcc.level, *self.request(config)]
        return shlex.join([*command, "-c", self._source])

    def usage(self) -> str:
        """Return which GCC the command is for."""
        return (
            f"this command, with GCC {self._gcc.version}; another version may not know a flag, and its sizes differ."
            f" In a build, put the flags from {self._gcc.level} on into CFLAGS and measure again: they were chosen for"
            " this file"
        )

    def baselines(self) -> dict[str, float]:
        """Return the sizes at other optimisation levels, as far as this GCC has them."""
        return {level: float(size) for level, size in self.query("facts")["sizes"].items() if size is not None}

    def facts(self) -> dict[str, str]:
        """Return the compiler, the sizes at other optimisation levels, and whether results are compared."""
        known: dict[str, Any] = self.query("facts")
        sizes = {
            f"bytes at {level}": "this GCC does not have it" if size is None else f"{size:,}"
            for level, size in known["sizes"].items()
        }
        why_not = known["why not run"]
        results = f"NOT run: {why_not}" if why_not else known["compared"]
        return {"compiler": f"GCC {self._gcc.version}", "default is": self._gcc.level, **sizes, "results": results}
