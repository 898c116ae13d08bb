"""`tune` and `confirm`: the flags that make a program of the user's faster or smaller, and whether that is real."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.quantities import cost, effect
from ..errors import UserError
from ..files.names import plain
from ..recommend import with_choices
from ..registry import AUTO
from .app import AsJson, Plugins, Quiet, Results, app, count_option, json_line, seconds_option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..core.problem import Problem
    from ..registry import Registry
    from ..verify.best import Best
    from ..verify.remeasure import Verdict

FAMILY = "command"
"""The family of problems that reads what `tune` writes."""
_BATCH = 10
_FILE, _RECOMMENDED = "tune.toml", "recommended.json"
"""What describes the build, and what `tune` printed, in the folder of a study."""

Run = Annotated[
    str, typer.Option("--run", metavar="COMMAND", help="Runs what was built, as in '{out} input.txt'; none for size.")
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", metavar="FILE", help="What {input} in --run stands for. May be repeated.")
]
Goal = Annotated[
    str, typer.Option(help="What to minimise: time, size, or a regular expression with one group in what is printed.")
]
Check = Annotated[
    str | None,
    typer.Option(
        metavar="HOW", help="How results are checked: stdout, none, a relative tolerance such as 1e-6, or a command."
    ),
]


@app.command()
def tune(
    build: Annotated[
        str, typer.Argument(metavar="COMMAND", help="Builds the program, as in 'gcc {flags} -o {out} main.c'.")
    ] = "",
    run: Run = "",
    inputs: Inputs = None,
    budget: Annotated[int, count_option("Candidates to try.")] = 200,
    goal: Goal = "time",
    check: Check = None,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="To try: gcc, gcc-wide, clang, xla-cpu, xla-gpu, or a TOML file with a table space."
        ),
    ] = None,
    wall: Annotated[bool, typer.Option("--wall", help="Measure wall time, not processor time.")] = False,
    strategy: Annotated[
        str, typer.Option(metavar="ID", help="How to search; auto: by what the published study says for this budget.")
    ] = AUTO,
    seed: Annotated[int, count_option("Of the search.")] = 0,
    max_seconds: Annotated[float | None, seconds_option("Ends the search after this time, such as 10m.")] = None,
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the study; the same command resumes it.")
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find flags that make your own program faster or smaller, and say whether the gain is real.

    {flags} in the command stands for what is tried, {out} for the program. Each candidate is built in a copy of this
    folder. Without {out}, as with make, all new programs count.
    """
    from ..registry import Registry
    from .tables import reserved

    text = _toml(build, run, inputs or [], goal, check, space, wall)
    settings = f"{text}|{strategy}|{budget}|{seed}|{max_seconds}".encode()
    name = study or f"tune-{plain(Path.cwd().name)[:40]}-{hashlib.sha256(settings).hexdigest()[:6]}"
    registry = Registry(tuple(plugin or ()))
    with reserved(True):
        with _stored(results / name / _FILE, text) as file:
            _start_at_the_best_level(registry, file)
            _search(registry, name, results, strategy, budget, seed, max_seconds, quiet)
        best, verdicts, counts = _found(registry, name, results, quiet)
    again = f"python -m bbo_suite confirm {shlex.quote(name)}"
    again += "" if results == Path("results") else f" --results {shlex.quote(str(results))}"
    if as_json:
        print(json_line({**best.facts(), "verdicts": [each.facts() for each in verdicts], "candidates": counts}))
    else:
        print("\n".join([*_answer(best, verdicts, counts), f"next: {again}"]))


def _toml(
    build: str, run: str, inputs: Sequence[str], goal: str, check: str | None, space: str | None, wall: bool
) -> str:
    """Return the file that describes the build."""
    tables: dict[str, dict[str, Any]] = {
        "build": {"command": build, "folder": str(Path.cwd())},
        "run": {"command": run, "inputs": list(inputs)},
        "cost": {"goal": goal, "clock": "wall" if wall else ""},
        "check": {"output": _number(check)},
    }
    lines = []
    for table, content in tables.items():
        given = {key: value for key, value in content.items() if value not in ("", [], None)}
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())]
    return "\n".join([*lines, _space(space), ""])


def _number(text: str | None) -> str | float | None:
    with suppress(ValueError):
        if text is not None and math.isfinite(number := float(text)):
            return number
    return text  # also nan and inf, which are no JSON


def _space(space: str | None) -> str:
    """Return the table of the space: that of a file, or one that names a space that is ready."""
    if space is None or not space.endswith(".toml"):
        return "[space]" + (f"\nready = {json.dumps(space)}" if space else "")
    try:
        text = Path(space).read_text(encoding="utf-8-sig")
        tables = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the space {space}: {getattr(error, 'strerror', None) or error}") from None
    if "space" not in tables:
        raise UserError(f'{space} has no table [space]; write, for example, [space] and ready = "gcc"')
    start = re.search(r"^[ \t]*(\[space\])", text, re.MULTILINE)
    found = text[start.start(1) :] if start else ""
    if re.findall(r"^\s*\[.*", found, re.MULTILINE)[1:] or tomllib.loads(found) != {"space": tables["space"]}:
        raise UserError(
            f"{space}: write [space] as its last table, with each parameter on a line that begins with its name"
        )
    return found


