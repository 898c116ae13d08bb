"""The known strategies and problems: entry points of installed packages, plugin files, classes and objects."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from .core.problem import Problem, set_fact
from .core.strategy import Strategy
from .core.versions import code_version, is_ours
from .errors import UserError, did_you_mean, error_boundary, one_line, unfit_name
from .plugins import Objects, ProblemRecipe, check_class, classes_of, file_of, id_of_class
from .store.identity import CODE, UNVERSIONED

_FEW = 5
"""The most instances that an error message lists."""


@functools.cache  # a file of each installed package is read
def entry_points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group."""
    return metadata.entry_points(group=group)


@dataclass(frozen=True)
class Registry:
    """Finds strategies and problems by id. Loading is lazy, so listing them imports nothing heavy.

    Attributes:
      plugins: files that define one strategy, one problem, or one of each; the file's stem is the id or the family.
      objects: strategies and problems that were passed as classes and objects.
      opened: tells this registry from others in all processes.
    """

    plugins: tuple[Path, ...] = ()
    objects: Objects = field(default_factory=Objects)
    opened: str = field(default_factory=lambda: os.urandom(8).hex(), compare=False, repr=False)

    def strategies(self) -> dict[str, Callable[[], type[Strategy]]]:
        """Return the loader of each strategy by id."""
        return self.known("bbo_suite.strategies", Strategy)

    def families(self) -> dict[str, Callable[[], type[Problem]]]:
        """Return the loader of each family of problems by name."""
        return self.known("bbo_suite.problems", Problem)

    def known(self, group: str, base: Any) -> dict[str, Callable[[], Any]]:  # noqa: ANN401 - a contract
        """Return the loaders of what entry points of a group, plugin files and objects define, by name.

        Args:
          base: the contract that each fulfils.
        """
        known: dict[str, Callable[[], Any]] = {
            point.name: functools.partial(_load, point.load, point.name, base) for point in entry_points(group=group)
        }
        for path in {path.resolve(): path for path in self.plugins}.values():
            for found in classes_of(path, base):
                if why := unfit_name(os.fsencode(path.stem).decode(errors="replace")):  # whatever the locale
                    raise UserError(f"plugin {str(path)!r}: its name {why}; rename the file")
                if path.stem in known:  # results would be stored under an ambiguous name
                    word = base.__name__.lower()
                    raise UserError(f"plugin {path}: there is another {word} {path.stem!r}; rename the file")
                known[path.stem] = functools.partial(_same, found)
        if base is Strategy:
            known |= {name: functools.partial(_same, found) for name, found in self.objects.strategies}
        return known

    def strategy(self, name: str) -> type[Strategy]:
        """Return a strategy's class by its id, or by `id:NAME` for one of an id's variants.

        Raises:
          UserError: there is no such strategy, it cannot be imported, or its variant is missing.
        """
        known = self.strategies()
        owner, _, variant = (name, "", "") if name in known else name.partition(":")
        if owner not in known:
            several = name.replace(",", " ").split()
            hint = _one_by_one(several, "strategy") if len(several) > 1 else did_you_mean(owner, known)
            hint = _AUTO if name == AUTO else hint
            raise UserError(f"there is no strategy {name!r}.{hint}{_of_plugins(self)}")
        found = known[owner]()
        return _variant(found, owner, variant) if found.has_variants or variant else found

    def id_of(self, found: type) -> str | None:
        """Return the id of a strategy's class, or the name of a family, if an entry point or a plugin has it."""
        base: Any = Strategy if issubclass(found, Strategy) else Problem
        for point in entry_points(group="bbo_suite.strategies" if base is Strategy else "bbo_suite.problems"):
            if f"{found.__module__}.".startswith(f"{point.module}.") and point.load() is found:
                return point.name
        return next((path.stem for path in self.plugins if found in classes_of(path, base)), None)

    def instances(self) -> list[str]:
        """Return the ids of all problems."""
        return [f"{name}/{instance}" for name, load in self.families().items() for instance in load().instances]

    def problem(self, problem_id: str) -> Problem:
        """Return the problem `family/instance`, or `family:path` from a file; each process loads it once.

        A file is read once for each registry: it may have been edited since another one was made.

        Raises:
          UserError: there is no such problem, or its file cannot be read.
        """
        return _loaded(self, problem_id, self.opened if re.match("[^:/]*:", problem_id) else "")

    def load(self, problem_id: str) -> Problem:
        """Return the problem as `problem` does, but load it again."""
        return _load_problem(self, problem_id)


