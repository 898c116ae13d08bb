"""Runs written as the suite writes them, with whatever content a test wants."""

import math

from bbo_suite import Status
from bbo_suite.exchange.formats import export
from bbo_suite.exchange.importing import Import
from bbo_suite.files.reading import read_json
from bbo_suite.registry import Registry
from bbo_suite.store.rows import Row
from bbo_suite.store.run_folder import RunFolder

HEAD = {
    **{"problem": "toy/small", "fingerprint": "ab", "strategy": "pick", "options": {"rate": 0.5}, "seed": 0},
    **{"budget": 9, "batch": 3, "default": 5.0, "optimum": None, "unit": "seconds", "level": "costs"},
}


def row(evaluation, value, status=Status.OK, reason=""):
    config = "0001" if value < math.inf else ""
    digest = "754bff916fa38b73"  # of 0001
    return Row(evaluation, digest, value, status, 0.25, 0.5, config, reason)


def rows(*values):
    """Return the rows of a run with such values."""
    statuses = (Status.OK if value < math.inf else Status.TIMEOUT for value in values)
    return [row(i, value, status) for i, (value, status) in enumerate(zip(values, statuses, strict=True), start=1)]


def store(results, found, **head):
    """Write a run of study `s` and return its folder."""
    path = results / "s" / f"run{len(list(results.glob('s/*')))}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with RunFolder(path, HEAD | head, {"machine": {"cpu": "abacus"}}) as folder:
        folder.append(found)
    return path


def identity(path):
    head = read_json(path / "run.json")
    return head["problem"], head["strategy"], head["seed"]


def exported(results, name, plugins=()):
    """Export study `s` and return the path and the notes."""
    return export("s", name, results / f"file-{name}", results, Registry(tuple(plugins)))


def imported(results, file, study="back", problem=None, plugins=()):
    """Import a file and return the folders by problem, strategy and seed."""
    found = Import(file, study, results, Registry(tuple(plugins)), problem).perform()
    return {identity(path): path for path in found}
