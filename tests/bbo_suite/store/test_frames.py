"""The evaluations of studies, and their runs, as frames and as files."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from bbo_toys import Toy, perform
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_suite import Status, Study, UserError, load
from bbo_suite.store import rows
from bbo_suite.store.results import summarise
from bbo_suite.store.rows import HEADER, Row, joined_runs, pieces, read_rows
from bbo_suite.store.run_table import COLUMNS, last_rows, read_runs, results_of, write_runs
from bbo_suite.store.stored_run import open_run
from bbo_suite.verify.digests import RunDigest

ROWS = st.lists(
    st.builds(
        Row,
        st.just(1),
        st.text("0123456789e", min_size=16, max_size=16),
        st.floats(0, allow_nan=False),
        st.sampled_from(Status),
        st.floats(0, 1e6, width=32),
        st.floats(0, 1e6, width=32),
        st.text("0123456789-", max_size=30),
        st.text() | st.sampled_from(["NA", "nan", "null", "1", '"', "a,b"]),
    ),
    max_size=5,
)


class Failing(Toy):
    """A problem on which nothing works."""

    def evaluate(self, configs):
        return type(super().evaluate(configs)).of(np.full(len(configs), np.inf))


@pytest.mark.slow
@given(ROWS)
@settings(max_examples=60)
def test_a_frame_holds_exactly_what_the_log_holds(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("run")
    numbered = [Row(i + 1, *[getattr(row, name) for name in Row.__slots__[1:]]) for i, row in enumerate(drawn)]
    (path / "rows.csv").write_text(HEADER + "".join(row.line() for row in numbered), encoding="utf-8")
    known, frame = read_rows(path), rows.frame(path)
    assert len(frame) == len(known)
    for column in ("evaluation", "digest", "value", "config", "reason"):
        assert frame[column].tolist() == [getattr(row, column) for row in known]
    assert frame["status"].tolist() == [row.status.word for row in known]
    assert frame["evaluation_seconds"].tolist() == pytest.approx([row.evaluation_seconds for row in known])


@pytest.fixture
def study(tmp_path):
    for seed in (0, 1):
        perform(tmp_path / "s" / f"run{seed}", seed=seed, budget=30)
    return tmp_path


def test_load_joins_all_runs_and_adds_the_speedup(study):
    frame = load("s", study)
    assert frame.groupby("seed").size().tolist() == [30, 30]
    assert set(frame["strategy"]) == {"toy"} and set(frame["problem"]) == {"toy/small"}
    for _, run in frame.groupby("seed"):
        expected = 4.0 / np.minimum.accumulate(run["value"].to_numpy())
        assert run["speedup"].to_numpy() == pytest.approx(expected)
        assert run["evaluation"].tolist() == list(range(1, 31))
    documented = "problem strategy seed evaluation value status speedup strategy_seconds evaluation_seconds default"
    assert {*documented.split(), "budget", "unit", "level", "parameters"} == set(frame)
    assert set(load("s", study, texts=["config"])) == {*frame, "config"}


@pytest.mark.slow
def test_a_frame_of_a_log_that_is_being_written(study):
    log = study / "s" / "run0" / "rows.csv"
    data = log.read_bytes()
    for cut in range(0, len(data), 37):
        log.write_bytes(data[:cut])
        whole = max(0, data[:cut].count(b"\n") - 1)
        assert len(rows.frame(log.parent)) == whole == summarise(log.parent)["evaluations"]
    assert not summarise(log.parent)["complete"] and summarise(log.parent)["ended"] is None
    log.unlink()  # run.json is there, the first batch not yet
    assert load("s", study)["seed"].tolist() == [1] * 30


def test_a_summary_against_numbers_by_hand(study):
    path = study / "s" / "run1"
    known = read_rows(path)
    told = summarise(path)
    best = min(row.value for row in known)
    assert told["best"] == best and told["speedup"] == 4.0 / best and told["evaluations"] == 30
    assert told["unique"] == len({row.digest for row in known})
    assert told["failed"] == sum(row.status != Status.OK for row in known)
    assert told["strategy_seconds"] == pytest.approx(sum(row.strategy_seconds for row in known))
    assert told["complete"] and told["ended"] == "budget" and told["seed"] == 1 and told["path"] == str(path)
    json.dumps(told, allow_nan=False)


def test_a_run_without_a_working_candidate_has_no_best(tmp_path):
    perform(tmp_path / "s" / "run", Failing(), budget=10)
    told = summarise(tmp_path / "s" / "run")
    assert told["best"] is None and told["speedup"] is None and told["failed"] == 10
    assert load("s", tmp_path)["speedup"].tolist() == [0.0] * 10


def test_types_of_a_frame(study):
    frame = load("s", study)
    assert frame["value"].dtype == np.float64 and frame["evaluation"].dtype == np.int32
    assert isinstance(frame["status"].dtype, pd.CategoricalDtype)
    empty = rows.frame(study)
    assert len(empty) == 0 and empty["value"].dtype == np.float64


@pytest.mark.parametrize(
    "content", [b"hello\nworld\n", HEADER.encode() + b"a,b,c\n", HEADER.encode() + b"1,ab,x,ok,0,0,,,0\n"]
)
def test_a_damaged_log_is_named_and_left_out(study, content, capsys):
    (study / "s" / "run0" / "rows.csv").write_bytes(content)
    assert load("s", study)["seed"].tolist() == [1] * 30
    assert re.fullmatch(r"left out: .*rows.csv is damaged .*; restore it, or run .*\n", capsys.readouterr().err)
    (study / "s" / "run1" / "rows.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"rows\.csv is damaged"):
        load("s", study)


@pytest.mark.parametrize("cut", [0, 1, 50])
def test_a_run_with_an_empty_or_cut_head_is_named_and_left_out(study, cut, capsys):
    head = study / "s" / "run0" / "run.json"
    head.write_bytes(head.read_bytes()[:cut])
    assert load("s", study)["seed"].tolist() == [1] * 30
    assert f"left out: {head} is not valid JSON; restore it, or run the study again" in capsys.readouterr().err
    assert [run["seed"] for run in Study("s", study)] == [1]


@pytest.mark.slow
def test_a_frame_and_a_summary_of_several_pieces(study, monkeypatch):
    path = study / "s" / "run0"
    whole, told = rows.frame(path), summarise(path)
    monkeypatch.setattr("bbo_suite.store.rows.PIECE", 100)
    pd.testing.assert_frame_equal(rows.frame(path), whole)
    assert len(list(pieces(path))) > 10 and summarise(path) == pytest.approx(told)


def test_runs_are_parsed_together_and_a_damaged_one_is_named_alone(study):
    paths = [study / "s" / name for name in ("run0", "run1")]
    (joined,) = joined_runs(paths, ["digest"], [])
    assert (joined.paths, joined.lengths) == (paths, [30, 30])
    single = pd.concat([rows.frame(path, ["digest"]) for path in paths], ignore_index=True)
    pd.testing.assert_frame_equal(joined.frame, single)
    log, errors = paths[0] / "rows.csv", []
    log.write_bytes(log.read_bytes().replace(b",ok,", b',"ok,', 1))  # the quote would swallow lines of the next run
    (joined,) = joined_runs(paths, ["digest"], errors)
    assert joined.paths == [paths[1]] and len(errors) == 1 and str(log) in str(errors[0])


OLD = """problem,strategy,seed,uses_structure,uses_parts,default,best,evaluations,budget,strategy_seconds
p/a,x,0,False,False,8,4,100,100,1.5
p/a,y,0,True,True,8,inf,90,100,
p/a,z,0,True,False,8,2,100,1000,2
"""


@pytest.fixture
def stored(tmp_path):
    for seed in (1, 0):
        perform(tmp_path / "s" / f"run{seed}", seed=seed, budget=30)
    perform(tmp_path / "s" / "failed", Failing(), seed=2, budget=10)
    return tmp_path


def published(folder, text):
    (folder / "p").mkdir(parents=True)
    (folder / "p" / "runs.csv").write_text(text)
    return folder


def test_a_row_holds_what_the_log_holds(stored):
    runs = Study("s", stored).runs()
    assert tuple(runs) == COLUMNS and runs["seed"].tolist() == [0, 1, 2]
    for row, folder in zip(runs.to_dict("records"), ("run0", "run1", "failed"), strict=True):
        rows, run = read_rows(stored / "s" / folder), open_run(stored / "s" / folder)
        assert row["best"] == min(each.value for each in rows)
        assert (row["evaluations"], row["unique"]) == (len(rows), len({each.digest for each in rows}))
        assert row["failed"] == sum(each.status.word != "ok" for each in rows)
        assert row["seconds"] == pytest.approx(sum(each.strategy_seconds for each in rows))
        assert row["digest"] == RunDigest.of(run).digest  # which reads and checks every row
        assert (row["level"], row["status"], row["default"]) == ("costs", "budget", run.head["default"])
    assert runs["speedup"].tolist()[2] == 0.0 and np.isnan(runs["remeasured"]).all()


def test_a_table_is_read_as_it_was_written(stored, tmp_path):
    runs = Study("s", stored).runs()
    runs.loc[0, ["strategy", "remeasured", "speedup"]] = ["=x", 1.5, 1.5]
    write_runs(tmp_path / "runs.csv", runs)
    assert ",'=x," in (tmp_path / "runs.csv").read_text()  # no spreadsheet takes it for a formula
    pd.testing.assert_frame_equal(read_runs(tmp_path / "runs.csv").drop(columns="study"), runs, rtol=0.005)  # seconds


def test_an_older_table_has_flags_instead_of_a_level(tmp_path):
    runs = Study("p", published(tmp_path, OLD)).runs()
    assert runs["level"].tolist() == ["costs", "parts", "structure"]
    assert runs["seconds"].tolist()[::2] == [1.5, 2] and runs["speedup"].tolist() == [2, 0, 4]
    assert runs["status"].tolist() == ["budget", "covered", "covered"] and not runs["digest"].any()


def test_costs_at_earlier_evaluations_are_numbers_that_shorter_runs_lack(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text(
        "problem,strategy,seed,level,default,best,evaluations,best@3\na,b,0,costs,4,2,9,3\na,b,1,costs,4,2,2,"
    )
    assert read_runs(file)["best@3"].fillna(0).tolist() == [3.0, 0.0]


def test_the_results_of_a_table_are_those_of_its_runs(stored):
    runs = Study("s", stored).runs()
    runs.loc[0, "remeasured"] = 1.5
    results = results_of(runs)
    assert [run.best(10**6) for run in results] == runs["best"].tolist()
    assert [run.final_speedup for run in results] == [1.5, *runs["speedup"][1:]]
    assert last_rows(runs)["speedup"].tolist() == (runs["default"] / runs["best"]).tolist()


def test_a_published_study_is_opened_by_name(tmp_path):
    study = Study("p", published(tmp_path, OLD))
    assert [run["strategy"] for run in study] == ["x", "y", "z"] and "p/a" in repr(study)
    with pytest.raises(UserError, match="p-100, p-1000"):
        study.plot("speedup")
    one = Study("p-100", tmp_path)
    assert len(one) == 2 and one.path == tmp_path / "p" and one.plot("speedup")
    for fails in (one.frame, one.plot):
        with pytest.raises(UserError, match="table of runs"):
            fails()
    with pytest.raises(UserError, match="no study 'p-7'"):
        Study("p-7", tmp_path)