@functools.lru_cache(maxsize=16)
def _loaded(registry: Registry, problem_id: str, reader: str) -> Problem:
    return _load_problem(registry, problem_id)


def _load_problem(registry: Registry, problem_id: str) -> Problem:
    for recipe in registry.objects.problems:
        if recipe.id == problem_id:
            with error_boundary(f"problem {problem_id}", "its constructor"):
                problem = recipe.build()
            return _named(problem, problem_id)
    return _load_registered(registry, problem_id)


def _one_by_one(names: list[str], option: str) -> str:
    return f" Give several one by one: {' '.join(f'--{option} {name}' for name in names)}."


AUTO = "auto"
"""The id that stands for the recommended strategy, in commands that run a study."""
_AUTO = f" The commands run and tune know {AUTO}; elsewhere, take the strategy that `recommend` names."


def _of_plugins(registry: Registry) -> str:
    """Return in a sentence what one's own strategies and families are called."""
    if not registry.plugins:
        return " One of your own is known with --plugin FILE."
    return f" A plugin has the name of its file: {', '.join(repr(path.stem) for path in registry.plugins)}."


def _load_registered(registry: Registry, problem_id: str) -> Problem:
    family_name, separator, instance = [*re.split("([:/])", problem_id, maxsplit=1), "", ""][:3]
    families = registry.families()
    if family_name not in families:
        hint = did_you_mean(family_name, families)
        raise UserError(
            f"there is no problem {problem_id!r}: {family_name!r} is not a family.{hint}{_of_plugins(registry)}"
        )
    family = families[family_name]()
    if not instance:
        raise UserError(f"problem {problem_id!r} does not name an instance; choose one of {_some(family, family_name)}")
    with error_boundary(f"problem {problem_id}", "loading"):
        problem = family.from_file(instance) if separator == ":" else _instance(family, family_name, instance)
    return _named(problem, problem_id)


_STATED: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (str, "a text", ("unit", "published_in")),
    (Real | None, "a number or None", ("optimum", "bound")),
    (bool | np.bool_, "True or False", ("noisy", "timed")),
)
"""Types, what they are called, and the attributes of a problem that have them."""


def _named(problem: Problem, problem_id: str) -> Problem:
    set_fact(problem, "id", problem_id)
    for kind, words, names in _STATED:
        for name in names:
            if not isinstance(value := getattr(problem, name), kind):
                raise UserError(f"problem {problem_id}: its {name} is {repr(value)[:60]}, but must be {words}")
    return problem


def _some(family: type[Problem], name: str) -> str:
    known = [f"{name}/{instance}" for instance in family.instances] or [f"{name}:path/of/a/file"]
    more = f" or another of its {len(known)}; `list {name}` names them" if len(known) > _FEW else ""
    return ", ".join(known[:_FEW]) + more


def _instance(family: type[Problem], name: str, instance: str) -> Problem:
    marks = family.variant_marks
    base = re.split(f"[{re.escape(marks)}]", instance)[0] if marks else instance
    if base not in family.instances and instance in family.instances:
        mark = instance[len(base)]
        raise UserError(
            f"the name of problem '{name}/{instance}' has {mark!r}, which marks a variant; rename the instance,"
            f' or set variant_marks = "" in {family.__name__}'
        )
    if base not in family.instances and base in map(str, family.instances):
        listed = repr(family.instances)[:60]
        raise UserError(f"the instances of {family.__name__} are {listed}; write them as texts, such as {base!r}")
    if base not in family.instances:
        several = f"{name}/{instance}".replace(",", " ").split()
        known = [f"{name}/{known}" for known in family.instances]
        hint = _one_by_one(several, "problem") if len(several) > 1 else did_you_mean(f"{name}/{instance}", known)
        hint = hint if known else f" {name!r} has none of its own: write {name}:{instance}"
        raise UserError(f"there is no problem '{name}/{instance}'.{hint}")
    if why := unfit_name(instance):
        raise UserError(f"the name of problem {f'{name}/{instance}'!r} {why}; rename the instance")
    return family(instance)


