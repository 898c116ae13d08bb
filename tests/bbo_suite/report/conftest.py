"""Studies on disk, made of costs, and their reports."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from bbo_suite import Status, figures
from bbo_suite.files.log import checksummed
from bbo_suite.files.names import folder_name
from bbo_suite.report import judge, judgement, page, rankings, read_study
from bbo_suite.report.page import html
from bbo_suite.store.rows import HEADER, Row

DEFAULT = 8.0


@dataclass
class Studies:
    """A folder of studies."""

    path: object
    heads: dict = field(default_factory=dict)

    def add(self, runs, name="s", ended="budget", budget=None, structure=(), parts=(), seconds=0.5, **head):
        """Write runs, `{(problem, strategy, seed): costs}`; inf is a failure; the default costs 8."""
        for (problem, strategy, seed), costs in runs.items():
            folder = self.path / name / folder_name(problem, strategy, str(seed))
            folder.mkdir(parents=True)
            size = len(costs) if budget is None else budget
            facts = {"versions": {"python": "3.11"}, "machine": {"cpu": "x"}, "optimum": None, "unit": "seconds"}
            identity = {
                "problem": problem,
                "fingerprint": "f0",
                "strategy": strategy,
                "options": {"heat": 2},
                "seed": seed,
            }
            level = "parts" if strategy in parts else "structure" if strategy in structure else "costs"
            own = {"budget": size, "batch": 2, "default": DEFAULT, "level": level}
            (folder / "run.json").write_text(json.dumps({**identity, **own, **facts, **head}))
            if len(costs):
                lines = (row(i, cost, seconds).line() for i, cost in enumerate(costs, start=1))
                (folder / "rows.csv").write_text(HEADER + "".join(lines))
            if ended:
                (folder / "end.json").write_text(json.dumps({"reason": ended, "evaluations": len(costs)}))
        return self

    def with_digests(self, problem, strategy, *digests):
        """Change the digests of a run's rows."""
        log = self.folder(problem, strategy) / "rows.csv"
        fields = [line.split(",") for line in log.read_text().splitlines()[1:]]
        lines = (",".join([f[0], digest, *f[2:-1], ""]) for f, digest in zip(fields, digests, strict=True))
        log.write_text(HEADER + "".join(map(checksummed, lines)))

    def finals(self, problem, **finals):
        """Return runs of each strategy that end at these costs, after one evaluation of the default."""
        return {(problem, name, i): [DEFAULT, cost] for name, costs in finals.items() for i, cost in enumerate(costs)}

    def folder(self, problem, strategy, seed=0, name="s"):
        return self.path / name / folder_name(problem, strategy, str(seed))

    def data(self, name="s"):
        return read_study(name, self.path)

    def judgement(self, name="s"):
        return judge(self.data(name).runs, np.random.default_rng(0))

    def page(self, name="s", other=None):
        return page(self.data(name), self.data(other) if other else None)

    def html(self, name="s"):
        return html(self.page(name))


def row(number, cost, seconds):
    failed = not np.isfinite(cost)
    status, reason = (Status.TIMEOUT, "took too long") if failed else (Status.OK, "")
    return Row(number, f"{hash(cost) % 16**16:016x}", float(cost), status, seconds, 0.25, "010", reason)


@pytest.fixture(scope="session")
def studies_in():
    """Return what makes studies in a folder."""
    return Studies


@pytest.fixture
def studies(tmp_path):
    return Studies(tmp_path)


@pytest.fixture
def drawn():
    """Say that a test wants figures."""


@pytest.fixture(autouse=True)
def quick(monkeypatch, request):
    """Draw few bootstrap samples, and no figure, which takes seconds, unless a test says so."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(figures, "FIGURES", {})
    for module in (judgement, rankings):
        monkeypatch.setattr(module, "SAMPLES", 100)
