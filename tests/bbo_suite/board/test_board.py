"""The board: the list stays what it is, standings have the right values, and damaged score files are refused."""

import gzip
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest

from bbo_suite.board import reference, score_file
from bbo_suite.board.reference import ReferenceList, Task, published, reference_list, standings
from bbo_suite.cli.score import sentence as standing_text
from bbo_suite.errors import UserError
from bbo_suite.files.log import checksummed
from bbo_suite.files.writing import acquired
from bbo_suite.registry import Registry
from bbo_suite.runs.runner import Display, run_study
from bbo_suite.site import write
from bbo_suite.site.studies import sources
from bbo_suite.store.folders import LOCK
from bbo_suite.store.run_table import run_tables

BOARD = Path(__file__).parents[3] / "results/board"
FILES = sorted(BOARD.glob(f"*{score_file.END}"))
LIST = reference_list()
OTHER = [name for name, used in LIST.made_with.items() if version(name) != used]


def test_the_list_is_fixed():
    assert LIST.name == "1-ebde33a5", "a list that changes needs another version"
    assert sum(task.real for task in LIST.tasks) == 8
    assert LIST.budgets == [50, 200, 1_000]


def test_every_published_strategy_has_all_its_runs():
    for _, runs in published().groupby(["strategy", "problem", "budget"]):
        assert sorted(runs["seed"]) == list(range(LIST.seeds))


def test_a_published_strategy_may_have_any_name(monkeypatch, tmp_path):
    file = tmp_path / "published.csv.gz"
    published().replace({"strategy": {"random": "null"}}).to_csv(file, index=False)
    monkeypatch.setattr(reference, "PUBLISHED", file)
    assert "null" in {*published.__wrapped__()["strategy"]}


def toy(**best):
    """Return runs of strategies, two a task, from costs by strategy: `(first task, second task, third)`."""
    rows = [
        (name, level, task, 10, seed, costs[place])
        for name, (level, costs) in best.items()
        for place, task in enumerate(("a/1", "a/2", "b/1"))
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["strategy", "level", "problem", "budget", "seed", "best"])


TOY = ReferenceList(
    1, 2, 1, {}, tuple(Task(name, "", name == "b/1", (10,), 2.0, 1.0) for name in ("a/1", "a/2", "b/1")), "x"
)


def test_a_share_is_of_the_best_known_gain_and_families_count_alike():
    worse, better = standings(toy(low=("costs", (2, 1, 1.6)), high=("parts", (1, 1, 1))), TOY)[::-1]
    assert (better.share[0], better.rank, better.among) == (1, (1, 1, 1), (1, 2))
    assert worse.share == pytest.approx((0.375,) * 3)  # families: (0 + 1) / 2 and .25
    assert (worse.rank, worse.among) == ((2, 2, 2), (1, 1))
    assert (worse.simulated, worse.real) == pytest.approx((0.5, 0.25))


def test_a_strategy_that_ends_behind_the_default_is_told_how_not_to():
    level, behind = standings(toy(low=("costs", (3, 3, 2)), high=("costs", (2, 2, 2))), TOY)
    assert behind.share[0] == pytest.approx(-1 / 6)  # on one of two families the speedup is 2 / 3
    assert standing_text(behind).endswith("the default, which a search may evaluate first")
    assert level.share[0] == 0 and "default" not in standing_text(level)


def test_a_strategy_that_lacks_a_run_has_no_standing_and_a_failure_counts_as_nothing():
    runs = toy(low=("costs", (2, 1, float("inf"))), high=("costs", (1, 1, 1)))
    assert standings(runs, TOY)[1].real == 0
    assert [each.strategy for each in standings(runs[1:], TOY)] == ["high"]


def test_the_example_on_the_board_is_that_of_the_readme():
    assert (BOARD / "hillclimb.py").read_text() in (BOARD.parents[1] / "README.md").read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_score_files_are_whole(file):
    assert file.stat().st_size < 100_000
    assert file.with_name(file.name.removesuffix(score_file.END) + ".py").exists()
    score_file.read(file, LIST)


@pytest.mark.slow
@pytest.mark.skipif(bool(OTHER), reason=f"the list's tasks are others with this version of {OTHER}")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_score_files_can_be_made_again(file):
    source = file.with_name(file.name.removesuffix(score_file.END) + ".py")
    runs, registry = score_file.read(file, LIST), Registry((source,))
    assert all(equal for _, equal in score_file.made_again(file, runs, registry, LIST))


def changed(lines):
    return [lines[0], lines[1].replace("costs", "parts"), *lines[2:]]


