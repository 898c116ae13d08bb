"""The child process that builds, runs, checks and measures: it takes what to put into commands, and returns a cost.

Every candidate is built in its own copy of the folder, and compared with what the default made there, in turns.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bbo_suite.supervised import COMPILE, PAIRS, RUN
from bbo_suite.supervised.commands import Ended, adopt_orphans, filled, last_words, run
from bbo_suite.timing import Ratios, SharedCosts, pair, smallest_difference

from .. import elf
from ..recorded.fields import SECONDS
from .file import Build

FACTS = "facts"
"""The request for facts."""
Values = tuple[tuple[str, str], ...]
"""What is put into the places of commands, by their names."""
Enter = Callable[[str, float], None]
_OUT = "./tuned.out"
"""The place of the program that is built, relative to the folder: no part of a path needs a quotation mark."""
_SLOWEST, _SPARE = 10, 2.0
"""A candidate may take so many times as long as the default, and so many seconds more."""
_NAMED = 200
"""Functions whose bytes are told, at most: the largest of the default."""
_KEPT = 12
"""Builds of candidates that are measured again, which are kept."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_GOES_ON = r"\.?\d|[eE][-+]?\d|,\d{3}(?!\d)"
"""What follows if a number is not at its end; numbers of thousands may have commas."""
_SHOWN = 80
_SEARCHING = 10.0
"""Seconds that looking for the goal in an output may take: some expressions take ages where they do not match."""


@dataclass(frozen=True)
class Made:
    """A build.

    Attributes:
      folder: where it is.
      code: hash of what is loaded when it runs and of what its run is given; empty if nothing was built.
      values: that were put into the commands.
    """

    folder: Path
    code: str
    values: Values


class Failed(Exception):
    """A candidate has no cost: its status and the reason."""


def serve(build: Build, default: Values) -> Callable[[Any, Enter], Any]:
    """Return the handler for one build.

    Raises:
      ValueError: the default cannot be built or run, or its output cannot be checked.
    """
    adopt_orphans()
    return Bench(build, default, Path.cwd()).answer


