"""What adapters do beyond the contract, how they code candidates; and every optimizer of every library."""

from __future__ import annotations

import inspect
import itertools
import logging
import signal
import subprocess
import sys

import numpy as np
import pytest

from bbo_strategies.adapters.adapter import Adapter, Coding
from bbo_strategies.adapters.nevergrad_optimizers import NEEDS, SEQUENTIAL, UNUSABLE
from bbo_strategies.adapters.optuna_samplers import SAMPLERS, Optuna
from bbo_suite import Constraint, Moves, Space, Task, UserError, choice, product, scale
from bbo_suite.conformance.strategy_rules import play_task, spaces, uneven
from bbo_suite.registry import Registry
from bbo_suite.testing import start

from ..peers import PEERS, peer


def player(name, space, budget=60, seed=0, default=None):
    default = np.zeros(len(space), int) if default is None else default
    try:
        strategy = peer(name)
    except UserError as error:
        pytest.skip(str(error))
    task = Task("test", space, default, "seconds", None)
    return strategy(task, budget, np.random.default_rng(seed), strategy.Options())


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * n.startswith("optuna:")) for n in PEERS])
def test_default_is_first_and_seeds_differ(name):
    space = spaces()["choices and scales"]
    default = np.array([3, 0, 1, 2, 7])
    rows = []
    for seed in (0, 1):
        strategy = player(name, space, seed=seed, default=default)
        first = strategy.ask(8)
        assert first[0].tolist() == default.tolist()
        strategy.tell(first, 1 + first.sum(axis=1).astype(float))
        rows.append(np.concatenate([first, strategy.ask(8)]))
    assert not np.array_equal(*rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["optuna:NSGAIISampler", "nevergrad:TwoPointsDE", "pymoo:GA", "gomea:LinkageTree"])
def test_it_finds_better_candidates_than_random_search(name):
    space = product(*(choice(f"c{i}", "ab") for i in range(40)))
    strategy, best, done = player(name, space, 600, default=np.ones(40, int)), np.inf, 0
    while done < 600:
        rows = strategy.ask(20)
        values = 1.0 + rows.sum(axis=1)
        best, done = min(best, values.min()), done + len(rows)
        strategy.tell(rows, values)
    drawn = 1 + space.sample(600, np.random.default_rng(0)).sum(axis=1).min()
    assert best < drawn


class Recorder(Adapter):
    """Proposes the default and records which costs it learns."""

    def start(self, batch):
        self.learned = []

    def propose(self, n):
        return np.repeat(self.coding.default[None], n, axis=0)

    def learn(self, costs):
        self.learned += costs


def test_costs_are_multiples_of_the_defaults_and_failures_cost_twice_the_worst():
    space = spaces()["booleans"]
    for values, learned in (([np.inf, 4e-9, 6e-9, 8e-9], [4.0, 1.0, 1.5, 2.0]), ([np.inf, np.inf], [1.0, 1.0])):
        adapter = start(Recorder, space, 100)
        adapter.tell(adapter.ask(len(values)), np.array(values))
        assert adapter.learned == learned
    adapter.tell(adapter.ask(2), np.array([4.0, np.inf]))
    assert adapter.learned[2:] == [1.0, 2.0]


def test_a_sampler_that_has_tried_everything_ends_the_run():
    for name in ("optuna:GridSampler", "optuna:BruteForceSampler"):
        strategy, seen = player(name, product(choice("c", "abc"), choice("d", "ab"))), []
        while len(rows := strategy.ask(2)):
            seen += rows.tolist()
            strategy.tell(rows, np.ones(len(rows)))
            assert len(seen) < 20
        assert len({tuple(row) for row in seen}) == 6, name


def test_impossible_settings_are_refused_in_one_sentence():
    with pytest.raises(UserError, match="at most 100,000"):
        player("optuna:GridSampler", product(*(choice(f"c{i}", "ab") for i in range(60)))).ask(1)
    with pytest.raises(UserError, match="seeds itself by the clock"):
        Registry().strategy("nevergrad:CmaFmin2")