def of_another_list(lines):
    return [lines[0], *(checksummed(line[:-9].replace(LIST.name, "0-abcdef12")) for line in lines[1:])]


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (changed, "line 2 was changed after it was written"),
        (of_another_list, "is of reference list 0-abcdef12, and this version has 1-"),
        (lambda lines: lines[:-1], "lacks the run of"),
        (lambda lines: ["a,b\n", "1,2\n"], "is not a score file"),
        (lambda lines: [], "is not a score file"),
        (lambda lines: [lines[0].replace("default,best", "best,default"), *lines[1:]], "is not a score file"),
        (lambda lines: [lines[0].replace("failed,", ""), *lines[1:]], "has rows with other columns than its header"),
        (lambda lines: [*lines[:-1], checksummed("a,b,")], "has rows with other columns than its header"),
        (lambda lines: lines[:1], "has no runs"),
    ],
)
def test_other_files_are_refused(tmp_path, edit, sentence):
    file = tmp_path / "hillclimb-runs.csv"
    file.write_text("".join(edit((BOARD / "hillclimb-runs.csv").read_text().splitlines(keepends=True))))
    with pytest.raises(UserError, match=sentence):
        score_file.read(file, LIST)


@pytest.mark.parametrize("packed", [False, True])
def test_the_site_leaves_out_a_score_file_that_was_changed(tmp_path, capsys, packed):
    lines = (BOARD / "hillclimb-runs.csv").read_text().splitlines(keepends=True)
    file = tmp_path / "mine" / f"hillclimb-runs.csv{'.gz' * packed}"
    for text, found in ((lines, 3), (changed(lines), 0)):
        write_bytes = gzip.compress if packed else bytes
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(write_bytes("".join(text).encode()))
        assert len(sources(tmp_path)) == found
    assert f"{file}, line 2 was changed after it was written; write it again by `score`" in capsys.readouterr().err


def test_another_source_is_refused(tmp_path):
    source = tmp_path / "hillclimb.py"
    source.write_text((BOARD / "hillclimb.py").read_text() + "\n# another\n")
    shutil.copy(BOARD / "hillclimb-runs.csv", tmp_path)
    runs = score_file.read(tmp_path / "hillclimb-runs.csv", LIST)
    with pytest.raises(UserError, match="was made by other source of hillclimb"):
        next(score_file.made_again(tmp_path / "hillclimb-runs.csv", runs, Registry((source,)), LIST))


def test_a_run_that_is_made_again_must_have_the_level_and_the_best_cost_of_the_file():
    source, listed = BOARD / "hillclimb.py", replace(LIST, tasks=[t for t in LIST.tasks if t.family == "ehrlich"])
    runs = score_file.read(BOARD / "hillclimb-runs.csv", LIST)
    for change, holds in (({}, True), ({"best": runs["best"] / 2}, False), ({"level": "parts"}, False)):
        changed = runs.assign(**change)
        found = score_file.made_again(BOARD / "hillclimb-runs.csv", changed, Registry((source,)), listed)
        assert [equal for _, equal in found] == [holds]


def test_code_that_looks_like_a_number_stays_text(tmp_path):
    header, *lines = (BOARD / "hillclimb-runs.csv").read_text().splitlines(keepends=True)
    code = lines[0].split(",")[-3]
    file = tmp_path / "hillclimb-runs.csv"
    file.write_text("".join([header, *(checksummed(line[:-9].replace(code, "00123456789012e4")) for line in lines)]))
    assert {*score_file.read(file, LIST)["code"]} == {"00123456789012e4"}


@pytest.mark.slow
def test_the_site_shows_the_board_first(tmp_path):
    (tmp_path / "results/board").mkdir(parents=True)
    for table in run_tables(BOARD):
        runs = pd.read_csv(table, dtype=str, keep_default_na=False)
        runs[runs["budget"] == "50"].to_csv(tmp_path / "results/board" / table.name, index=False)
    page = write(tmp_path / "results", tmp_path / "site").read_text(encoding="utf-8")
    first = page.index("The board: 16 tasks of reference list 1")
    assert first < page.index('id="answer"')
    table = page[first : page.index("</table>", first)]
    assert table.index("mbo") < table.index("local *") < table.index("graybox **")  # by what they know
    assert "hillclimb" in table
    assert "rank 11 (11 to 11)" in table


@pytest.mark.slow
def test_the_site_of_a_single_strategy_shows_its_rank_among_the_published_ones(tmp_path):
    (tmp_path / "results/board").mkdir(parents=True)
    shutil.copy(BOARD / "hillclimb-runs.csv", tmp_path / "results/board")
    page = write(tmp_path / "results", tmp_path / "site").read_text(encoding="utf-8")
    first = page.index("The board: 16 tasks of reference list 1")
    table = page[first : page.index("</table>", first)]
    assert "rank 11 (11 to 11)" in table and "graybox **" in table


