"""`validate --digests` tells whether a study that was made again is the published one."""

import dataclasses
import shutil

import pytest
from bbo_toys import perform

from bbo_suite import UserError
from bbo_suite.exchange.formats import export
from bbo_suite.registry import Registry
from bbo_suite.store.plan import RunName
from bbo_suite.store.rows import HEADER, read_rows
from bbo_suite.store.stored_run import open_run
from bbo_suite.verify.digests import RunDigest, compare, read_digests, write_digests


def folder(results, seed):
    return results / "s" / RunName("toy/small", "toy", seed).folder


def made(results, seeds=(0, 1, 2), **settings):
    for seed in seeds:
        perform(folder(results, seed), seed=seed, **settings)
    return results


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return a folder of results with three runs, and the table of their digests."""
    results = made(tmp_path_factory.mktemp("first"))
    return results, export("s", "digests", results / "digests.csv", results, Registry())[0]


@pytest.fixture
def again(first, tmp_path):
    """Return a copy of the study."""
    shutil.copytree(first[0] / "s", tmp_path / "s")
    return tmp_path


def compared(results, table):
    return compare("s", results, read_digests(table), lambda number, words: None)


def edit(path, place, **changes):
    """Change fields of one row and write the checksum that fits."""
    rows = read_rows(path)
    rows[place] = dataclasses.replace(rows[place], **changes)
    (path / "rows.csv").write_text(HEADER + "".join(row.line() for row in rows))


def test_a_study_made_again_is_the_same_though_its_seconds_differ(first, tmp_path):
    results = made(tmp_path)
    for seed in (0, 1, 2):
        edit(folder(results, seed), 3, strategy_seconds=100.0)
    found = compared(results, first[1])
    assert found.holds and len(found.same) == found.compared == 3
    assert not (found.missing or found.extra or found.unfinished)


@pytest.mark.parametrize("changes", [{"value": 1e9}, {"digest": "0" * 16}])
def test_an_edited_row_is_another_run(first, again, changes):
    edit(folder(again, 1), 0, **changes)
    found = compared(again, first[1])
    assert not found.holds and list(found.different) == [RunName("toy/small", "toy", 1)] and len(found.same) == 2


@pytest.mark.parametrize("key", ["fingerprint", "budget", "batch", "options"])
def test_another_identity_is_another_run(first, again, key):
    run = open_run(folder(again, 0))
    other = dataclasses.replace(run, head=run.head | {key: {"fingerprint": "x", "options": {}}.get(key, 9)})
    assert RunDigest.of(other).digest != RunDigest.of(run).digest


def test_what_only_one_has_is_named_and_the_rest_compared(first, again):
    shutil.rmtree(folder(again, 0))
    (folder(again, 1) / "end.json").unlink()
    made(again, seeds=(7,))
    found = compared(again, first[1])
    assert found.holds and [name.seed for name in found.same] == [2]
    assert ([n.seed for n in found.missing], [n.seed for n in found.unfinished], [n.seed for n in found.extra]) == (
        [0],
        [1],
        [7],
    )
    shutil.rmtree(folder(again, 2))
    assert compared(again, first[1]).compared == 0 and not compared(again, first[1]).holds


def test_a_damaged_run_does_not_hold(first, again):
    log = folder(again, 1) / "rows.csv"
    log.write_text(log.read_text().replace(",ok,", ",no,", 1))
    found = compared(again, first[1])
    assert len(found.damaged) == 1 and "rows.csv, line" in found.damaged[0] and not found.holds


def test_unfinished_runs_are_left_out_of_the_table(again):
    (folder(again, 1) / "end.json").unlink()
    table, notes = export("s", "digests", None, again, Registry())
    assert [name.seed for name in read_digests(table)] == [0, 2]
    assert notes == ["left out: toy on toy/small, seed 1 is not complete"]


def test_a_table_gives_back_what_was_written(tmp_path):
    digests = [RunDigest("a,b\n\udcff", 'say "s"', 3, 10, float("inf"), "ab"), RunDigest("p", "s", 0, 1, 0.1, "cd")]
    write_digests(tmp_path / "t.csv", digests)
    assert list(read_digests(tmp_path / "t.csv").values()) == digests


@pytest.mark.parametrize("text", ["", "problem,strategy\n", "{}", "\0\n"])
def test_a_file_that_is_no_table_is_named(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError, match=r"t.csv is not a table of digests"):
        read_digests(tmp_path / "t.csv")


@pytest.mark.parametrize("line", ["p,s,x,1,1.0,ab", "p,s,0", 'p,s,0,1,1.0,"ab'])
def test_a_damaged_table_is_named(tmp_path, line):
    write_digests(tmp_path / "t.csv", [])
    (tmp_path / "t.csv").write_text(f"{(tmp_path / 't.csv').read_text()}{line}\n")
    with pytest.raises(UserError, match=r"t.csv.* is damaged"):
        read_digests(tmp_path / "t.csv")


def test_the_command(suite, first, again):
    def ran():
        return suite("validate", "s", "--results", again, "--digests", first[1], "--quiet")

    assert (ran().code, ran().out) == (0, "3 of 3 published runs compared: all are the same\n")
    edit(folder(again, 2), 1, value=0.5)
    done = ran()
    assert done.code == 1 and done.out.startswith("FAIL toy on toy/small, seed 2: it differs from the published run")
    assert done.out.endswith("3 of 3 published runs compared: 1 differ\n")
    shutil.rmtree(folder(again, 2))
    done = ran()
    assert (done.code, done.out.splitlines()[0]) == (0, "note missing: toy on toy/small, seed 2")
    assert suite("validate", "s", "--results", again, "--digests", "nowhere.csv").err.startswith("error: cannot read")
    assert suite("import", first[1], "--study", "x").err.endswith("`validate STUDY --digests`\n")