class Bench:
    """One build, what its default makes and prints, and the costs of the codes that candidates were built to."""

    def __init__(self, build: Build, default: Values, scratch: Path) -> None:
        self._build, self._scratch, self._number = build, scratch, 0
        self._pristine = scratch / "pristine"
        copy(build, self._pristine)
        self._made = dict[Values, Made]()
        self._ratios: Ratios | None = None
        self._build_limit, self._run_limits = build.build_seconds, [build.run_seconds] * len(build.runs)
        self._wanted: list[str] = []
        self._units = dict[int, str]()
        started = time.perf_counter()
        try:
            self._reference = self._compiled(default)
            self._build_took = time.perf_counter() - started
            self._start()
        except Failed as failed:
            raise ValueError(f"with the default, {failed.args[1]}") from None
        of_default = 1.0 if build.goal != "size" else self._size(self._reference)
        self._costs = SharedCosts(self._reference.code, of_default)
        self._build_limit = _SPARE + max(60.0, _SLOWEST * self._build_took)

    def _start(self) -> None:
        """Run the default: twice, as what it prints must not vary, and then as often as the noise needs."""
        first = [self._run(self._reference, place) for place in range(len(self._build.runs))]
        if not first:
            return
        self._wanted = [self._printed(self._reference, place) for place in range(len(first))]
        if self._build.check != "none":
            self._check(self._reference)
            for place in range(len(first)):
                self._run(self._reference, place)
            if wrong := self._why_wrong(self._reference):
                advice = "give --check none, a tolerance, or a command"
                raise Failed("wrong_result", f"the output differs from run to run ({wrong}); {advice}")
        self._run_limits = [_SPARE + _SLOWEST * each.wall for each in first]
        if self._build.goal != "size":
            self._ratios = Ratios(lambda: self._measure(self._reference))

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - as LiveProblem takes it
        """Return the cost of values, or a status and a reason; or what another request asks for."""
        kind, *rest = request if request[:1] in ((FACTS,), (PAIRS,), (COMPILE,)) else ("", request)
        try:
            if kind == FACTS:
                return self._facts()
            if kind == PAIRS:
                return self._pairs(enter, *rest)
            if kind == COMPILE:
                return self._statistics(enter, *rest)
            return self._cost(enter, *rest)
        except Failed as failed:
            return failed.args

    def _statistics(self, enter: Enter, values: Values) -> list[float]:
        """Return the bytes of sections and functions by `_names`; nan if the build fails."""
        enter("build", self._build_limit + _SPARE)
        try:
            found = elf.sizes(self._kept(values).folder / _OUT)
        except Failed:
            return [math.nan] * len(self._names)
        return [float(found[name]) for name in self._names]

    @cached_property
    def _names(self) -> list[str]:
        """Return the names of the statistics: the default's sections and its largest functions."""
        if not self._reference.code or not (file := self._reference.folder / _OUT).is_file():
            return []
        return [name for name, _ in elf.sizes(file).most_common(_NAMED)]

    def _cost(self, enter: Enter, values: Values) -> Any:  # noqa: ANN401 - a cost, a cost and a remark, or a failure
        if values == self._reference.values:
            return self._costs.reference
        enter("build", self._build_limit + _SPARE)
        made = self._kept(values) if self._costs.asked(values) else self._compiled(values)

        def measured(again: bool) -> Any:  # noqa: ANN401 - a cost, or a status and a reason
            enter(RUN, self._limit(20))
            try:
                return self._evaluated(made, again)
            except Failed as failed:
                return failed.args

        return self._costs.of(values, made.code, measured)

    def _evaluated(self, made: Made, again: bool) -> float:
        for place in range(len(self._build.runs)):
            self._run(made, place)
        if self._build.runs and (wrong := self._why_wrong(made)):
            raise Failed("wrong_result", wrong)
        if self._build.goal == "size":
            return self._size(made)
        assert self._ratios
        return self._ratios.of(lambda: self._measure(made), again)

    def _pairs(self, enter: Enter, ours: Values, theirs: Values, number: int, count: int) -> list[float]:
        """Return the logarithms of the ratios of two candidates, in turns; one that fails is infinitely dear."""
        enter("build", 2 * self._build_limit + _SPARE)
        try:
            first = self._kept(ours)
        except Failed:
            return [math.inf]
        second = self._kept(theirs)
        if first.code and first.code == second.code:
            return [0.0] * count
        enter(RUN, self._limit(2 * count + 2))
        try:
            for place in range(len(self._build.runs)) if number == 0 else ():
                self._run(first, place)
            if number == 0 and self._build.runs and (wrong := self._why_wrong(first)):
                raise Failed("wrong_result", wrong)
            if self._build.goal == "size":
                return [math.log(self._size(first) / self._size(second))] * count
            measures = (lambda: self._measure(first)), (lambda: self._measure(second))
            return [pair(*measures, number + i) for i in range(count)]
        except Failed:
            return [math.inf]

    def _kept(self, values: Values) -> Made:
        if values == self._reference.values:
            return self._reference
        if values not in self._made:
            while len(self._made) >= _KEPT:
                shutil.rmtree(self._made.pop(next(iter(self._made))).folder, ignore_errors=True)
            self._made[values] = self._compiled(values, keep=True)
        self._made[values] = self._made.pop(values)  # the one that was used last is dropped last
        return self._made[values]

    def _limit(self, runs: int) -> float:
        return _SPARE + runs * sum(self._run_limits)

    def _compiled(self, values: Values, keep: bool = False) -> Made:
        """Build in a new copy of the folder; the copy of the candidate before is removed."""
        self._number += 1
        kept = keep or self._number == 1
        folder = self._scratch / (f"kept{self._number:06}" if kept else "candidate0")  # names of one length
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._pristine, folder, symlinks=True)
        if not self._build.command:
            return Made(folder, "", values)
        before = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}
        command, printed, limit = self._build.command, self._scratch / "built.txt", self._build_limit
        ended = self._command(command, self._build.build_environment, values, folder, printed, limit)
        if why := ended.failure(limit):
            said = last_words(printed)
            raise Failed("timeout" if ended.late else "compile_error", f"the build {why}{': ' * bool(said)}{said}")
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        new = [path for path in files if before.get(path) != path.lstat().st_mtime_ns]
        wanted = any("{out}" in text for text in (command, *dict(values).values()))
        if wanted and not (folder / _OUT).is_file():
            raise Failed("compile_error", "the build made no {out}")
        given = self._given(values)
        if not new and not given:
            raise Failed("compile_error", "the build made no file in its folder; let it write the program to {out}")
        out = [folder / _OUT] * wanted
        programs = [*out, *(file for file in new if file not in out and elf.is_program(file))]
        return Made(folder, elf.digest(programs or new) + given, values)

    def _given(self, values: Values) -> str:
        """Return what the runs take of the values, empty if nothing: the same code then runs in another way."""
        places, known = dict(values), self._build
        return "".join(
            f"|{taken}"
            for text in (*known.runs, *known.run_environment.values())
            if (taken := filled(filled(text, places), places)) != text
        )

    def _command(
        self, template: str, environment: dict[str, str], values: Values, folder: Path, printed: Path, seconds: float
    ) -> Ended:
        places = dict(values) | {"out": _OUT}
        plain = {name: filled(f'"{text}', places)[1:] for name, text in environment.items()}  # as inside quotes
        command = filled(filled(template, dict(values)), places)  # what is put in may name {out}
        try:
            return run(command, folder, printed, seconds, plain)
        except OSError as error:
            name = error.filename or command.split()[0]
            raise Failed("compile_error", f"{name} cannot be started: {error.strerror}") from None

    def _run(self, made: Made, place: int) -> Ended:
        printed, limit = self._scratch / f"printed{place}.txt", self._run_limits[place]
        command, environment = self._build.runs[place], self._build.run_environment
        ended = self._command(command, environment, made.values, made.folder, printed, limit)
        if why := ended.failure(limit):
            said = last_words(printed)
            raise Failed("timeout" if ended.late else "runtime_error", f"the run {why}{': ' * bool(said)}{said}")
        return ended

    def _measure(self, made: Made) -> float:
        """Run once on each input and return the cost: over several inputs, the geometric mean."""
        return self._cost_in(made, [self._run(made, place) for place in range(len(self._build.runs))])

    def _cost_in(self, made: Made, ends: list[Ended]) -> float:
        costs = [self._cost_at(made, place, ended) for place, ended in enumerate(ends)]
        return math.exp(sum(map(math.log, costs)) / len(costs))

    def _cost_at(self, made: Made, place: int, ended: Ended) -> float:
        if self._build.goal == "time":
            return max(ended.cpu if self._build.clock == "cpu" else ended.wall, 1e-6)
        number, unit = number_for(self._build.goal, self._output(place), self._output(place, ".err"))
        first = self._units.setdefault(place, unit)
        return number * SECONDS[first] / SECONDS[unit] if {first, unit} <= SECONDS.keys() else number

    def _output(self, place: int, kind: str = ".txt") -> str:
        return (self._scratch / f"printed{place}{kind}").read_bytes().decode(errors="replace")

    def _printed(self, made: Made, place: int) -> str:
        """Return what the last run printed, without the number that is the cost."""
        text = self._output(place)
        if self._build.goal in ("time", "size"):
            return text
        with _searching(self._build.goal):
            return re.sub(self._build.goal, _without_number, text)

    def _why_wrong(self, made: Made) -> str:
        """Return how the output of the last runs differs from the default's, or what the check says; else empty."""
        check = self._build.check
        if check == "none":
            return ""
        if isinstance(check, str) and check != "stdout":
            return self._check(made)
        for place, wanted in enumerate(self._wanted):
            tolerance = 0.0 if check == "stdout" else float(check)
            if wrong := difference(self._printed(made, place), wanted, tolerance):
                return wrong
        return ""

    def _check(self, made: Made) -> str:
        """Run the check's command, if there is one, on each output; return how it ended if not well."""
        if not isinstance(self._build.check, str) or self._build.check in ("stdout", "none"):
            return ""
        outputs = [self._scratch / f"printed{place}.txt" for place in range(len(self._build.runs))]
        return next(filter(None, (self._checked(made, self._build.check, each) for each in outputs)), "")

    def _checked(self, made: Made, check: str, output: Path) -> str:
        printed, limit = self._scratch / "checked.txt", self._build.run_seconds
        command = check.replace("{stdout}", shlex.quote(str(output)))
        ended = self._command(command, self._build.run_environment, made.values, made.folder, printed, limit)
        said = last_words(printed)
        why = ended.failure(limit)
        if why and made is self._reference:
            raise Failed("wrong_result", f"the check {why}{': ' * bool(said)}{said}")
        return f"the check {why}{': ' * bool(said)}{said}" if why else ""

    def _size(self, made: Made) -> float:
        return float(elf.size(made.folder / _OUT))

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"build": self._build_took, "output": sum(map(len, self._wanted))}
        if self._build.goal == "size":
            return facts | {"cost": self._size(self._reference)}
        facts["statistics"] = self._names
        wall = sum(limit - _SPARE for limit in self._run_limits) / _SLOWEST
        assert self._ratios
        noise, cost = self._ratios.noise, self._ratios.cost
        told = {seconds: smallest_difference(noise, int(seconds / max(2 * wall, 1e-3))) for seconds in (5, 60)}
        return facts | {"cost": cost, "noise": noise, "told": told}


