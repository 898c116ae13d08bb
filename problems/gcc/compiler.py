"""The installed GCC, as it describes itself: which flags and parameters it has, and what a level sets."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from bbo_suite import UserError

_FORBIDDEN = re.compile(
    r"-f(.*unwind.*|.*exceptions|.*math.*|.*trap.*|.*wrapv.*|.*stack-(protector|clash).*|.*profile-.*|.*var-tracking.*"
    r"|.*graphite.*|float-store|fp-.*|cx-.*|rounding.*|signaling-nans|signed-zeros|single-precision.*|short-.*"
    r"|pack-struct|reg-struct-return|plt|semantic-interposition|section-anchors|delayed-branch|branch-probabilities"
    r"|harden-.*|opt-info|save-optimization-record|keep-.*|allow-store-data-races|unconstrained-commons|vpt"
    r"|finite-loops|inline-atomics|printf-return-value|loop-(parallelize-all|nest-optimize)|sched-spec-load-dangerous"
    r"|toplevel-reorder)"
)
"""Flags that a search must not set.

They change a program's meaning, its interface or its unwind tables, need a profile, or only write reports. To leave
unwind tables out is not an optimisation.
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
_NARROW = (1 / 4, 1 / 2, 1, 2, 4), {0, 4, 16, 64}
_WIDE = (0, 1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 16), {0, 1, 4, 16, 64, 256}
"""Factors of the default that are tried, and the values if it is zero."""
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

SECONDS = 60
"""Time limit for GCC to list its flags."""


@dataclass(frozen=True)
class Gcc:
    """The installed compiler.

    Attributes:
      path: of its executable.
      version: its number and its target.
      level: the optimisation level that it was asked at, such as -Oz, or -Os before GCC 12.
      flags: for each on/off flag, by name, whether this level sets it.
      parameters: for each parameter, by name, the values to try in ascending order, and the index of the default.
      wide: the same for all parameters of optimisations, with more values.
      valued: for each flag with words as values, by name, these, and the index of the default.
      has_oz: whether it knows -Oz.
    """

    path: str
    version: str
    level: str
    flags: dict[str, bool]
    parameters: dict[str, tuple[tuple[int, ...], int]]
    wide: dict[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    valued: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    has_oz: bool = True


def installed_gcc() -> Gcc:
    """Return the GCC on the path, at its level for the smallest code.

    Raises:
      UserError: there is none, it does not run, or the program called gcc is another compiler.
    """
    return read_gcc(installed("gcc", "gcc"), "-Oz")


@lru_cache(maxsize=4)
def read_gcc(path: str, level: str) -> Gcc:
    """Return a GCC at a level; where it has no -Oz, at -Os.

    Raises:
      UserError: it does not run, or is another compiler.
    """
    known = _level(path)
    level = known if level == "-Oz" else level
    listed, parameters = (_ask(path, level, f"--help={what}", "-Q") for what in ("optimizers", "params"))
    number, machine = (_ask(path, f"-dump{what}") for what in ("fullversion", "machine"))
    if not (flags := dict(_flags(listed))):
        raise UserError(f"{path} is not GCC (on macOS it is clang); put a GCC first on the path")
    wide, valued = dict(_parameters(parameters, wide=True)), dict(_valued(listed))
    numbers = dict(_parameters(parameters, wide=False))
    return Gcc(path, f"{number}-{machine}", level, flags, numbers, wide, valued, known == "-Oz")


def installed(name: str, package: str) -> str:
    """Return the path of a program, or say which package has it."""
    if path := shutil.which(name):
        return path
    raise UserError(
        f"{name} is not installed; install it with your system's packages, as in `apt-get install {package}`"
    )


def _level(path: str) -> str:
    with suppress(UserError):
        _ask(path, "-Oz", "--help=optimizers", "-Q")
        return "-Oz"
    return "-Os"


def _ask(path: str, *arguments: str) -> str:
    command, no_input = [path, *arguments], subprocess.DEVNULL
    try:
        process = subprocess.run(command, capture_output=True, text=True, stdin=no_input, timeout=SECONDS)
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


def _parameters(text: str, wide: bool) -> Iterator[tuple[str, tuple[tuple[int, ...], int]]]:
    factors, of_zero = _WIDE if wide else _NARROW
    for line in text.splitlines():
        match = _PARAMETER.fullmatch(line)
        if match and (not _NO_OPTIMISATION.fullmatch(match[1]) if wide else match[1] in _PARAMETERS):
            low, high, default = int(match[2] or 0), int(match[3] or 1 << 30), int(match[4])
            tried = {int(default * factor) for factor in factors} if default else of_zero
            ends = {low, high} if wide and match[2] and high - low <= 100 else set()
            values = tuple(sorted({min(max(value, low), high) for value in tried} | ends))
            if len(values) > 1:
                yield match[1], (values, values.index(min(max(default, low), high)))


def _valued(text: str) -> Iterator[tuple[str, tuple[tuple[str, ...], int]]]:
    for line in text.splitlines():
        match = _VALUED_FLAG.match(line)
        if match and match[2] in (values := _VALUED.get(match[1], ())):
            yield match[1], (values, values.index(match[2]))
