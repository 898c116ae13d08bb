"""A build of the user's own as a problem."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import astuple, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, UserError, product
from bbo_suite.core.libraries import refusal
from bbo_suite.supervised import LiveProblem, Service, addresses
from bbo_suite.supervised.commands import filled

from ..gcc.compiler import installed
from .file import FLAGS, Setting, read
from .ready import with_zig
from .worker import FACTS, Values, sources

_EXAMPLES = Path(__file__).parent / "examples"
_MEMORY = 16 << 30
_LARGEST, _MOST = 64 << 20, 10_000
"""Largest folder, in bytes and in files: it is copied for each build."""
_FORMAT, _LATER = 1, 2
"""Increase them when costs change: of all, or where a build and its runs take values, or a condition has another."""


class CommandProblem(LiveProblem):
    """Any build that is a command line, with any compiler: `command:tune.toml`, or `command/sort` as an example.

    The file says how the program is built, run and checked, what is minimised, and which flags, choices, scales and
    orders a candidate sets. The cost is the processor time of the process divided by that of the default, both measured
    in turns; or the bytes that are loaded; or a number in the output, divided by the default's. Candidates whose
    programs have the same code share one measurement. A candidate that prints something else than the default is a
    wrong result. Each is built in a copy of the folder, in a child process with limits.
    """

    variant_marks: ClassVar[str] = ""
    instances: ClassVar[tuple[str, ...]] = ("sort",)
    reads_files = True
    decision = "flags of any build that is a command line"
    costs = "time or another number over the default's, or bytes"
    time_per_candidate = "a build and some runs"

    def __init__(self, instance: str | Path) -> None:
        """Read the file, and find the compiler if its flags are a space that is ready.

        Raises:
          UserError: the file or a compiler cannot be used.
        """
        self.build = read(instance if isinstance(instance, Path) else _EXAMPLES / f"{instance}.toml")
        self._settings = self.build.settings
        self.space = product(*(each.parameter for each in self._settings))
        self.default = np.concatenate([_default(each) for each in self._settings])
        sized = self.build.goal == "size"
        self.unit = "bytes" if sized else "times the default"  # type: ignore[misc]
        self.noisy = self.timed = not sized
        command, caches = with_zig(self.build.command)
        build = replace(self.build, command=command, build_environment=caches | self.build.build_environment)
        runs = 30 * self.build.run_seconds * len(self.build.runs)
        self._serve(
            Service(
                f"{__package__}.worker:serve",
                (build, self.values(self.default_row())),
                self.build.build_seconds + 60,
                addresses(_MEMORY),
                60 + self.build.build_seconds + runs,
                name="tuning",
                confined=True,
            )
        )
        self._identify(self._content())

    @classmethod
    def available(cls) -> str:
        """Return whether there is no GCC, which the example needs."""
        return refusal(lambda: installed("gcc", "gcc"))

    def _content(self) -> str:
        """Return what decides the costs: the commands, the space, the files, and the programs that are called."""
        state, total = hashlib.sha256(), 0
        for number, path in enumerate(sources(self.build), 1):
            total += path.stat().st_size if path.is_file() else 0
            if total > _LARGEST or number > _MOST:
                what = f"{self.build.folder} has more than {_MOST:,} files or {_LARGEST >> 20} MiB"
                raise UserError(f'{what}, too much to copy for each build; name those that it needs: files = ["src"]')
            content = path.read_bytes() if path.is_file() else b""
            state.update(str(path.relative_to(self.build.folder)).encode() + hashlib.sha256(content).digest())
        rest = astuple(self.build)[3:]
        tools = [_version(with_zig(command)[0]) for command in (self.build.command, *self.build.runs)]
        known = _LATER if self._given or self._nested else _FORMAT
        return f"{known}|{self.space.digest()}|{rest!r}|{tools}|{state.hexdigest()}"

    def values(self, config: NDArray) -> Values:
        """Return what a candidate puts into the places of commands, by name."""
        places: dict[str, list[str]] = {FLAGS: []}
        chosen = {each.parameter.name: each.parameter.values[indices[0]] for each, indices in self._each(config)}
        for each, indices in self._each(config):
            name = each.parameter.name if f"{{{each.parameter.name}}}" in self._templates else FLAGS
            texts = places.setdefault(name, [])
            if self._applies(each, chosen):
                texts += [each.texts[i] for i in indices if each.texts[i]]
        return tuple((name, " ".join(texts)) for name, texts in places.items())

    def _applies(self, setting: Setting, chosen: dict[str, Any]) -> bool:
        """Return whether a setting's condition holds, if it has one, and that of the setting which it names."""
        if setting.when is None:
            return True
        name, value = setting.when
        return str(chosen[name]) == value and self._applies(self._by_name[name], chosen)

    @cached_property
    def _by_name(self) -> dict[str, Setting]:
        return {each.parameter.name: each for each in self._settings}

    @property
    def _nested(self) -> bool:
        """Whether the condition of a setting names one that has a condition."""
        return any(each.when and self._by_name[each.when[0]].when for each in self._settings)

    @property
    def _templates(self) -> str:
        known = self.build
        return "\n".join(
            (known.command, *known.build_environment.values(), *known.runs, *known.run_environment.values())
        )

    @property
    def _given(self) -> bool:
        """Whether both the build and its runs take values."""
        runs = "".join((*self.build.runs, *self.build.run_environment.values()))
        return bool(self.build.command) and any(f"{{{name}}}" in runs for name, _ in self.values(self.default_row()))

    def _each(self, config: NDArray) -> list[tuple[Setting, list[int]]]:
        """Return each setting with the indices of its columns."""
        rest, found = config.tolist(), []
        for each in self._settings:
            found.append((each, rest[: each.parameter.length]))
            rest = rest[each.parameter.length :]
        return found

    @cached_property
    def statistics(self) -> list[str]:  # type: ignore[override]
        """The sections and the largest functions of what the default builds, whose bytes compiling tells."""
        return [] if self.build.goal == "size" else self.query((FACTS,)).get("statistics", [])

    def request(self, config: NDArray) -> Values:
        """Return what a candidate puts into the places of commands."""
        return self.values(config)

    def ratios(self, config: NDArray, reference: NDArray | str, first: int, count: int) -> list[float]:
        """Return logarithms of ratios of two candidates, measured in turns; `reference` may name a baseline."""
        if isinstance(reference, str):
            return self._ratios(self.values(config), self._baseline(reference), first, count, reference)
        return self._ratios(self.values(config), self.values(reference), first, count)

    def baselines(self) -> dict[str, float]:
        """Return the costs of other levels, as far as their builds work."""
        outcomes, _ = self._outcomes([self._baseline(name) for name in self.build.baselines])
        return {name: outcome[0] for name, outcome in zip(self.build.baselines, outcomes, strict=True)}

    def _baseline(self, name: str) -> Values:
        """Return a baseline's flags, and in all other places what the default has."""
        default = self.values(self.default_row())
        return tuple((place, self.build.baselines[name] if place == FLAGS else text) for place, text in default)

    def paste(self, config: NDArray) -> str:
        """Return the command that builds, with a candidate's flags in it, and one that runs if it takes any, too."""
        values, known = dict(self.values(config)), self.build
        commands = [(known.command, known.build_environment)] if known.command else []
        if self._given or not known.command:
            commands.append((known.runs[0], known.run_environment))
        return "\n".join(self._pasted(*each, values) for each in commands)

    def _pasted(self, template: str, environment: dict[str, str], values: dict[str, str]) -> str:
        variables = [filled(f"{name}={text}", values) for name, text in environment.items()]
        command = filled(template, values).strip()
        if not re.search("[\"'\n]", command):  # else blanks may matter
            command = re.sub(r"\s+", " ", command)
        return " ".join([*variables, command])

    def flags(self, config: NDArray) -> str:
        """Return what a candidate puts into the place `{flags}`."""
        return dict(self.values(config))[FLAGS]

    def usage(self) -> str:
        """Return where the flags belong."""
        return (
            "put what stands for {flags} into your own build, such as CFLAGS; other sources or another compiler change"
            " what is best"
        )

    def assumptions(self) -> dict[str, str]:
        """Return what small differences cannot be seen on this machine now, and what the check compares."""
        facts = self.facts()
        return {what: facts[what] for what in ("results", "differences") if what in facts}

    def facts(self) -> dict[str, str]:
        """Return what the default takes, how much repeats differ, and how results are checked."""
        known: dict[str, Any] = self.query((FACTS,))
        told = {"default builds in": f"{known['build']:.2g} s"} if self.build.command else {}
        if self.build.goal == "size":
            told |= {"default has": f"{known['cost']:,.0f} bytes"}
        else:
            what = "default takes" if self.build.goal == "time" else "default's number"
            unit = f" s ({self.build.clock} time)" if self.build.goal == "time" else ""
            seen = ", ".join(f"{100 * share:.2g} % in {seconds} s" for seconds, share in known["told"].items())
            told |= {what: f"{known['cost']:.4g}{unit}", "differences": f"cannot be seen here below {seen}"}
        return told | {"results": self._results(known["output"])}

    def _results(self, printed: int) -> str:
        check, many = self.build.check, " on each input" if len(self.build.runs) > 1 else ""
        if not self.build.runs or check == "none":
            return "NOT compared" + ("" if self.build.runs else ": nothing is run")
        if isinstance(check, str) and check != "stdout":
            return f"checked by {check}"
        within = f", numbers within {check:g}" if check != "stdout" else ""
        if not printed:
            return "compared with the default's by the exit code alone: it prints nothing"
        return f"compared with the default's{many}: {printed:,} characters of output and the exit code{within}"


def _default(setting: Setting) -> NDArray[np.int64]:
    count = setting.parameter.length
    return np.arange(count) if setting.parameter.kind is Kind.SLOT else np.full(1, setting.default)


def _version(command: str) -> str:
    """Return what the program that a command calls says about its version; empty if it is none of the system's."""
    name = re.split(r"[\s=;&|]+", command.strip())[0]
    asked = "version" if name.endswith("zig") else "--version"
    if not re.search(r"(gcc|g\+\+|clang|cc|c\+\+|zig|icx|nvcc|rustc|go)[-\d.]*$", name) or not shutil.which(name):
        return ""
    try:
        done = subprocess.run([name, asked], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0]