def number_for(goal: str, printed: str, errors: str) -> tuple[float, str]:
    """Return the number that a goal finds first in an output, and the word after it, which may be its unit.

    Raises:
      Failed: there is none, or only a part of a number, or looking for it takes too long.
    """
    with _searching(goal):
        found = re.search(goal, printed)
        among_errors = not found and re.search(goal, errors)
    if not found:
        where = "; what it printed as errors has it: add 2>&1 to the command" if among_errors else ""
        raise Failed("runtime_error", f"the run printed nothing for the goal {goal!r}{where}")
    text, after = found[1] or "", printed[found.end(1) :]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise Failed("runtime_error", f"the run printed {text!r}, not a number above 0, for the goal {goal!r}")
    ends_inside = found.end() == found.end(1) and re.match(_GOES_ON, after)
    if ends_inside or (text[0].isdigit() and re.search(r"\d\.?$", printed[: found.start(1)])):
        whole = re.sub(r".*\s", "", printed[: found.end(1)]) + re.split(r"\s", after, maxsplit=1)[0]
        advice = "write its group as ([0-9.]+), with what is before and after it; it must have no commas"
        raise Failed("runtime_error", f"the goal {goal!r} takes {text!r}, a part of {whole[:_SHOWN]!r}; {advice}")
    return number, re.match(r"[ \t]*([^\W\d_]*)", after)[1]  # type: ignore[index]