@contextmanager
def _stored(file: Path, text: str) -> Iterator[Path]:
    """Keep the description of the build in the folder of its study; nothing stays if no run begins."""
    from ..files.writing import disk_errors
    from ..store.folders import has_runs

    with disk_errors(file):
        stored = file.read_text(encoding="utf-8") if file.exists() else text
        if not stored.startswith(text):
            raise UserError(f"study {file.parent.name!r} is of another build or goal; choose another --study")
        is_new = not file.parent.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(stored, encoding="utf-8")
    try:
        yield file
    finally:
        if is_new and not has_runs(file.parent):
            shutil.rmtree(file.parent)


def _start_at_the_best_level(registry: Registry, file: Path) -> None:
    """Let the search of a new study begin at the level that is best for this program, if levels are tried."""
    from ..store.folders import has_runs

    text = file.read_text(encoding="utf-8")
    if _begins_elsewhere(text) or has_runs(file.parent):
        return
    problem = registry.load(f"{FAMILY}:{file}")
    if problem.space.name(0) != "level":
        return
    known = problem.baselines()
    best = min(known, key=lambda level: known[level], default="")
    if known.get(best, 1.0) < problem.evaluate(problem.default_row()[None]).values[0] * (1 - _WORTH):
        file.write_text(f'{text}{_START}"{best}"\n', encoding="utf-8")
        gain = effect(1 / known[best], problem.unit) if problem.noisy else f"{known[best]:,.0f} {problem.unit}"
        print(f"the search begins at {best}, the best level ({gain})", file=sys.stderr)


def _begins_elsewhere(text: str) -> bool:
    return any(line.startswith(_START) for line in text.splitlines())


_START = "start = "
_WORTH = 0.01
"""The share that another level must save to be the start."""


def _search(
    registry: Registry,
    name: str,
    results: Path,
    strategy: str,
    budget: int,
    seed: int,
    max_seconds: float | None,
    quiet: bool,
) -> None:
    """Run the study or what is left of it.

    Raises:
      UserError: the build, the run or the check fails with the default, or something is wrong with a setting.
    """
    from ..runs.study_plan import StudyPlan, chosen_options
    from .progress import make

    problem = f"{FAMILY}:{results / name / _FILE}"
    chosen = chosen_options(registry, with_choices((strategy,), (problem,), budget, registry)[problem], {})
    plan = StudyPlan(name, results, registry, (problem,), chosen, 1, seed, budget, _BATCH, True, 1, max_seconds)
    make(plan, 1, quiet)


def _found(registry: Registry, study: str, results: Path, quiet: bool) -> tuple[Best, list[Verdict], dict[str, int]]:
    """Return the best of a study, simplified, whether it is better than what is usual, and how candidates ended.

    What is usual is the default and, if the search began at another level, the level that would be the default.
    """
    from ..core.problem import SAME_CODE, Status
    from ..files.writing import write_json
    from ..store.folders import run_folders
    from ..store.stored_run import readable
    from ..verify.best import best_of
    from ..verify.remeasure import DEFAULT, confirm

    _say("building the best anew, and measuring what each of its changes is worth", quiet)
    best = next(best_of(registry, study, results, simplify=True))
    counts: Counter[str] = Counter()
    for run in readable(run_folders(study, results)):
        counts.update("same code" if row.reason == SAME_CODE else Status(row.status).word for row in run.each_row())
    if best.minimal is None or best.loaded is None:
        return best, [], dict(counts)
    recommended = {"config": best.loaded.space.pack(best.minimal.config), "text": best.paste}
    write_json(results / study / _RECOMMENDED, recommended)
    rivals = [DEFAULT] if best.minimal.needed else []
    if _begins_elsewhere((results / study / _FILE).read_text(encoding="utf-8")):
        rivals.append("-O3" if best.loaded.noisy else "-Oz")
    if rivals:
        _say("comparing what is left with the default", quiet)
    return best, list(confirm(best.loaded, best.minimal.config, _SECONDS, rivals)) if rivals else [], dict(counts)


def _say(what: str, quiet: bool) -> None:
    if not quiet:
        print(what, file=sys.stderr, flush=True)


_SECONDS = 30.0
"""Limit of a comparison, unless `--seconds` says otherwise."""


