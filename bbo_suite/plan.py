"""A study as data: a file `plan.py` says which runs it has, and `run --plan` makes them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .core.evaluation import told
from .core.options import make
from .errors import UserError
from .files.writing import acquired, disk_errors
from .plugins import imported
from .registry import Registry
from .runs.study_plan import StudyPlan
from .store.folders import has_ended
from .store.run_table import COLUMNS, read_runs, valid_runs, write_runs

if TYPE_CHECKING:
    import pandas as pd

_KEY = ["problem", "strategy", "budget", "seed"]
"""What tells runs of one plan apart."""
_COMPARED = "compared"
_LOCK_SECONDS = 60


@dataclass(frozen=True)
class Search:
    """A strategy with options of its own, for a plan that has it in several variants."""

    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Every strategy on every problem, with each budget, once for each seed.

    The runs of each budget are a study of their own, `NAME-BUDGET`; those of a `Search` are in `NAME-BUDGET-ITS-NAME`.

    Attributes:
      problems: their ids.
      strategies: their ids; or by the name in tables: an id, or a `Search`.
      budgets: evaluations of a run.
      seeds: how many runs, with seeds 0, 1, and so on; or the seeds themselves.
      batch: candidates of one `ask`.
      cutoffs: evaluations after which the table of runs keeps the best cost, besides the end.
      max_seconds: the time limit of a run, or None.
      plain_seeds: a run's random draws follow from its seed alone, not from all that identifies the run.
      digits: to which the table of runs holds costs; runs that are made again are compared to that.
    """

    problems: Sequence[str]
    strategies: Sequence[str] | Mapping[str, str | Search]
    budgets: Sequence[int] = (10_000,)
    seeds: int | Sequence[int] = 1
    batch: int = 100
    cutoffs: Sequence[int] = ()
    max_seconds: float | None = None
    plain_seeds: bool = False
    digits: int = 10

    def searches(self) -> dict[str, Search]:
        """Return the strategies by their names in tables."""
        if not isinstance(self.strategies, Mapping):
            return {name: Search(name) for name in self.strategies}
        return {name: Search(each) if isinstance(each, str) else each for name, each in self.strategies.items()}

    def studies(self, name: str, results: Path, registry: Registry, **settings: Any) -> Iterator[tuple[str, StudyPlan]]:  # noqa: ANN401
        """Yield the studies that make the runs, each with the name of its `Search`; "" for plain strategies.

        Args:
          name: of the plan.
          settings: further attributes of each `StudyPlan`, such as `only`.

        Raises:
          UserError: a strategy or an option is unknown.
        """
        seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        groups: dict[str, dict[str, Search]] = {}
        for label, each in self.searches().items():
            groups.setdefault("" if label == each.strategy else label, {})[each.strategy] = each
        for budget in self.budgets:
            for label, group in groups.items():
                chosen = {
                    each: make(registry.strategy(each).Options, search.options, f"strategy {each}")
                    for each, search in group.items()
                }
                study = "-".join(filter(None, (name, str(budget), _slug(label))))
                for first, count in _stretches(seeds):
                    own: dict[str, Any] = {"repeats": count, "seed": first, "budget": budget, "batch": self.batch}
                    own |= {"max_seconds": self.max_seconds, "plain_seeds": self.plain_seeds}
                    yield label, StudyPlan(study, results, registry, tuple(self.problems), chosen, **own, **settings)