@contextmanager
def _searching(goal: str) -> Iterator[None]:
    """Fail if looking for a goal takes too long; an alarm in time of this process leaves that of requests alone."""

    def stop(*_: object) -> None:
        why = f"looking for the goal {goal!r} in what the run printed takes more than {_SEARCHING:g} s"
        raise Failed("runtime_error", f"{why}; write it without repeats inside repeats, such as (a+)+")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SEARCHING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _without_number(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    start, end = (place - found.start() for place in found.span(1))
    return f"{found[0][:start]}#{found[0][end:]}"


def difference(printed: str, wanted: str, tolerance: float) -> str:
    """Return how an output differs from the wanted one, empty if it does not.

    Args:
      tolerance: by which share numbers may differ; the text between them must be the same.
    """
    if printed == wanted:
        return ""
    if tolerance and _NUMBER.split(printed) == _NUMBER.split(wanted):
        pairs = zip(_NUMBER.findall(printed), _NUMBER.findall(wanted), strict=True)
        far = [(a, b) for a, b in pairs if not math.isclose(float(a), float(b), rel_tol=tolerance, abs_tol=1e-300)]
        return f"it prints {far[0][0]}, not {far[0][1]}" if far else ""
    lines = zip([*printed.splitlines(), "nothing"], [*wanted.splitlines(), "nothing"], strict=False)
    number, (got, right) = next(((i, two) for i, two in enumerate(lines, 1) if two[0] != two[1]), (0, ("", "")))
    return f"line {number} is {got[:_SHOWN]!r}, not {right[:_SHOWN]!r}" if number else "its line ends differ"


def sources(build: Build) -> Iterator[Path]:
    """Yield the files of the folder that a build may read: without hidden ones, and without stored studies."""
    if build.files:
        chosen = {path for pattern in build.files for path in build.folder.glob(pattern)}
        for path in sorted(chosen):
            yield from (p for p in (path.rglob("*") if path.is_dir() else (path,)) if p.is_file())
        return
    folders = [build.folder]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                if not any(any(path.glob(name)) for name in ("study.json", "*/study.json")):
                    folders.append(path)
            elif path != build.file and not path.name.startswith(".") and (path.is_file() or path.is_symlink()):
                yield path


def copy(build: Build, target: Path) -> None:
    """Copy what a build may read."""
    target.mkdir()
    for path in sources(build):
        place = target / path.relative_to(build.folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place, follow_symlinks=not path.is_symlink() or path.is_file())
