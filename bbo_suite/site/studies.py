"""The studies of a folder: runs as they were stored, or the table of runs of a published study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import quote

from ..errors import UserError
from ..files.names import folder_name
from ..report import read_study
from ..report.page import Page
from ..report.study_data import StudyData, study_of_table
from ..store.folders import has_runs
from ..store.results import RunResult
from ..store.run_table import read_studies, run_tables


@dataclass(frozen=True)
class Entry:
    """A study as the site lists it.

    Attributes:
      summary: which strategies ran on which problems.
      verdict: the answer in its first sentence.
    """

    name: str
    summary: str
    verdict: str
    runs: list[RunResult]

    @classmethod
    def of(cls, study: StudyData, page: Page) -> Self:
        """Return the entry of a study with its report; its rows are not kept."""
        return cls(study.name, page.summary, page.answers[0], study.runs)

    @property
    def folder(self) -> str:
        """The name of the folder of its report: names in tables may be any text."""
        return folder_name(self.name)

    @property
    def link(self) -> str:
        """The address of its report, from the first page."""
        return f"{quote(self.folder)}/report.html"


def studies(results: Path, complaints: list[str]) -> Iterator[StudyData]:
    """Yield the studies of a folder, by name; where one name stands for several, a number is added.

    Args:
      complaints: a sentence is appended for each table that cannot be read; it is left out.
    """
    seen = Counter[str]()
    for study in _all(results, complaints):
        seen[study.name] += 1
        number = seen[study.name]
        yield study if number == 1 else replace(study, name=f"{study.name} ({number})")


def number_of_studies(results: Path) -> int:
    """Return how many studies a folder holds, with one for each table of runs."""
    return sum(1 if has_runs(path) else len(run_tables(path)) for path in results.glob("*") if path.is_dir())


def _all(results: Path, complaints: list[str]) -> Iterator[StudyData]:
    for folder in sorted(path for path in results.glob("*") if path.is_dir()):
        if has_runs(folder):
            yield read_study(folder.name, results)
        else:
            for file in run_tables(folder):
                try:
                    yield from (study_of_table(name, runs) for name, runs in read_studies(file))
                except UserError as error:
                    complaints.append(str(error))
