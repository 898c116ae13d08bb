"""Several problems with the same parameters as one: what people ask a tuner for is one setting for many programs."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Parts, Problem, Space, Status, Structure, UserError
from bbo_suite.core.constraint import listed
from bbo_suite.core.evaluation import default_value, evaluate, working_baselines
from bbo_suite.core.problem import set_fact
from bbo_suite.core.program import Change
from bbo_suite.registry import Registry

_FORMAT = 1
"""Increase it when the cost of a candidate changes."""
_FILE = re.compile("[^:/]*:")
"""Begins the id of a file."""
_FORM = "write several:llvm/tree+llvm/lexer, or several:llvm/*"


class SeveralProblem(Problem):
    """One candidate for several programs: `several:llvm/tree+llvm/lexer`, or `several:llvm/*` for all of a family.

    The programs are tasks with the same parameters and costs that repeat exactly. The cost is the geometric mean, over
    the programs, of the cost over that of the program's default. A candidate that fails on one program fails. The
    default is that of the first program; so if the programs have other defaults, its cost need not be 1. The parts are
    the programs, with their costs over those of their defaults.
    """

    instances: ClassVar[tuple[str, ...]] = ()
    unit = "times the default's cost"
    decision = "one candidate for several programs of these families"
    time_per_candidate = "their sum"
    tells_parts = True

    def __init__(self, programs: Sequence[Problem]) -> None:
        """Combine problems.

        Raises:
          UserError: fewer than two, one twice, other parameters, or costs that do not repeat.
        """
        _check(programs)
        self.programs = tuple(programs)
        self.space, self.default = _common_space(self.programs), self.programs[0].default_row()
        if not self.space.allowed(self.default[None])[0]:
            raise UserError(
                f"the default of {programs[0].id} is no candidate of the others; name another program first"
            )

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Return the task that ids joined by `+` name.

        Raises:
          UserError: one of them is not a problem, or they do not fit together.
        """
        registry = Registry()
        entries = _entries(path, registry.families())
        if not all(entries):
            raise UserError(f"several:{path} has no name before or after a +; {_FORM}")
        return cls([registry.load(name) for entry in entries for name in _named(registry, entry)])

    @cached_property
    def _defaults(self) -> NDArray[np.float64]:
        """The `(p,)` costs of the programs' defaults."""
        costs = np.array([default_value(program) for program in self.programs])
        for program in np.flatnonzero(costs == 0).tolist():
            raise UserError(f"the default of {self.programs[program].id} costs 0, so no ratio is defined; leave it out")
        return costs

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the geometric mean, for each of `(n, d)` candidates, of its costs over those of the defaults."""
        return self._with_ratios(configs)[0]

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the same, with the ratio of each program as a part."""
        found, ratios = self._with_ratios(configs)
        return dataclasses.replace(found, parts=self._parts(ratios))

    def _with_ratios(self, configs: NDArray) -> tuple[Evaluations, NDArray[np.float64]]:
        """Return the evaluations, and the `(n, p)` costs over those of the defaults; inf where a candidate fails."""
        shape, seconds = (len(configs), len(self.programs)), np.zeros(len(configs))
        ratios, status, reasons = np.empty(shape), np.zeros(len(configs), np.int8), dict[int, str]()
        for column, program in enumerate(self.programs):
            set_fact(program, "workers", self.workers)
            found = evaluate(program, configs)
            ratios[:, column] = found.values / self._defaults[column]
            seconds += np.asarray(found.seconds)
            for place in np.flatnonzero((found.status != Status.OK) & (status == Status.OK)).tolist():
                status[place], reasons[place] = found.status[place], f"{program.id}: {found.reasons.get(place, '')}"
        return Evaluations(_means(ratios), status, reasons, seconds), ratios

    def _parts(self, ratios: NDArray[np.float64]) -> Parts:
        n, p = ratios.shape
        prints = [program.fingerprint() for program in self.programs]
        keys = [_key(prints[i % p], ratio) for i, ratio in enumerate(ratios.ravel().tolist())]
        return Parts(np.arange(0, n * p + 1, p), np.array(keys, np.uint64), np.ones(n * p), ratios.ravel())

    def combine(self, parts: Parts) -> NDArray[np.float64]:
        """Return the `(n,)` geometric means of the parts."""
        with np.errstate(divide="ignore"):
            logs = dataclasses.replace(parts, costs=np.log(parts.costs))
        return np.exp(logs.sums() / len(self.programs))

    def baselines(self) -> dict[str, float]:
        """Return the geometric means of the baselines that all programs have."""
        known = [working_baselines(program) for program in self.programs]
        shared = [name for name in known[0] if all(each.get(name) for each in known)]
        ratios = {name: np.array([each[name] for each in known]) / self._defaults for name in shared}
        return {name: float(_means(each[None])[0]) for name, each in ratios.items()}

    def structure(self) -> Structure | None:
        """Return the interactions, if all programs declare the same ones, with the features that all have; or None."""
        first, *others = (program.structure() for program in self.programs)
        if first is None or any(other is None or not _interact_alike(first, other) for other in others):
            return None
        columns = [i for i in range(len(first.feature_names)) if all(_has_feature(other, first, i) for other in others)]
        names = tuple(first.feature_names[i] for i in columns)
        return Structure(first.starts, first.neighbours, first.features[:, columns], names)

    def fingerprint(self) -> str:
        """Return a text that changes with any of the programs."""
        content = "|".join((str(_FORMAT), *(program.fingerprint() for program in self.programs)))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def leave_cache(self) -> None:
        """Compile every candidate from now on, if the programs are those of live compilers."""
        for program in self.programs:
            program.leave_cache()

    def facts(self) -> dict[str, str]:
        """Return the cost of each program's default, and how results are checked."""
        known = zip(self.programs, self._defaults.tolist(), strict=True)
        results = {program.facts().get("results", "") for program in self.programs} - {""}
        return {f"default of {program.id}": f"{cost:,.6g} {program.unit}" for program, cost in known} | (
            {"results": "; ".join(sorted(results))} if results else {}
        )

    def changes(self, config: NDArray) -> list[Change]:
        """Return the differences from the default, as the first program names them."""
        return self.programs[0].changes(config)

    def paste(self, config: NDArray) -> str:
        """Return what each program's compiler reads."""
        return "\n".join(f"# {program.id}\n{program.paste(config)}" for program in self.programs)

    def usage(self) -> str:
        """Return how to use what is pasted for each program."""
        return f"for each program: {self.programs[0].usage()}"