def _variant(found: type[Strategy], owner: str, name: str) -> type[Strategy]:
    names = [f"{owner}:{variant}" for variant in _variants(found, owner)]
    if not names:
        raise UserError(f"there is no strategy '{owner}:{name}': {owner!r} has no variants; leave out ':{name}'")
    if not name:
        some = f"{', '.join(names[:3])} or another of its {len(names)}"
        raise UserError(f"strategy {owner!r} has several variants: choose {some}; `show {owner}` names them")
    if f"{owner}:{name}" not in names:
        raise UserError(f"there is no strategy '{owner}:{name}'.{_hint(name, owner, names)}")
    with error_boundary(f"strategy {owner}:{name}", "loading"):
        return found.variant(name)


def _variants(found: type[Strategy], owner: str) -> Iterable[str]:
    with error_boundary(f"strategy {owner}", "naming its variants"):
        return found.variants()


def _hint(name: str, owner: str, names: list[str]) -> str:
    hint = did_you_mean(f"{owner}:{name}", names)
    return hint if len(hint) < 100 else f" `show {owner}` names them."


def _same(found: Any) -> Any:  # noqa: ANN401 - a class, of either kind
    return found


def _load(load: Callable[[], Any], name: str, base: type) -> Any:  # noqa: ANN401 - a class, of either kind
    word = base.__name__.lower()
    try:
        found = load()
    except Exception as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{word} {name} cannot be imported ({why}); install or fix its package") from error
    if not (inspect.isclass(found) and issubclass(found, base)):
        raise UserError(f"{word} {name} is not a subclass of bbo_suite.{base.__name__}; fix its package")
    return found


@dataclass(frozen=True)
class Resolved:
    """The strategies and problems that `run` was called with.

    Attributes:
      registry: knows the ids, plugins and objects included.
      strategies, problems: their ids, without duplicates.
    """

    registry: Registry
    strategies: tuple[str, ...]
    problems: tuple[str, ...]


def resolve(strategies: object, problems: object, plugins: Sequence[str | Path] | str | Path) -> Resolved:
    """Return the ids of strategies and problems that are passed as ids, classes or objects.

    Raises:
      UserError: something else is passed, or an id is taken.
    """
    return _resolved(_listed(strategies, "strategy"), _listed(problems, "problem"), plugins)


def registry_of(plugins: Sequence[str | Path] | str | Path, problems: object) -> Registry:
    """Return what knows the problems of plugin files, and those that are passed as classes or objects.

    Raises:
      UserError: something else is passed, or an id is taken.
    """
    return _resolved([], _listed(problems, "") if problems else [], plugins).registry


def _resolved(chosen: list[object], tasks: list[object], plugins: Sequence[str | Path] | str | Path) -> Resolved:
    files = [Path(plugins)] if isinstance(plugins, str | Path) else [Path(path) for path in plugins]
    found = [file_of(each if isinstance(each, type) else type(each)) for each in (*chosen, *tasks)]
    known = dict.fromkeys(path.absolute() for path in [*files, *filter(None, found)])  # workers may change directory
    registry = Registry(tuple(known))
    names = [_strategy_id(registry, each) for each in chosen]
    places = [_problem_id(registry, each) for each in tasks]
    new = Objects(
        tuple({each: None for each in names if not isinstance(each, str)}),
        tuple({each: None for each in places if not isinstance(each, str)}),
    )
    _check_distinct([name for name, _ in new.strategies], "strategy classes")
    _check_distinct([problem.id for problem in new.problems], "problems")
    strategy_ids = dict.fromkeys(each if isinstance(each, str) else each[0] for each in names)
    problem_ids = dict.fromkeys(each if isinstance(each, str) else each.id for each in places)
    return Resolved(Registry(tuple(known), new), tuple(strategy_ids), tuple(problem_ids))


def _listed(given: object, word: str) -> list[object]:
    listed = [given] if isinstance(given, str | type | Strategy | Problem) or not isinstance(given, Iterable) else given
    listed = list(listed)
    if not listed:
        raise UserError(f"no {word} is named; give at least one id, class or object")
    return listed


