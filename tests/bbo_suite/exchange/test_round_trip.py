"""What is exported and imported again is what was stored."""

import csv
import dataclasses
import math
import weakref

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bbo_suite import Status, UserError, load
from bbo_suite.exchange.importing import FILLED
from bbo_suite.files.reading import read_json
from bbo_suite.store.rows import Row, read_rows
from bbo_suite.store.stored_run import StoredRun

from .stored_runs import HEAD, exported, identity, imported, rows, store

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