def test_gomea_refuses_what_its_library_cannot_search():
    with pytest.raises(UserError, match="two or more parameters"):
        player("gomea:LinkageTree", spaces()["one parameter"]).ask(1)


@pytest.mark.slow
def test_opentuner_prints_nothing_and_leaves_no_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    formatter, strategy = logging.Formatter, player("opentuner:AUCBanditMetaTechniqueA", spaces()["booleans"])
    for _ in range(3):
        rows = strategy.ask(20)
        strategy.tell(rows, 1.0 + rows.sum(axis=1))
    assert logging.Formatter is formatter
    assert not list(tmp_path.iterdir()) and capfd.readouterr() == ("", "")


def test_a_missing_library_is_reported_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(SAMPLERS, "CmaEsSampler", SAMPLERS["CmaEsSampler"]._replace(modules=("no_such_module",)))
    Optuna.variant.cache_clear()
    with pytest.raises(UserError, match="needs no_such_module"):
        Registry().strategy("optuna:CmaEsSampler")
    Optuna.variant.cache_clear()


@pytest.mark.slow
def test_listing_names_imports_no_library_but_nevergrad():
    code = (
        "import sys; from bbo_suite.cli import catalogue; from bbo_suite.registry import Registry\n"
        "items = catalogue.strategies(Registry())\n"
        "facts = [catalogue.facts(Registry(), name) for name in ('optuna', 'pymoo')]\n"
        "assert 'optuna:TPESampler' in facts[0]['names']\n"
        "assert {'optuna:NAME', 'nevergrad:NAME', 'pymoo:NAME'} <= {item['id'] for item in items}\n"
        "assert not {'optuna', 'nevergrad', 'pymoo'} & set(sys.modules), 'loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", spaces())
def test_any_indices_decode_to_allowed_candidates(name):
    space, rng = spaces()[name], np.random.default_rng(0)
    coding = Coding(space, space.sample(1, rng)[0])
    free = rng.integers(-1, coding.sizes + 1, (300, len(coding.sizes)))
    configs = coding.decode(free)
    assert space.allowed(space.check(configs)).all()


@pytest.mark.parametrize("name", spaces())
def test_allowed_candidates_decode_to_themselves(name):
    space, rng = spaces()[name], np.random.default_rng(0)
    rows = space.sample(200, rng)
    coding = Coding(space, rows[0])
    assert np.array_equal(coding.decode(rows[:, Moves(space).movable]), rows)
    assert np.array_equal(coding.decode(coding.default[None])[0], rows[0])


def test_a_forbidden_combination_becomes_the_nearest_row():
    tied = Constraint((0, 1), lambda rows: rows.sum(axis=1) < 4)
    space = product(scale("x", range(4)), scale("y", range(5)), choice("c", "abc"), constraints=[tied])
    coding = Coding(space, np.zeros(3, int))
    table = [row for row in itertools.product(range(4), range(5)) if sum(row) < 4]
    for x, y in itertools.product(range(4), range(5)):
        apart = [((x != a) + (y != b), abs(x - a) + abs(y - b)) for a, b in table]
        a, b, _ = coding.decode(np.array([[x, y, 1]]))[0].tolist()
        assert ((x != a) + (y != b), abs(x - a) + abs(y - b)) == min(apart)


def test_parameters_that_cannot_change_are_left_out():
    space = Space([1, 5, 1, 2])
    coding = Coding(space, np.array([0, 3, 0, 1]))
    assert coding.sizes.tolist() == [5, 2]
    assert coding.decode(np.array([[4, 0]])).tolist() == [[0, 4, 0, 0]]


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
@pytest.mark.parametrize(
    ("library", "every"),
    [
        ("optuna", 1),
        ("nevergrad", 5),
        pytest.param("nevergrad", 1, marks=pytest.mark.thorough),
        ("pymoo", 1),
        ("gomea", 1),
        ("opentuner", 1),
    ],
)
def test_every_name_runs_or_is_refused_for_a_stated_reason(library, every):
    """The names that fail without a stated reason are printed with what happened."""
    signal.signal(signal.SIGPROF, too_long)  # other processes may keep the machine busy
    wrong = {}
    for name in Registry().strategies()[library]().variants()[::every]:
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