def _check_distinct(ids: Sequence[str], what: str) -> None:
    for name in ids:
        if ids.count(name) > 1:
            raise UserError(f"two {what} would have the id {name!r}; rename a class, or give other arguments")


def _strategy_id(registry: Registry, given: Any) -> str | tuple[str, type[Strategy]]:  # noqa: ANN401 - a user's mistake
    """Return a strategy's id, with its class if the registry does not know it."""
    if isinstance(given, str):
        return given
    if isinstance(given, Strategy):
        name = type(given).__name__
        raise UserError(f"{name} is given as an object; give the class {name} itself: every run makes its own object")
    if not (isinstance(given, type) and issubclass(given, Strategy)):
        raise UserError(f"{_shown(given)} is not a strategy; give an id or a subclass of bbo_suite.Strategy")
    _check_concrete(given)
    check_class(given)
    if registered := registry.id_of(given):
        return registered
    name = id_of_class(given)
    if is_ours(given):
        raise UserError(f"{given.__name__} is one of the suite's own classes; give a strategy's id instead")
    if name in registry.strategies():
        raise UserError(f"class {given.__name__} would have the id {name!r}, which another strategy has; rename it")
    return name, given


def _problem_id(registry: Registry, given: Any) -> str | ProblemRecipe:  # noqa: ANN401 - a user's mistake
    """Return a problem's id, or how to build it if the registry does not know it."""
    if isinstance(given, str):
        return given
    made = given if isinstance(given, type) else type(given)
    if not issubclass(made, Problem):
        raise UserError(f"{_shown(given)} is not a problem; give an id, a subclass of bbo_suite.Problem or an object")
    _check_concrete(made)
    family = registry.id_of(made)
    if isinstance(given, Problem) and family and given.id:
        return given.id
    arguments, keywords = given.constructed_with if isinstance(given, Problem) else (_first(made), {})
    if family and len(arguments) == 1 and isinstance(arguments[0], str) and not keywords:
        return f"{family}/{arguments[0]}"
    if family:
        raise UserError(f"the problem of family {family!r} has no id; make it by bbo_suite.problem(id)")
    if id_of_class(made) in registry.families():
        raise UserError(f"class {made.__name__} has the name of a family of problems, {id_of_class(made)!r}; rename it")
    return ProblemRecipe.of(made, arguments, keywords)


def _first(made: type[Problem]) -> tuple[str]:
    check_class(made)
    if not made.instances:
        name = made.__name__
        raise UserError(f"problem class {name} lists no instances; give an object instead, such as {name}(...)")
    return (made.instances[0],)


def _check_concrete(made: type) -> None:
    if inspect.isabstract(made):
        missing = ", ".join(sorted(getattr(made, "__abstractmethods__", ())))
        raise UserError(f"class {made.__name__} is incomplete: it does not define {missing}")


def _shown(given: object) -> str:
    return f"{given.__name__ if isinstance(given, type) else repr(given)[:60]} ({type(given).__name__})"


def code_facts(registry: Registry, name: str, options: Any) -> dict[str, str]:  # noqa: ANN401 - the strategy's own
    """Return what `run.json` stores about the code of a strategy and its members; nothing for a built-in one.

    It is not part of the identity, because the identity determines the random draws.
    """
    foreign = {owner: found for owner, found in _with_members(registry, name, options) if not is_ours(found)}
    versions = {owner: code_version(found) for owner, found in foreign.items()}
    without = [f"strategy {owner} has no source file" for owner, version in versions.items() if not version]
    code = {CODE: " ".join(f"{owner}={version}" for owner, version in sorted(versions.items()))} if versions else {}
    return code | ({UNVERSIONED: without[0]} if without else {})


def _with_members(registry: Registry, name: str, options: Any) -> Iterator[tuple[str, type[Strategy]]]:  # noqa: ANN401
    """Yield a strategy and the strategies that it runs, which have their default options, by their ids."""
    strategy = registry.strategy(name)
    yield name, strategy
    for member in strategy.members(options):
        with suppress(UserError):  # the strategy itself reports which member it cannot run
            yield from () if member == name else _with_members(registry, member, registry.strategy(member).Options())
