from pathlib import Path

import pytest

from bbo_suite.store import seed_columns

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize("study, name", [("searches", "search"), ("transfer", "strategy")])
def test_published_runs_are_written_as_they_were_read(study, name, tmp_path):
    published, key = RESULTS / study / "runs.csv", ["task", name, "budget"]
    runs = seed_columns.read(published, key)
    assert len(runs) > 100 and runs["seed"].nunique() > 1
    seed_columns.write(tmp_path / "runs.csv", key, runs)
    before, after = (
        each.sort_values([*key, "seed"])["gain"].tolist()
        for each in (runs, seed_columns.read(tmp_path / "runs.csv", key))
    )
    assert after == pytest.approx(before, rel=1e-3)


def test_without_a_file_there_are_no_runs(tmp_path):
    assert len(seed_columns.read(tmp_path / "runs.csv", ["task"])) == 0