@dataclass(frozen=True)
class PlannedStudies:
    """The studies of a plan's file.

    Attributes:
      file: the file.
      studies: each with its plan and the name of its `Search`, "" for plain strategies.
      renews: whether runs of problems that have changed replace those of the table.
    """

    file: Path
    studies: tuple[tuple[Plan, str, StudyPlan], ...]
    renews: bool = False

    @classmethod
    def of(cls, file: Path, results: Path, registry: Registry, **settings: Any) -> PlannedStudies:  # noqa: ANN401
        """Return the studies of a file's plans; `settings` are further attributes of each `StudyPlan`.

        Raises:
          UserError: the file has no plan, or a plan has a mistake.
        """
        name = plan_name(file)
        studies = [(p, *each) for p in read_plans(file) for each in p.studies(name, results, registry, **settings)]
        return cls(file, tuple(studies))

    def missing(self) -> PlannedStudies:
        """Return the studies without the runs that the table has, if their problems have not changed since.

        Raises:
          UserError: the table is damaged, or a problem cannot be loaded.
        """
        if not self.table.exists():
            return self
        rows = read_runs(self.table)
        registry, stored = self.studies[0][2].registry, {*rows["problem"]}
        problems = dict.fromkeys(name for *_, study in self.studies for name in study.problems if name in stored)
        now = {name: told(registry.load(name), "fingerprint", str) for name in problems}
        known = {
            (row.problem, row.strategy, row.budget, row.seed)
            for row in rows.itertuples(index=False)
            if row.fingerprint == now.get(str(row.problem))
        }
        left = tuple((plan, label, _without(study, label, known)) for plan, label, study in self.studies)
        return replace(self, studies=left, renews=True)

    @property
    def table(self) -> Path:
        """The file with the table of runs, beside the plan: `runs.csv` for `plan.py`, `NAME-runs.csv` for `NAME.py`.

        If there is a packed one, `runs.csv.gz` or `NAME-runs.csv.gz`, it is that.
        """
        own = "" if self.file.stem == "plan" else f"{self.file.stem}-"
        packed = self.file.parent / f"{own}runs.csv.gz"
        return packed if packed.exists() else packed.with_suffix("")

    def update(self) -> tuple[int, int, list[str]]:
        """Add the runs that have ended to the table, and compare them with those that it has.

        Runs of a plan with a time limit, and those whose costs vary, are not compared.

        Returns:
          The number of runs that are new, of those that are equal, and the names of those that differ.

        Raises:
          UserError: a run or the table is damaged, or the table cannot be written.
        """
        lock = self.studies[0][2].results / f".{plan_name(self.file)}.lock"
        with disk_errors(lock):
            lock.parent.mkdir(parents=True, exist_ok=True)
            with acquired(lock, str(self.table), _LOCK_SECONDS):  # shares may end at the same time
                return self._update()

    def _update(self) -> tuple[int, int, list[str]]:
        import pandas as pd

        found = [self._ended(*each) for each in self.studies]
        runs = pd.concat([frame for frame in found if len(frame)] or found).drop_duplicates(_KEY).set_index(_KEY)
        old = read_runs(self.table).drop(columns="study") if self.table.exists() else None
        known = runs[:0] if old is None else old.drop_duplicates(_KEY, keep="last").set_index(_KEY)
        changed = self.renews & (runs["fingerprint"] != known["fingerprint"].reindex(runs.index))
        is_known = runs.index.isin(known.index) & ~changed
        new = runs[~is_known]
        if len(new):
            added = new.drop(columns=_COMPARED).reset_index()
            kept = None if old is None else old[~old.set_index(_KEY).index.isin(new.index)]
            table = pd.concat([kept, added]) if kept is not None and len(kept) else added
            write_runs(self.table, table[[*COLUMNS, *(name for name in table if name not in COLUMNS)]])
        both = runs[is_known & runs[_COMPARED]]
        same = self._equal(both, known.loc[both.index])
        return len(new), int(same.sum()), [" ".join(map(str, name)) for name in both.index[~same]]

    def _equal(self, runs: pd.DataFrame, before: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which runs are equal to those of the table, to the digits that the plans say."""
        near = 10.0 ** (1 - min(plan.digits for plan, *_ in self.studies))
        columns = ("default", "best", "evaluations")
        return np.all([np.isclose(runs[name], before[name], rtol=near, atol=0) for name in columns], axis=0)

    def _ended(self, plan: Plan, label: str, study: StudyPlan) -> pd.DataFrame:
        folders = [study.path / run.folder for run in study.share if has_ended(study.path / run.folder)]
        runs = valid_runs(folders, plan.cutoffs, label)
        compared = runs["remeasured"].isna() & (plan.max_seconds is None)
        return runs.assign(options="", **{_COMPARED: compared})  # the plan says the options


def _without(study: StudyPlan, label: str, known: Container[tuple[object, ...]]) -> StudyPlan:
    """Return a study without the runs that are known; `label` is its strategy's name in the table, "" for the same."""
    names = [run for run in study.runs if (run.problem, label or run.strategy, study.budget, run.seed) in known]
    return replace(study, leave_out=frozenset(names))


def read_plans(file: Path) -> list[Plan]:
    """Return the plans in a Python file, as `PLAN` or `PLANS`.

    Raises:
      UserError: the file cannot be executed, or has no plan.
    """
    found = imported(file, "plan")
    plans = getattr(found, "PLANS", None) or [getattr(found, "PLAN", None)]
    if not plans or not all(isinstance(plan, Plan) for plan in plans):
        raise UserError(f"{file} has no plan: set PLAN to a bbo_suite.Plan, or PLANS to a list of them")
    return list(plans)


def plan_name(file: Path) -> str:
    """Return the name of a plan: that of the folder for a file `plan.py`, else that of the file."""
    file = file.absolute()
    return file.parent.name if file.stem == "plan" else file.stem


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+]+", "-", label).strip("-.")


def _stretches(seeds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first seed and the number of seeds of each stretch of consecutive ones."""
    known = sorted(set(seeds))
    begins = [seed for seed in known if seed - 1 not in known]
    ends = [seed for seed in known if seed + 1 not in known]
    yield from ((begin, end - begin + 1) for begin, end in zip(begins, ends, strict=True))
