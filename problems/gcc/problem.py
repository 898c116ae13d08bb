"""The choice of GCC's flags as a problem."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError, choice, product, scale
from bbo_suite.core.libraries import refusal
from bbo_suite.core.variants import split_variant
from bbo_suite.files.reading import read_bounded
from bbo_suite.supervised import LiveProblem, Service

from ..programs_c import SEEDS, large_names, names, source
from ..reading import explained
from .worker import flags, language

_FORBIDDEN = re.compile(
    r"-f(.*unwind.*|.*exceptions|.*math.*|.*trap.*|.*wrapv.*|.*stack-(protector|clash).*|.*profile-.*|.*var-tracking.*"
    r"|.*graphite.*|float-store|fp-.*|cx-.*|rounding.*|signaling-nans|signed-zeros|single-precision.*|short-.*"
    r"|pack-struct|reg-struct-return|plt|semantic-interposition|section-anchors|delayed-branch|branch-probabilities"
    r"|harden-.*|opt-info|save-optimization-record|keep-.*|allow-store-data-races|unconstrained-commons|vpt"
    r"|finite-loops|inline-atomics|printf-return-value|loop-(parallelize-all|nest-optimize)|sched-spec-load-dangerous"
    r"|toplevel-reorder)"
)
"""Flags that a search must not set.

They change a program's meaning, its interface or its unwind tables, need a profile, or only write reports. Unwind
tables matter most: `size` counts them as code, and to leave them out is not an optimisation.
"""
_PARAMETERS = re.findall(
    r"\S+",
    """
    case-values-threshold early-inlining-insns gcse-cost-distance-ratio gcse-unrestricted-cost inline-unit-growth
    ipa-sra-max-replacements iv-consider-all-candidates-bound jump-table-max-growth-ratio-for-size
    large-function-growth max-combine-insns max-completely-peel-times max-completely-peeled-insns max-crossjump-edges
    max-cse-path-length max-early-inliner-iterations max-gcse-insertion-ratio max-goto-duplication-insns
    max-grow-copy-bb-insns max-hoist-depth max-inline-insns-auto max-inline-insns-recursive max-inline-insns-single
    max-inline-insns-size max-inline-insns-small max-jump-thread-duplication-stmts
    max-rtl-if-conversion-predictable-cost max-rtl-if-conversion-unpredictable-cost max-stores-to-sink
    max-tail-merge-comparisons max-tail-merge-iterations min-crossjump-insns partial-inlining-entry-probability
    sra-max-scalarization-size-Osize switch-conversion-max-branch-ratio
""",
)
_NO_OPTIMISATION = re.compile(
    r"analyzer-.*|[ah]wasan-.*|asan-.*|tsan-.*|.*debug.*|.*vartrack.*|cxx-.*|ggc-.*|graphite-.*|hash-.*|lazy-.*|lto-.*"
    r"|min-nondebug-.*|openacc-.*|parloops-.*|profile-.*|ssp-.*|stack-clash-.*|tm-.*|uninit-.*|use-.*|min-pagesize"
    r"|.*interference-size|.*verification.*|store-merging-allow-unaligned|comdat-.*|integer-share-limit|max-isl-.*"
)
"""Parameters that a wide search leaves alone, too: of analyses, sanitizers, other languages, GCC's own memory."""
_FACTORS = (0, 1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 16)
_VALUED = {
    "-fira-algorithm": ("CB", "priority"),
    "-fira-region": ("one", "all", "mixed"),
    "-freorder-blocks-algorithm": ("simple", "stc"),
    "-fsimd-cost-model": ("unlimited", "dynamic", "cheap", "very-cheap"),
    "-fstack-reuse": ("all", "named_vars", "none"),
    "-fvect-cost-model": ("unlimited", "dynamic", "cheap", "very-cheap"),
}
_FLAG = re.compile(r"\s+(-f[\w-]+)\s+\[(enabled|disabled)\]")
_VALUED_FLAG = re.compile(r"\s+(-f[\w-]+)=\S+\s+([\w-]+)")
_PARAMETER = re.compile(r"\s+--param=([\w-]+)=(?:<(\d+),(\d+)>)?\s+(\d+)\s*$")

_SECONDS = 60
"""Time limit for GCC to list its flags."""


