"""What is exported, seen by the tools that it is for, or by readers of ours that were written for their files.

What is exported and imported again is what was stored.
"""

import csv
import dataclasses
import json
import math
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bbo_suite
from bbo_suite import Space, Status, UserError, load
from bbo_suite.exchange.formats import export, unpacked
from bbo_suite.exchange.importing import FILLED
from bbo_suite.files.reading import read_json
from bbo_suite.registry import Registry
from bbo_suite.store.rows import TEXTS, Row, read_rows
from bbo_suite.store.stored_run import StoredRun

from .stored_runs import HEAD, exported, identity, imported, rows, store

PLUGIN = Path(__file__).with_name("hostile.py")
KEYS = ["strategy", "seed", "evaluation"]


@pytest.fixture(scope="module", params=[True, False], ids=["all", "improvements"])
def study(request, tmp_path_factory):
    """Return a folder of results with a study of two strategies on the hostile problem, and whether it has all rows."""
    results = tmp_path_factory.mktemp("results")
    settings = {"budget": 60, "batch": 20, "repeats": 2, "study": "s", "results": results, "jobs": 1}
    bbo_suite.run(["random", "exhaustive"], "hostile/a", plugins=[PLUGIN], keep_all=request.param, **settings)
    return results, request.param


@pytest.fixture
def written(study):
    """Return a function that exports the study once."""
    results, _ = study

    def path(name):
        there = results / f"file-{name}"
        return there if there.exists() else exported(results, name, [PLUGIN])[0]

    return path


def test_optuna_gets_every_candidate_that_is_known_and_gives_it_back(study, written):
    optuna = pytest.importorskip("optuna")
    results, whole = study
    frame = load("s", results, TEXTS)
    known = frame[frame["config"] != ""]
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(written("optuna"))))
    trials = [
        t for s in optuna.get_all_study_names(storage) for t in optuna.load_study(study_name=s, storage=storage).trials
    ]
    assert sorted(t.value for t in trials if t.value is not None) == sorted(
        known.loc[np.isfinite(known["value"]), "value"]
    )
    assert Counter(t.user_attrs["status"] for t in trials) == Counter(known["status"].astype(str))
    assert all(len(t.params) == 5 for t in trials)
    if "back" not in [path.name for path in results.iterdir()]:
        imported(results, written("optuna"), plugins=[PLUGIN])
    ours, theirs = (load(name, results, TEXTS).sort_values(KEYS, ignore_index=True) for name in ("s", "back"))
    columns = ["value", "digest", "status", "reason", "config"] if whole else ["speedup"]
    for column in columns:
        assert ours[column].tolist() == theirs[column].tolist()


@pytest.mark.parametrize("name", ["t4", "kernel-tuner"])
def test_a_recorded_space_of_it_costs_the_same(study, written, name):
    results, _ = study
    frame = load("s", results, TEXTS)
    known = frame[(frame["config"] != "") & (frame["status"] == "ok")]
    files = list(written(name).iterdir())
    assert len(files) == (4 if name == "t4" else 1)
    problems = [Registry().problem(f"recorded:{file}") for file in files]
    best = min(problem.optimum for problem in problems)
    assert best == pytest.approx(known["value"].min(), rel=1e-12)
    if name == "kernel-tuner":
        assert problems[0].optimum == best
        assert len(read_json(files[0])["cache"]) == frame.loc[frame["config"] != "", "digest"].nunique()


@pytest.mark.parametrize("name", ["t4", "kernel-tuner", "optuna"])
def test_what_is_left_out_is_said_in_one_line(study, tmp_path, name):
    results, whole = study
    left_out = int((load("s", results, TEXTS)["config"] == "").sum())
    _, notes = export("s", name, tmp_path / "out", results, Registry((PLUGIN,)))
    if whole:
        assert notes == [] and left_out == 0
    else:
        (note,) = notes
        assert note.startswith(f"{left_out:,} of 240 ") and "--all-configs" in note


