"""The file that describes a build, `tune.toml`, read and checked: an error names the file, the line and the key."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bbo_suite import UserError
from bbo_suite.core.space import Kind, Parameter, choice, permutation, scale
from bbo_suite.errors import did_you_mean
from bbo_suite.files.reading import read_bounded
from bbo_suite.supervised.commands import is_quoted

from ..reading import explained
from .ready import READY, STARTS, ready, suggested

GOALS = ("time", "size")
FLAGS = "flags"
"""The place in commands that takes every parameter without a place of its own."""
_LARGEST = 1 << 20
_SECONDS = {"build": 600.0, "run": 60.0}
_LONGEST = 1e6
"""Largest limit of time in seconds."""


@dataclass(frozen=True)
class Setting:
    """One parameter of a build.

    Attributes:
      parameter: as a space takes it.
      texts: what each value puts into a command; for an order, the texts of its items.
      default: the index of the default value.
      when: the parameter, and its value, without which this one is left out.
    """

    parameter: Parameter
    texts: tuple[str, ...]
    default: int = 0
    when: tuple[str, str] | None = None


@dataclass(frozen=True)
class Build:
    """A build, how its result is run and checked, and what is minimised; see docs/tune.md for the keys.

    Attributes:
      file: that describes it.
      folder: all its files are copied for each build.
      runs: one command per input; none if nothing is run.
      check: `stdout`, `none`, a relative tolerance as a number, or a command.
      baselines: what `{flags}` may hold besides, by name.
      settings: the space.
    """

    file: Path
    folder: Path
    files: tuple[str, ...]
    command: str
    build_environment: dict[str, str]
    build_seconds: float
    runs: tuple[str, ...]
    run_environment: dict[str, str]
    run_seconds: float
    goal: str
    clock: str
    check: str | float
    settings: tuple[Setting, ...]
    baselines: dict[str, str] = field(default_factory=dict)


_KEYS: dict[str, dict[str, Any]] = {
    "build": {"command": str, "folder": str, "files": list, "environment": dict, "seconds": float},
    "run": {"command": str, "inputs": list, "environment": dict, "seconds": float},
    "cost": {"goal": str, "clock": str},
    "check": {"output": (str, float)},
}
_WORDS = {
    str: "a text",
    float: "a number",
    list: "a list of texts",
    dict: "a table",
    (str, float): "a text or a number",
}


def read(file: Path) -> Build:
    """Return the build that a file describes.

    Raises:
      UserError: it cannot be read, or a key is unknown, missing or wrong.
    """
    with explained(file, "a file in TOML"):
        text = read_bounded(file, _LARGEST).decode("utf-8-sig")
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{file} is not TOML: {error}") from None
    return _Reader(file, text, tables).build()


class _Reader:
    """The tables of a file, and the lines of its keys for errors."""

    def __init__(self, file: Path, text: str, tables: Mapping[str, Any]) -> None:
        self._file, self._lines, self._tables = file, text.splitlines(), tables

    def build(self) -> Build:
        self._check_keys()
        get = self._get
        run, inputs = get("run", "command", ""), get("run", "inputs", [])
        if inputs and "{input}" not in run:
            raise self._wrong("run", "inputs", "is there, but the command has no place {input}")
        if "{input}" in run and not inputs:
            raise self._wrong("run", "command", 'has a place {input}; say which: inputs = ["a.txt", "b.txt"]')
        command = get("build", "command", "")
        if not command and not run:
            raise self._wrong("build", "command", 'is missing; write, for example, "gcc {flags} -o {out} main.c"')
        goal = get("cost", "goal", "time")
        self._check_goal(goal, run, command)
        self._check_output()
        folder = (self._file.absolute().parent / get("build", "folder", ".")).resolve()
        self._check_folder(folder, get("build", "files", []))
        clock = get("cost", "clock", "cpu")
        if clock not in ("cpu", "wall"):
            raise self._wrong("cost", "clock", f'is "{clock}"; write "cpu" or "wall"')
        settings, baselines = self._space(command, run, goal)
        known = Build(
            file=self._file.resolve(),
            folder=folder,
            files=tuple(get("build", "files", [])),
            command=command,
            build_environment=get("build", "environment", {}),
            build_seconds=get("build", "seconds", _SECONDS["build"]),
            runs=tuple(_with_input(run, each) for each in inputs) or ((run,) if run else ()),
            run_environment=get("run", "environment", {}),
            run_seconds=get("run", "seconds", _SECONDS["run"]),
            goal=goal,
            clock=clock,
            check=get("check", "output", "stdout" if run else "none"),
            settings=settings,
            baselines=baselines,
        )
        self._check_places(known)
        return known

    def _check_keys(self) -> None:
        for table, content in self._tables.items():
            if table not in (*_KEYS, "space"):
                raise self._wrong(table, "", f"is no table of such a file.{did_you_mean(table, [*_KEYS, 'space'])}")
            if not isinstance(content, dict):
                raise self._wrong("", table, f"must be a table; write [{table}]")
            for key, value in content.items() if table != "space" else ():
                if key not in _KEYS[table]:
                    raise self._wrong(table, key, f"is unknown.{did_you_mean(key, _KEYS[table])}")
                self._check_kind(table, key, value, _KEYS[table][key])

    def _check_kind(self, table: str, key: str, value: object, kind: Any) -> None:  # noqa: ANN401 - types
        number = isinstance(value, int | float) and not isinstance(value, bool)
        texts = value if isinstance(value, list) else [*value.values()] if isinstance(value, dict) else []
        if kind is float:
            fits = number and 0 < value <= _LONGEST  # type: ignore[operator]
        else:
            fits = isinstance(value, kind) or (number and kind == (str, float))
        if not fits or not all(isinstance(text, str) for text in texts):
            limits = f" above 0, at most {_LONGEST:,.0f}" if kind is float else ""
            raise self._wrong(table, key, f"must be {_WORDS[kind]}{limits}")
        if key == "environment" and (odd := [name for name in value if not name or "=" in name]):  # type: ignore[attr-defined]
            raise self._wrong(table, key, f"has a variable {odd[0]!r}; its name must not be empty, nor have a =")
        if key == "command" and value:
            self._check_words(table, key, str(value))

    def _check_words(self, table: str, key: str, command: str) -> None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise self._wrong(table, key, f"cannot be split into words: {error}") from None
        if not words:
            raise self._wrong(table, key, "is blank; write a command")

    def _check_output(self) -> None:
        output = self._get("check", "output", "none")
        if isinstance(output, str):
            self._check_words("check", "output", output)
        elif not 0 <= output < math.inf:
            raise self._wrong("check", "output", f"is {output}; a tolerance is 0 or more, such as 1e-6")

    def _check_folder(self, folder: Path, files: list[str]) -> None:
        if not folder.is_dir():
            raise self._wrong("build", "folder", f"is {str(folder)!r}, which is no folder")
        for pattern in files:
            if not pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts:
                what = f"has {pattern!r}, which is not inside the folder; choose one that holds all: folder = "
                raise self._wrong("build", "files", f'{what}".."')
            try:
                found = any(folder.glob(pattern))
            except ValueError as error:
                raise self._wrong("build", "files", f"has {pattern!r}, which is no pattern: {error}") from None
            if not found:
                raise self._wrong("build", "files", f"has {pattern!r}, but {folder} has no such file")

    def _check_goal(self, goal: str, run: str, command: str) -> None:
        if goal == "size" and not command:
            raise self._wrong("cost", "goal", "is the size of what is built, but there is no [build] command")
        if goal != "size" and not run:
            raise self._wrong("run", "command", 'is missing; only goal = "size" needs none')
        if goal in GOALS:
            return
        try:
            groups = re.compile(goal).groups
        except re.error as error:
            raise self._wrong("cost", "goal", f"is no regular expression ({error}), nor time or size") from None
        if groups != 1:
            wanted = r'"time", "size", or an expression with one group around the number, such as "total: ([0-9.]+)"'
            raise self._wrong("cost", "goal", f"must be {wanted}")

    def _check_places(self, known: Build) -> None:
        templates = (known.command, *known.build_environment.values(), *known.runs, *known.run_environment.values())
        texts = (text for each in known.settings for text in each.texts)
        places = set(re.findall(r"\{(\w+)\}", " ".join((*templates, *texts))))
        names = [each.parameter.name for each in known.settings]
        if not places & {FLAGS, *names}:
            raise self._wrong("build", "command", "has no place {flags}, so that nothing could be tuned")
        lost = [name for name in names if f"{{{name}}}" not in " ".join(templates)]
        if lost and FLAGS not in places:
            raise self._wrong("space", lost[0], f"would change nothing: there is no place {{flags}} or {{{lost[0]}}}")
        if known.command and "out" not in places and known.goal == "size":
            raise self._wrong("build", "command", "has no place {out}, whose size is the cost")
        if isinstance(known.check, str) and known.check != "none" and not known.runs:
            raise self._wrong("check", "output", "is there, but nothing is run")

    def _space(self, command: str, run: str, goal: str) -> tuple[tuple[Setting, ...], dict[str, str]]:
        content = dict(self._tables.get("space", {}))
        own = set(content)
        names = content.pop("ready", [] if own - {"start"} or not command else suggested(command))
        start, settings, baselines = content.pop("start", ""), list[Setting](), dict[str, str]()
        if "start" in own and not names:
            raise self._wrong("space", "start", "is the level of a space that is ready; give a parameter another name")
        for name in names if isinstance(names, list) else [names]:
            if name not in READY:
                raise self._wrong("space", "ready", f"names no space that is ready.{did_you_mean(str(name), READY)}")
            if start not in ("", *STARTS):
                raise self._wrong("space", "start", f"is {start!r}; write one of {', '.join(STARTS)}")
            found, others = ready(name, command, run, goal, start)
            settings += [Setting(*each) for each in found]
            baselines |= others
        settings += [self._setting(name, value) for name, value in content.items()]
        if not settings:
            raise self._wrong("space", "ready", 'is missing; write ready = "gcc", or parameters of your own')
        known = {each.parameter.name: each for each in settings}
        for each in settings:
            self._check_condition(each, known)
        if len(known) < len(settings):
            twice = next(name for name in known if sum(each.parameter.name == name for each in settings) > 1)
            raise self._wrong("space", twice, "is there twice: the space that is ready has it, too")
        return tuple(settings), baselines

    def _check_condition(self, setting: Setting, known: dict[str, Setting]) -> None:
        name, seen = setting.parameter.name, [setting.parameter.name]
        while when := known[seen[-1]].when:
            if when[1] not in map(str, known[when[0]].parameter.values if when[0] in known else ()):
                raise self._wrong("space", seen[-1], f"is for {' = '.join(when)}, which is no choice")
            if known[when[0]].parameter.kind is Kind.SLOT:
                raise self._wrong("space", seen[-1], f"is for {when[0]}, which is an order")
            if when[0] in seen:
                raise self._wrong("space", name, f"depends on itself: {' <- '.join([*seen, when[0]])}")
            seen.append(when[0])

    def _setting(self, name: str, value: Any) -> Setting:  # noqa: ANN401 - what TOML holds
        if not name.isprintable() or not name or name == "out":
            raise self._wrong("space", "", f"{name!r} cannot be the name of a parameter; choose another")
        if value == "switch":
            return Setting(choice(name, ("off", "on")), ("", name))
        table = value if isinstance(value, dict) else {"choice": value} if isinstance(value, list) else {}
        kinds = [kind for kind in ("choice", "scale", "order") if kind in table]
        if len(kinds) != 1 or (odd := set(table) - {kinds[0], "default", "text", "when"}):
            wrong = f"has an unknown key {min(odd)!r}" if len(kinds) == 1 else "is no parameter"
            forms = 'write "switch", a list of values, or a table {choice = [...]}, {scale = [...]} or {order = [...]}'
            raise self._wrong("space", name, f"{wrong}; {forms}")
        values = table[kinds[0]]
        if not isinstance(values, list) or len(values) < 2 or not all(_is_plain(each) for each in values):
            raise self._wrong("space", name, "needs a list of two or more texts or numbers")
        if len({str(each) for each in values}) < len(values):
            raise self._wrong("space", name, "has a value twice")
        return self._of_kind(name, kinds[0], values, table)

    def _of_kind(self, name: str, kind: str, values: list[Any], table: Mapping[str, Any]) -> Setting:
        default, text, when = table.get("default", values[0]), table.get("text", "{}"), table.get("when")
        if kind == "order" and "default" in table:
            raise self._wrong("space", name, "is an order, whose default is the order of its list; leave out default")
        if default not in values:
            raise self._wrong("space", name, f"has the default {default!r}, which is none of its values")
        if not isinstance(text, str) or "{}" not in text:
            raise self._wrong("space", name, 'needs a text with {} for the value, such as text = "-m{}"')
        if "text" not in table and not all(isinstance(each, str) for each in values):
            text = f"{name}={{}}"
        if when is not None and not (isinstance(when, dict) and len(when) == 1):
            raise self._wrong("space", name, 'needs one condition, such as when = {level = "-O3"}')
        texts = tuple(text.replace("{}", str(each)) if each != "" else "" for each in values)
        make = {"choice": choice, "scale": scale, "order": permutation}[kind]
        condition = next((key, str(each)) for key, each in when.items()) if when else None
        try:
            parameter = make(name, tuple(values))
        except ValueError as error:  # such as a scale that does not ascend
            raise self._wrong("space", name, f"cannot be used: {error}") from None
        return Setting(parameter, texts, values.index(default), condition)

    def _get(self, table: str, key: str, default: Any) -> Any:  # noqa: ANN401 - of the key's kind
        return self._tables.get(table, {}).get(key, default)

    def _wrong(self, table: str, key: str, what: str) -> UserError:
        line = self._line(table, key)
        where = f"{self._file}, line {line}" if line else str(self._file)
        name = f"[{table}] {key}".strip() if table else key
        return UserError(f"{where}: {name} {what}")

    def _line(self, table: str, key: str) -> int:
        """Return the line of a key, or of its table if it has none; 0 if neither is there."""
        inside, found = not table, 0
        for number, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[+\s*([\w.-]+)", line):
                inside = header[1] == table or header[1] == f"{table}.{key}"
                found = number if header[1] in (table, f"{table}.{key}") else found
            elif inside and key and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
                return number
        return found


def _with_input(run: str, name: str) -> str:
    """Return a command with a file in each place `{input}`: as one word, or inside quotes as it is."""

    def text(found: re.Match[str]) -> str:
        return name if is_quoted(run[: found.start()]) else shlex.quote(name)

    return re.sub(r"\{input\}", text, run)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