@dataclass(frozen=True)
class Gcc:
    """The installed compiler.

    Attributes:
      path: of its executable.
      version: its number and its target.
      level: its flag for the smallest code: -Oz, or -Os before GCC 12.
      flags: for each on/off flag, by name, whether this level sets it.
      parameters: for each parameter, by name, the values to try in ascending order, and the index of the default.
      wide: the same for all parameters of optimisations, with more values.
      valued: for each flag with words as values, by name, these, and the index of the default.
    """

    path: str
    version: str
    level: str
    flags: dict[str, bool]
    parameters: dict[str, tuple[tuple[int, ...], int]]
    wide: dict[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    valued: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)


@lru_cache(maxsize=1)
def installed_gcc() -> Gcc:
    """Return the GCC on the path.

    Raises:
      UserError: there is none, it does not run, or the program called gcc is another compiler.
    """
    paths = {name: shutil.which(name) for name in ("gcc", "size")}
    if missing := [name for name, path in paths.items() if path is None]:
        package = "gcc" if "gcc" in missing else "binutils"
        how = f"install it with your system's packages, as in `apt-get install {package}`"
        raise UserError(f"{missing[0]} is not installed; {how}")
    path = str(paths["gcc"])
    level = _level(path)
    listed, parameters = (_ask(path, level, f"--help={what}", "-Q") for what in ("optimizers", "params"))
    number, machine = (_ask(path, f"-dump{what}") for what in ("fullversion", "machine"))
    if not (flags := dict(_flags(listed))):
        raise UserError(f"{path} is not GCC (on macOS it is clang); put a GCC first on the path")
    wide, valued = dict(_wide(parameters)), dict(_valued(listed))
    return Gcc(path, f"{number}-{machine}", level, flags, dict(_parameters(parameters)), wide, valued)


def _level(path: str) -> str:
    with suppress(UserError):
        _ask(path, "-Oz", "--help=optimizers", "-Q")
        return "-Oz"
    return "-Os"


def _ask(path: str, *arguments: str) -> str:
    command, no_input = [path, *arguments], subprocess.DEVNULL
    try:
        process = subprocess.run(command, capture_output=True, text=True, stdin=no_input, timeout=_SECONDS)
        why = " ".join(process.stderr.split())[:200] or f"exit code {process.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        process, why = None, str(error)
    if process is None or process.returncode:
        raise UserError(f"{path} does not work, or is not GCC ({why}); put a GCC first on the path")
    return process.stdout.strip("\n")


def _flags(text: str) -> Iterator[tuple[str, bool]]:
    for line in text.splitlines():
        match = _FLAG.fullmatch(line.rstrip())
        if match and not _FORBIDDEN.fullmatch(match[1]):
            yield match[1], match[2] == "enabled"


def _parameters(text: str) -> Iterator[tuple[str, tuple[tuple[int, ...], int]]]:
    for line in text.splitlines():
        match = _PARAMETER.fullmatch(line)
        if match and match[1] in _PARAMETERS:
            default = int(match[4])
            low, high = int(match[2] or 0), int(match[3] or 1 << 30)
            tried = {default // 4, default // 2, default, default * 2, default * 4} if default else {0, 4, 16, 64}
            values = tuple(sorted({min(max(value, low), high) for value in tried}))
            if len(values) > 1:
                yield match[1], (values, values.index(default))


def _wide(text: str) -> Iterator[tuple[str, tuple[tuple[int, ...], int]]]:
    for line in text.splitlines():
        match = _PARAMETER.fullmatch(line)
        if match and not _NO_OPTIMISATION.fullmatch(match[1]):
            default = int(match[4])
            low, high = int(match[2] or 0), int(match[3] or 1 << 30)
            tried = {int(default * factor) for factor in _FACTORS} if default else {0, 1, 4, 16, 64, 256}
            ends = {low, high} if match[2] and high - low <= 100 else set()
            values = tuple(sorted({min(max(value, low), high) for value in tried} | ends))
            if len(values) > 1:
                yield match[1], (values, values.index(min(max(default, low), high)))


def _valued(text: str) -> Iterator[tuple[str, tuple[tuple[str, ...], int]]]:
    for line in text.splitlines():
        match = _VALUED_FLAG.match(line)
        if match and match[2] in (values := _VALUED.get(match[1], ())):
            yield match[1], (values, values.index(match[2]))


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