def _interact_alike(a: Structure, b: Structure) -> bool:
    return np.array_equal(a.starts, b.starts) and np.array_equal(a.neighbours, b.neighbours)


def _has_feature(structure: Structure | None, other: Structure, column: int) -> bool:
    """True if a structure has a feature of another one, with the same numbers in the same place."""
    return (
        structure is not None
        and other.feature_names[column] in structure.feature_names[column : column + 1]
        and np.array_equal(structure.features[:, column], other.features[:, column])
    )


def _means(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.exp(np.log(ratios).mean(axis=1))


def _entries(path: str, families: Collection[str]) -> list[str]:
    """Return what `+` joins; behind a file, a piece that begins with no family belongs to the file's name."""
    entries: list[str] = []
    for piece in path.split("+"):
        if entries and _FILE.match(entries[-1]) and re.split("[:/]", piece)[0] not in families:
            entries[-1] += f"+{piece}"
        else:
            entries.append(piece)
    return entries


def _named(registry: Registry, entry: str) -> Iterator[str]:
    """Yield the ids that an entry names; `family/*@variant` names all instances with that variant."""
    family, _, instance = entry.partition("/")
    if entry.startswith("several:"):
        raise UserError(f"several:... cannot hold another one; name the programs themselves: {_FORM}")
    if "*" not in entry or _FILE.match(entry):
        yield entry
        return
    families = registry.families()
    if family not in families:
        raise UserError(f"there is no family {family!r}; {_FORM}")
    pattern, mark, variant = [*re.split("([@#])", instance, maxsplit=1), "", ""][:3]
    found = [name for name in families[family]().instances if fnmatchcase(name, pattern)]
    if not found:
        raise UserError(f"{entry!r} names no program; `list {family}` names them")
    yield from (f"{family}/{name}{mark}{variant}" for name in found)


def _check(programs: Sequence[Problem]) -> None:
    if len(programs) < 2:
        raise UserError(f"several:... needs two programs or more; {_FORM}")
    seen: dict[str, str] = {}  # by content: another spelling or a copy would weigh double
    for program in programs:
        if other := seen.get(content := program.fingerprint()):
            spelled = "" if other == program.id else f", as {other}, too"
            raise UserError(f"several:... names {program.id} twice{spelled}; leave it out once")
        if program.noisy:
            raise UserError(f"costs of {program.id} differ from time to time; several:... needs costs that repeat")
        seen[content] = program.id


def _common_space(programs: Sequence[Problem]) -> Space:
    """Return the space of the candidates that all programs allow.

    Raises:
      UserError: they have other parameters.
    """
    first = programs[0].space
    for program in programs[1:]:
        if why := _difference(first, program.space):
            raise UserError(f"{program.id} has not the parameters of {programs[0].id} ({why}); name programs that do")
    if len({program.space.digest() for program in programs}) == 1:
        return first
    listings = [_listing(program) for program in programs]
    common = np.array(sorted(set.intersection(*listings)), np.int64)
    if not len(common):
        raise UserError(f"no candidate is known for all of {', '.join(program.id for program in programs)}")
    return _like(first, common)


def _like(space: Space, rows: NDArray[np.int64]) -> Space:
    d = range(len(space))
    names, values = [space.name(i) for i in d], [space.values(i) for i in d]
    return Space(space.sizes, space.kinds, space.groups, constraints=[listed(rows)], names=names, values=values)


def _difference(a: Space, b: Space) -> str:
    """Return how the parameters of two spaces differ, empty if they do not."""
    if len(a) != len(b):
        return f"{len(b):,} instead of {len(a):,}"
    if not (np.array_equal(a.kinds, b.kinds) and np.array_equal(a.groups, b.groups)):
        return "of other kinds"
    for i in range(len(a)):
        if a.name(i) != b.name(i) or [*a.values(i)] != [*b.values(i)]:
            return f"{b.name(i)} with {len(b.values(i))} values instead of {a.name(i)} with {len(a.values(i))}"
    return ""


def _listing(program: Problem) -> set[tuple[int, ...]]:
    """Return the candidates of a program that lists them all, as a recording does."""
    tables = program.space.components
    if len(tables) != 1 or len(tables[0].columns) != len(program.space):
        raise UserError(f"the constraints of {program.id} are not those of the others; name programs with equal ones")
    return set(map(tuple, tables[0].rows.tolist()))


def _key(program: str, ratio: float) -> int:
    """Return the key of a part; its first 16 bits name the program, as those of live compilers name the function."""
    named = hashlib.blake2b(program.encode(), digest_size=2).digest()
    return int.from_bytes(named + hashlib.blake2b(f"{program}|{ratio!r}".encode(), digest_size=6).digest())
