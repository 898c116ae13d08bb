"""`Study.runs()` and its file `runs.csv`: one row per run, of stored and of published studies."""

import numpy as np
import pandas as pd
import pytest
from bbo_toys import Toy, perform

from bbo_suite import Study, UserError
from bbo_suite.store.rows import read_rows
from bbo_suite.store.run_table import COLUMNS, last_rows, read_runs, results_of, write_runs
from bbo_suite.store.stored_run import open_run
from bbo_suite.verify.digests import RunDigest

OLD = """problem,strategy,seed,uses_structure,uses_parts,default,best,evaluations,budget,strategy_seconds
p/a,x,0,False,False,8,4,100,100,1.5
p/a,y,0,True,True,8,inf,90,100,
p/a,z,0,True,False,8,2,100,1000,2
"""


class Failing(Toy):
    """A problem on which nothing works."""

    def evaluate(self, configs):
        return type(super().evaluate(configs)).of(np.full(len(configs), np.inf))


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