def test_a_study_of_another_content_cannot_be_named(study, tmp_path):
    results, _ = study
    other = tmp_path / "hostile.py"
    other.write_text(PLUGIN.read_text(encoding="utf-8").replace("/ 7", "/ 8"), encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot be named; export --to csv"):
        export("s", "t4", tmp_path / "out", results, Registry((other,)))
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.part").exists()


@pytest.mark.slow
def test_iohinspector_reads_every_run(study, written):
    iohinspector = pytest.importorskip("iohinspector")
    results, _ = study
    manager = iohinspector.DataManager()
    manager.add_folder(str(written("ioh")))
    frame = load("s", results, TEXTS)
    assert sorted(manager.overview["best_y"]) == sorted(
        frame.groupby(["strategy", "seed"], observed=True)["value"].min()
    )
    data = manager.load(monotonic=False)
    assert sorted(data["raw_y"]) == sorted(frame["value"])


def test_the_schema_of_t4(written):
    jsonschema, kernel_tuner = pytest.importorskip("jsonschema"), pytest.importorskip("kernel_tuner")
    folder = Path(kernel_tuner.__file__).parent / "schema" / "T4" / "1.0.0"
    for file in written("t4").iterdir():
        for schema in folder.glob("*.json"):
            jsonschema.validate(read_json(file), json.loads(schema.read_text()))


@pytest.mark.slow
def test_kernel_tuner_searches_its_cache(written):
    kernel_tuner = pytest.importorskip("kernel_tuner")
    (file,) = written("kernel-tuner").iterdir()
    cache = read_json(file)
    names = cache["tune_params_keys"]

    def there(values):
        return ",".join(str(values[name]) for name in names) in cache["cache"]

    found, _ = kernel_tuner.tune_kernel(
        cache["kernel_name"],
        "",
        "",
        [],
        cache["tune_params"],
        restrictions=there,
        simulation_mode=True,
        cache=str(file),
    )
    assert len(found) >= len([row for row in cache["cache"].values() if not isinstance(row["time"], str)])


@given(st.lists(st.integers(2, 300), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_candidate_is_unpacked_without_its_space(sizes, seed):
    space = Space(sizes)
    (row,) = space.sample(1, np.random.default_rng(seed))
    run = StoredRun(Path("here"), {})
    assert unpacked(run, space.pack(row), space.digests(row[None])[0]).tolist() == row.tolist()
    with pytest.raises(UserError, match="here is damaged: the candidate"):
        unpacked(run, space.pack(row), "0" * 16)


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("evaluation,value\n1,4\n", ("--strategy", "theirs", "--seed", 7), ("theirs", 7)),
        ("evaluation,value\n1,4\n", (), ("x", 0)),
        ("strategy,seed,evaluation,value\nown,3,1,4\n", ("--strategy", "own"), ("own", 3)),
        ("strategy,seed,evaluation,value\nown,3,1,4\n", ("--strategy", "theirs"), "is of strategy 'own', not 'theirs'"),
        ("strategy,seed,evaluation,value\nown,3,1,4\n", ("--seed", 4), "is of seed '3', not 4"),
    ],
)
def test_who_made_an_imported_run_is_in_the_file_or_given(suite, tmp_path, text, given, said):
    (tmp_path / "x.csv").write_text(text)
    done = suite("import", tmp_path / "x.csv", "--problem", "hostile/a", "--plugin", PLUGIN, *given)
    if isinstance(said, str):
        assert done.code == 1 and said in done.err
    else:
        (path,) = Path("results").glob("x/*/run.json")
        head = read_json(path)
        assert (head["strategy"], head["seed"]) == said


def fingerprint(results):
    return read_json(next(results.glob("s/*/run.json")))["fingerprint"]


@pytest.mark.slow
def test_the_commands(suite, tmp_path, study):
    results, whole = study
    done = suite("export", "s", "--to", "csv", "--results", results, "--out", tmp_path / "x.csv")
    assert done.out == f"{tmp_path / 'x.csv'}\n" and done.err == ""
    again = suite("export", "s", "--to", "csv", "--results", results, "--out", tmp_path / "x.csv")
    assert again.code == 1 and "exists already; remove it or choose another --out" in again.err
    assert "error: . exists already" in suite("export", "s", "--to", "csv", "--results", results, "--out", ".").err
    done = suite("import", tmp_path / "x.csv")
    assert (done.code, done.out, done.err) == (0, f"{Path('results', 'x')}\n", "4 runs imported\n")
    resumed = suite("run", "--study", "x", "--plugin", PLUGIN, "--strategy", "random", "--budget", 60, "--batch", 20)
    assert resumed.code == 1 and "was imported from" in resumed.err and "cannot be resumed" in resumed.err
    (tmp_path / "y.csv").write_text((tmp_path / "x.csv").read_text().replace(fingerprint(results), "other"))
    suite("import", tmp_path / "y.csv")
    mixed = suite(
        "run", "--study", "y", "--plugin", PLUGIN, "--strategy", "random", "--seed", 7, "--budget", 60, "--batch", 20
    )
    assert mixed.code == 1 and "hostile/a with content other, which is not comparable to" in mixed.err
    for format in ("t4", "ioh"):
        done = suite("export", "s", "--to", format, "--results", results, "--plugin", PLUGIN)
        assert Path(done.out.strip()) == results / "s" / "export" / format
        assert ("left out" in done.err) == (format == "t4" and not whole)
    assert suite("export", "nothing", "--to", "csv").code == 1


HOSTILE = st.text(min_size=1, max_size=20) | st.sampled_from(
    [
        "a\nb",
        "a\rb",
        'say "hi", then',
        "x,y;z",
        "=1+1",
        "línea 3",
        "<b>&amp;</b>",
        " ",
        "nan",
        "0",
        "a/../b",
        "\\N",
        "'",
    ]
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(Status),
        st.floats(0, 1e300),
        st.floats(0, 1e6, width=32, allow_subnormal=False),  # seconds are read in single precision
        st.text(max_size=20) | st.sampled_from(["NA", "nan", "null", "1", '"', "a,b"]),
    ),
    min_size=1,
    max_size=6,
)


