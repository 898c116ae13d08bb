"""Every optimizer of every library either runs, and can be repeated, or is refused for a stated reason."""

from __future__ import annotations

import inspect
import signal

import numpy as np
import pytest

from bbo_strategies.adapters.nevergrad_optimizers import NEEDS, SEQUENTIAL, UNUSABLE
from bbo_strategies.adapters.optuna_samplers import SAMPLERS
from bbo_suite import UserError
from bbo_suite.conformance.toy_tasks import play_task, spaces, uneven
from bbo_suite.registry import Registry

SECONDS = 60


def rows_of(strategy):
    return np.concatenate([rows for rows, _ in play_task(strategy, spaces()["choices and scales"], uneven, 20, 5)])


def complaint(name):
    """Return why a strategy cannot be run, nothing if it can, and "missing" if it needs what is not installed."""
    try:
        strategy = Registry().strategy(name)
    except UserError as error:
        return "missing" if "not installed" in str(error) else "refused"
    try:
        first, again = rows_of(strategy), rows_of(strategy)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if np.array_equal(first, again) else "two runs differ"


def too_long(*_):
    raise TimeoutError(f"not done in {SECONDS} seconds of work")


@pytest.mark.slow
@pytest.mark.parametrize("library", ["optuna", "nevergrad", "pymoo", "gomea"])
def test_every_name_runs_or_is_refused_for_a_stated_reason(library):
    """The names that fail without a stated reason are printed with what happened."""
    signal.signal(signal.SIGPROF, too_long)  # other processes may keep the machine busy
    wrong = {}
    for name in Registry().strategies()[library]().variants():
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        said = complaint(f"{library}:{name}")
        signal.setitimer(signal.ITIMER_PROF, 0)
        listed = library == "nevergrad" and (name in UNUSABLE or name.startswith(tuple(NEEDS)))
        if (said == "refused") != (library == "nevergrad" and name in UNUSABLE) or (said and not listed):
            wrong[name] = said
    missing = {name for name, said in wrong.items() if said == "missing" and library != "nevergrad"}
    assert not {name: said for name, said in wrong.items() if name not in missing}


def test_tables_agree_with_what_the_libraries_offer():
    optuna = pytest.importorskip("optuna")
    public = {name for name, found in vars(optuna.samplers).items() if inspect.isclass(found)}
    public = {name for name in public if name.endswith("Sampler") and not name.startswith("Base")}
    assert public - {"PartialFixedSampler"} == set(SAMPLERS)
    known = set(Registry().strategies()["nevergrad"]().variants())
    assert set(UNUSABLE) | SEQUENTIAL <= known
    assert all(any(name.startswith(start) for name in known) for start in NEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Quad1MetaModelE", "SVM1MetaModelOnePlusOne"])
def test_nevergrads_models_predict_numbers(name):
    assert complaint(f"nevergrad:{name}") == ""