def _answer(best: Best, verdicts: Sequence[Verdict], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines that tell what was found."""
    from ..store.identity import known_speedups

    tried = ", ".join(f"{many:,} {what.replace('_', ' ')}" for what, many in counts.items())
    yield f"{sum(counts.values()):,} candidates: {tried}"
    if best.run is None or best.minimal is None or best.loaded is None:
        yield f"nothing to use: {best.why_not or 'no candidate succeeded'}"
        return
    unit = best.run.head["unit"]
    if known := known_speedups(best.run.head):
        yield "known: " + "; ".join(f"{name}: {effect(ratio, unit)}" for name, ratio in known.items())
    if not best.minimal.needed:
        yield f"nothing better was found than the default, {best.loaded.paste(best.loaded.default_row())}"
    for each in verdicts:
        yield f"against {each.rival}: {each.text}" + ("" if each.exact else f", in {each.ratio.pairs} pairs")
    yield f"checked: {best.checked}"
    if best.better:
        yield best.better
    yield from best.gain_lines()
    if unit == "bytes" and best.minimal_again:
        yield f"the program has {cost(best.minimal_again.value, unit)}"
    if verdicts:
        yield from ("", best.paste, "", f"use: {best.usage}")


@app.command()
def confirm(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Name of a study.")] = "",
    problem: Annotated[
        str | None, typer.Option(metavar="ID", help="The problem of the study, if it has several.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Another problem with these parameters, such as command:other-input.toml, or its own, as it is now.",
        ),
    ] = None,
    command: Annotated[
        str, typer.Option(metavar="COMMAND", help="A claim in place of a study: this command is better ...")
    ] = "",
    against: Annotated[str, typer.Option(metavar="COMMAND", help="... than this one.")] = "",
    run: Run = "",
    inputs: Inputs = None,
    goal: Goal = "time",
    check: Check = None,
    wall: Annotated[bool, typer.Option("--wall", help="Measure wall time, not processor time.")] = False,
    seconds: Annotated[float, seconds_option("Limit of each comparison, such as 60 or 5m.")] = _SECONDS,
    results: Results = Path("results"),
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Measure the best of a study in turns with the default and the baselines, until an interval says which is better.

    With --command and --against: compare two builds with {out}, or two commands to run. The exit code is 0 if the
    candidate is shown to be better than the default, and no baseline to be better than it; else 1.
    """
    from ..registry import Registry
    from ..verify.remeasure import DEFAULT
    from ..verify.remeasure import confirm as confirmed
    from .tables import each_reserved, reserved

    if bool(study) == bool(command) or bool(command) != bool(against):
        raise UserError("name a study to confirm, or two commands: --command NEW --against OLD")
    if command and command == against:
        raise UserError("--command and --against are the same command; give the one that it is compared with")
    if seconds <= 0:
        raise UserError(f"--seconds must be above 0, not {seconds:g}")
    registry, verdicts = Registry(tuple(plugin or ())), []
    with _claim(registry, command, against, run, inputs or [], goal, check, wall) as claim:
        with reserved(True):  # problems may print
            loaded, config = claim or _best(registry, study, results, problem, on)
            found = confirmed(loaded, config, seconds, rivals=(DEFAULT,) if claim else None)
        for verdict in each_reserved(found):
            verdicts.append(verdict)
            text = f"against {verdict.rival}: {verdict.text}"
            print(json_line(verdict.facts()) if as_json else text, flush=True)
    raise typer.Exit(0 if verdicts[0].is_better and not any(each.is_worse for each in verdicts) else 1)


def _best(
    registry: Registry, study: str, results: Path, problem: str | None, on: str | None
) -> tuple[Problem, NDArray]:
    """Return the problem, and what `tune` recommended, or else what the study's runs chose.

    Args:
      on: another problem that the candidate's values are taken to.
    """
    from ..verify.best import best_of

    found = list(best_of(registry, study, results, problems=[problem] if problem else None))
    if len(found) > 1:
        names = ", ".join(each.problem for each in found)
        raise UserError(f"study {study!r} has {len(found)} problems; choose one with --problem: {names}")
    (best,) = found
    if best.row is None or (best.loaded is None and not on):
        raise UserError(f"study {study!r}: {best.why_not or 'no candidate succeeded'}")
    loaded = best.loaded or registry.load(best.problem)
    file = results / study / _RECOMMENDED
    packed = json.loads(file.read_text(encoding="utf-8"))["config"] if file.exists() else best.row.config
    try:
        config = loaded.space.unpack(packed)
        if on is None:
            return loaded, config
        other = registry.load(on)
        return other, other.space.row(loaded.space.describe(config))
    except ValueError as error:
        raise UserError(f"study {study!r}: its candidate is none of {on or best.problem}: {error}") from None


@contextmanager
def _claim(
    registry: Registry,
    command: str,
    against: str,
    run: str,
    inputs: Sequence[str],
    goal: str,
    check: str | None,
    wall: bool,
) -> Iterator[tuple[Problem, NDArray] | None]:
    """Yield the problem whose one parameter is which of two commands is used, and the candidate; None without them."""
    from ..supervised.temporary import TemporaryFolder

    if not command:
        yield None
        return
    builds = bool(run) or goal == "size"
    text = _toml("{which}" if builds else "", run if builds else "{which}", inputs, goal, check, "", wall)
    values = json.dumps([against, command], ensure_ascii=False)
    with TemporaryFolder() as folder:
        file = folder / "claim.toml"
        file.write_text(f"{text.partition('[space]')[0]}[space]\nwhich = {values}\n", encoding="utf-8")
        problem = registry.load(f"{FAMILY}:{file}")
        yield problem, 1 - problem.default_row()
