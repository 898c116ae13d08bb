"""A study in Python: the summaries of its runs, and methods for the commands `plot`, `best` and `report`."""

from __future__ import annotations

import html
import statistics
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from .core.arguments import typed
from .core.level import Level
from .core.problem import Problem
from .core.quantities import ratio_name, ratio_text
from .errors import UserError, did_you_mean
from .registry import registry_of
from .store import frames, run_table
from .store.diagnostics import load_diagnostics
from .store.folders import check_problems, each_readable, has_runs, name_damaged, run_folders, study_path
from .store.results import summarise

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .runs.study_plan import StudyPlan


class Study(Sequence[dict[str, Any]]):
    """A stored study: a sequence with one summary, a dict, for each run.

    The result of `bbo_suite.run` holds the runs of that call. A study that is opened by name holds all its runs. A
    folder without runs but with a table of them, `runs.csv`, is a published study: it has results, and no evaluations.

    Args:
      name: the name of its folder in `results`; `NAME-BUDGET` is one budget of a published study.
      plugins: files that define problems of the study.
      problems: those of the study that were passed as classes or objects; the study that `run` returns knows them.

    Attributes:
      name: the name of the study.
      path: the path of its folder.

    Raises:
      UserError: there is no such study.
    """

    @typed
    def __init__(
        self,
        name: str,
        results: str | Path = "results",
        plugins: str | Path | Sequence[str | Path] = (),
        problems: Problem | type[Problem] | Iterable[Problem | type[Problem]] = (),
    ) -> None:
        self._results = Path(results).absolute()
        self._published = [] if has_runs(self._results / name) else run_table.published(name, self._results)
        self.name, self.path = name, self._published[0].folder if self._published else study_path(name, self._results)
        self._registry = registry_of(plugins, problems)

    @classmethod
    def _of_run(cls, plan: StudyPlan, summaries: list[dict[str, Any]]) -> Self:
        """Return the study of a call of `run`, with the runs of that call."""
        made = cls(plan.name, plan.results)
        made._registry, made._summaries = plan.registry, summaries
        return made

    @cached_property
    def _summaries(self) -> list[dict[str, Any]]:
        if self._published:
            return [run.facts(self.path) for run in run_table.results_of(self.runs())]
        return each_readable(run_folders(self.name, self._results), summarise)

    def __len__(self) -> int:
        return len(self._summaries)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._summaries[place]

    def __eq__(self, other: object) -> bool:
        return self._summaries == list(other) if isinstance(other, Study | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def runs(self) -> pd.DataFrame:
        """Return the results of the runs, one row each, sorted by problem, strategy and seed; damaged ones are named.

        Columns:
          problem, strategy, seed, budget: of the run.
          level: what the strategy knows: costs, structure or parts.
          default, best: the default's cost and the lowest cost that was found, inf if every candidate failed.
          speedup: the default's cost / the best cost, measured again where it was.
          evaluations, failed, unique: numbers of candidates, of those that failed, and of different ones.
          seconds, evaluation_seconds: of the strategy itself, and of the evaluations.
          remeasured: the speedup of the best candidate, measured again after the search; nan if it was not.
          optimum: the lowest cost that is possible; nan if it is not known.
          status: why the run ended: budget, covered, time or price; else unfinished, or failed if an error stopped it.
          unit, fingerprint: of the problem.
          options: those of the strategy, as JSON.
          digest: of the run's identity and of the candidates, values and statuses of its rows: equal runs have equal
            ones on any machine.

        `runs.csv` of a published study is such a table. In older ones some columns are unknown: nan or "".
        """
        if self._published:
            import pandas as pd

            return pd.concat([each.runs for each in self._published], ignore_index=True).drop(columns="study")
        errors: list[UserError] = []
        folders = run_folders(self.name, self._results)
        if "_summaries" in self.__dict__:
            known = {run["path"] for run in self}
            folders = [path for path in folders if str(path) in known]
        runs = run_table.stored_runs(folders, errors)
        name_damaged(errors, some=bool(len(runs)))
        return runs

    def frame(self, texts: Collection[str] = ()) -> pd.DataFrame:
        """Return every evaluation of the stored study, one row each; see `bbo_suite.load`."""
        if self._published:
            raise UserError(f"study {self.name!r} is a table of runs, without evaluations; use runs()")
        return frames.load(self.name, self._results, texts)

    def diagnostics(self) -> pd.DataFrame:
        """Return the numbers that strategies reported about themselves.

        Columns: problem, strategy, seed, evaluation, name, value.
        """
        return load_diagnostics(self.name, self._results)

    def best(self, minimal: bool = False) -> list[dict[str, Any]]:
        """Return the best candidate of each problem, measured again, as `best --json` prints it.

        Args:
          minimal: also drop the changes that gain nothing, and rank the others by their gain.
        """
        from .verify.best import best_of

        return [best.facts() for best in best_of(self._registry, self.name, self._results, minimal)]

    def plot(self, name: str = "convergence", problems: Sequence[str] | None = None) -> Figure:
        """Draw one figure of the stored study.

        Args:
          name: of the figure: a key of `bbo_suite.figures.FIGURES`, `models`, or `program`, which shows what was found.
          problems: ids of those to draw; all by default. `program` shows the first of them.

        Raises:
          UserError: there is no such figure, or the study does not support it.
        """
        from .figures import FIGURES, MODELS

        figures = FIGURES | {MODELS.name: MODELS}
        problems = [problems] if isinstance(problems, str) else problems
        if name == "program":
            return self._program(problems)
        if name not in figures:
            raise UserError(f"there is no figure {name!r}.{did_you_mean(name, figures)}")
        if self._published and not getattr(FIGURES.get(name), "only_results", False):
            raise UserError(f"study {self.name!r} is a table of runs, and {name!r} needs their evaluations")
        texts = ["config"] if name == "exploration" else ()
        frame = self.diagnostics() if name == MODELS.name else self.drawable(texts)
        if problems is not None:
            check_problems(problems, {run["problem"] for run in self}, self.name)
            frame = frame[frame["problem"].isin(problems)]
        return figures[name](frame)[0]

    def drawable(self, texts: Collection[str] = ()) -> pd.DataFrame:
        """Return what figures are drawn from: the evaluations; of a published study the last row of each run."""
        if self._published:
            from .report.study_data import only_one

            return run_table.last_rows(only_one(self.name, self._published).runs)
        return self.frame(texts)

    @property
    def only_results(self) -> bool:
        """True for a published study, which is a table of runs."""
        return bool(self._published)

    @property
    def figures(self) -> Path:
        """The folder that `plot` writes to."""
        return self.path / f"figures{self._published[0].suffix if len(self._published) == 1 else ''}"

    def _program(self, problems: Sequence[str] | None) -> Figure:
        from .figures import outcome
        from .verify.best import best_of

        for best in best_of(self._registry, self.name, self._results, simplify=True, problems=problems):
            return outcome.draw(best)[0]
        raise UserError(f"study {self.name!r} has no run that can be read")

    def export(self, to: str, out: str | Path | None = None) -> Path:
        """Write the stored study in the format of another tool, as the command `export` does, and return its path.

        A study of objects is exported from Python alone, because the command line does not know them.

        Args:
          to: the format: csv, parquet, ioh, t4, kernel-tuner, optuna, ...
          out: the file or folder; in the study's folder by default.

        Raises:
          UserError: there is no such format, the path exists already, or a problem is not known or has changed.
        """
        from .exchange.formats import export

        path, notes = export(self.name, to, Path(out) if out else None, self._results, self._registry)
        for note in notes:
            print(note, file=sys.stderr)
        return path

    def report(self, out: str | Path | None = None) -> Path:
        """Write the report of the stored study, one HTML page, and return its path.

        Args:
          out: the file; `report.html` in the study's folder by default.
        """
        from .report import write

        return write(self.name, self._results, Path(out) if out else None, plugins=self._registry.plugins)

    def _table(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield problem, strategy, number of runs and median speedup, as text."""
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for run in self:
            groups.setdefault((run["problem"], run["strategy"]), []).append(run)
        for (problem, strategy), runs in groups.items():
            speedups = [run["speedup"] for run in runs if run["speedup"] is not None]
            median = ratio_text(statistics.median(speedups) if len(speedups) == len(runs) else None)
            yield problem, Level.of(runs[0]).marked(strategy), f"{len(runs):,}", median

    @property
    def _columns(self) -> tuple[str, ...]:
        return "problem", "strategy", "runs", f"median {ratio_name(run['unit'] for run in self)}"

    def _place(self) -> str:
        """Return the folder as a user would type it: relative if it is inside the working directory."""
        inside = self.path.is_relative_to(Path.cwd())
        return str(self.path.relative_to(Path.cwd()) if inside else self.path)

    def __repr__(self) -> str:
        rows = [self._columns, *self._table()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{p:{widths[0]}}  {s:{widths[1]}}  {n:>{widths[2]}}  {m:>{widths[3]}}" for p, s, n, m in rows]
        return "\n".join([f"study {self.name!r} in {self._place()}", *lines])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self._columns)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._table())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        title = f"study {html.escape(self.name)} in {html.escape(self._place())}"
        return f"<table><caption>{title}</caption><tr>{head}</tr>{body}</table>"