def drawn_rows(drawn):
    return [
        Row(i, f"{i:016x}", cost if status is Status.OK else math.inf, status, seconds, seconds, "", reason)
        for i, (status, cost, seconds, reason) in enumerate(drawn, start=1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(pytest.param(n, marks=pytest.mark.slow) for n in ("csv", "parquet")), "ioh"])
@given(st.lists(st.tuples(HOSTILE, HOSTILE, ROWS), min_size=1, max_size=3))
@example([("=1+1", "'=1", [(Status.TIMEOUT, 1.0, 0.5, "@SUM(A1)"), (Status.TIMEOUT, 1.0, 0.5, "-2'")])])
@example([("a\rb", "\0", [(Status.OK, 1.0, 0.5, "")]), ("a\rb", "c", [(Status.TIMEOUT, 1.0, 0.5, "\x85x")])])
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_hostile_names_failures_and_numbers_come_back_exactly(name, tmp_path_factory, drawn):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    results = tmp_path_factory.mktemp("results")
    paths = [
        store(results, drawn_rows(rows), problem=problem, strategy=strategy, seed=seed, optimum=(None, 0.5, 1.0)[seed])
        for seed, (problem, strategy, rows) in enumerate(drawn)
    ]
    out, notes = exported(results, name)
    back = imported(results, out)
    assert notes == [] and len(back) == len(paths)
    for path in paths:
        there = back[identity(path)]
        assert read_json(path / "run.json").items() >= {k: read_json(there / "run.json")[k] for k in HEAD}.items()
        ours, theirs = read_rows(path), read_rows(there)
        if name == "ioh":  # numbers only
            ours = [dataclasses.replace(row, digest="", reason="") for row in ours]
        assert theirs == ours


def test_no_text_of_a_csv_table_begins_like_a_formula(tmp_path):
    texts = ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "'=1", "'", "a=1"]
    for seed, text in enumerate(texts):
        failed = [Row(1, "0" * 16, math.inf, Status.TIMEOUT, 0.5, 0.5, "", text)]
        store(tmp_path, failed, problem=text, strategy=text, unit=text, seed=seed)
    with exported(tmp_path, "csv")[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    marked = {"'" + text for text in texts[:5]} | {"'", "a=1"}
    assert all({row[name] for row in rows} == marked for name in ("problem", "strategy", "unit", "reason"))
    assert all(cell[:1] not in tuple("=+-@\t\r") for row in rows for cell in row.values())


def test_imported_runs_are_marked_and_joined_but_neither_overwritten_nor_mixed(tmp_path):
    store(tmp_path, rows(3.0, math.inf, 2.0))
    out, _ = exported(tmp_path, "csv")
    ((_, path),) = imported(tmp_path, out, "t").items()
    told = read_json(path / "run.json")["imported"]
    assert told["source"] == str(out) and "CSV" in told["tool"]
    assert load("t", tmp_path)["speedup"].tolist() == pytest.approx([5 / 3, 5 / 3, 5 / 2])
    with pytest.raises(UserError, match="exists already"):
        imported(tmp_path, out, "t")
    store(tmp_path / "later", rows(1.0), fingerprint="other", seed=5)
    later, _ = exported(tmp_path / "later", "csv")
    with pytest.raises(UserError, match="not comparable to content other"):
        imported(tmp_path, later, "t")
    assert len(list((tmp_path / "t").glob("*/run.json"))) == 1
    assert not list(tmp_path.glob(".importing*"))


def test_a_trajectory_of_improvements_is_filled_in_and_says_so(tmp_path):
    file = tmp_path / "t.csv"
    head = "problem,fingerprint,unit,default,strategy,evaluation,value"
    file.write_text(f"{head}\n" + "".join(f"p,f,seconds,5,s,{i},{v}\n" for i, v in ((2, 3.0), (5, 2.0))))
    ((_, path),) = imported(tmp_path, file, "t").items()
    found = read_rows(path)
    assert [row.value for row in found] == [math.inf, 3.0, 3.0, 3.0, 2.0]
    assert [row.reason == FILLED for row in found] == [True, False, True, True, False]
    assert read_json(path / "run.json")["budget"] == 5


@pytest.mark.parametrize("name", ["csv", "ioh"])
def test_one_run_at_a_time_is_in_memory(tmp_path, name, monkeypatch):
    alive, most = weakref.WeakValueDictionary(), []
    read = StoredRun.frame

    def counted(run):
        frame = read(run)
        alive[id(frame)] = frame
        most.append(len(alive))
        return frame

    monkeypatch.setattr(StoredRun, "frame", counted)
    for seed in range(6):
        store(tmp_path, rows(2.0, 1.0), seed=seed)
    exported(tmp_path, name)
    assert len(most) >= 6 and max(most) <= 2  # one that goes, one that comes