FAILS = """
from bbo_suite import Strategy
class S(Strategy):
    def __init__(self, *given):
        super().__init__(*given)
        raise RuntimeError("broken")
    def ask(self, n): ...
    def tell(self, configs, values): ...
"""
DIES = """
import os, signal
from bbo_suite import Strategy
class S(Strategy):
    def ask(self, n): os.kill(os.getpid(), signal.SIGKILL)
    def tell(self, configs, values): ...
"""


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (None, "there is no plugin file"),
        ("x = 1\n", "defines no subclass of bbo_suite.Strategy"),
        pytest.param(FAILS, "raised RuntimeError in its constructor (mine.py, line 6): broken", marks=pytest.mark.slow),
    ],
)
def test_a_strategy_that_cannot_be_scored_is_one_sentence(suite, tmp_path, source, sentence):
    file = tmp_path / "mine.py"
    if source is not None:
        file.write_text(source)
    done = suite("score", file, "--results", "r", "--quiet")
    assert done.code == 1
    assert sentence in done.err and "a first run" not in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "r/board").exists()


@pytest.mark.slow
def test_a_strategy_that_ends_its_process_is_one_sentence(tmp_path):
    (tmp_path / "mine.py").write_text(DIES)
    command = [sys.executable, "-m", "bbo_suite", "score", "mine.py", "--results", "r", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "its process ended by SIGKILL" in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "r/board").exists()


def test_a_copy_of_a_run_beside_it_is_no_part_of_the_score_file(tmp_path):
    task = next(task for task in LIST.tasks if task.family == "ehrlich")
    listed = replace(LIST, seeds=1, tasks=(replace(task, budgets=(50,)),))
    registry = Registry((BOARD / "hillclimb.py",))
    planned = score_file.studies(registry, "hillclimb", listed, tmp_path)
    for study in planned:
        assert not run_study(study, 1, Display()).errors
    made = planned[0].path / planned[0].runs[0].folder
    shutil.copytree(made, made.with_name("copy"))
    score_file.write(tmp_path / "runs.csv", planned, registry, "hillclimb", listed)
    assert len(score_file.read(tmp_path / "runs.csv", listed)) == 1


@pytest.mark.parametrize(
    ("name", "sentence"), [("my strategy", "must be letters, digits and any of"), ("m" * 240, "is too long")]
)
def test_a_file_whose_name_cannot_name_a_folder_is_one_sentence(tmp_path, name, sentence):
    file = tmp_path / f"{name}.py"
    shutil.copy(BOARD / "hillclimb.py", file)
    with pytest.raises(UserError, match=f"^the name of a strategy's file, '{name}', {sentence}"):
        score_file.studies(Registry((file,)), name, LIST, tmp_path / "r")


@pytest.mark.slow
def test_a_score_that_runs_already_is_not_told_to_choose_an_option_that_score_does_not_have(suite, tmp_path):
    registry = Registry((BOARD / "hillclimb.py",))
    first, *_ = score_file.studies(registry, "hillclimb", LIST, tmp_path / "r")
    first.path.mkdir(parents=True)
    with acquired(first.path / LOCK, "it"):
        done = suite("score", BOARD / "hillclimb.py", "--results", "r", "--quiet")
    assert done.code == 1 and "another process is writing" in done.err
    assert "wait for it or choose another --results" in done.err


EDITS = """
from pathlib import Path
from bbo_suite import Strategy
class S(Strategy):
    def ask(self, n):
        Path(__file__).open("a").write("# edited\\n")
        return self.task.space.sample(n, self.rng)
    def tell(self, configs, values): ...
"""


@pytest.mark.slow
def test_a_strategy_that_is_edited_while_it_runs_gets_no_score(suite, tmp_path):
    (tmp_path / "mine.py").write_text(EDITS)
    done = suite("score", "mine.py", "--results", "r", "--quiet")
    assert done.code == 1 and "mine.py was edited while it ran; run the same command again" in done.err
    assert not (tmp_path / "r/board").exists()


def test_a_score_file_without_its_source_says_where_it_is_looked_for(suite, tmp_path):
    shutil.copy(BOARD / "hillclimb-runs.csv", tmp_path)
    done = suite("validate", "hillclimb-runs.csv")
    assert done.code == 1
    assert "hillclimb-runs.csv needs its source: copy it to hillclimb.py, or name it by --plugin" in done.err


def test_digests_are_of_studies(suite):
    refused = suite("validate", "mine-runs.csv", "--digests", "published.csv")
    assert refused.code and "leave out --digests" in refused.err
