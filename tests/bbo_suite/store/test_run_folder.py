"""The folder of a run and its rows: what is written is read again, and damage is named.

A user without a permission is told so. Root may read everything, so a child process gives its rights up.
"""

import csv
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import tracemalloc
from pathlib import Path

import pytest
from bbo_toys import FACTS, contents, perform, rows_of
from hypothesis import example, given
from hypothesis import strategies as st

from bbo_suite import Problem, Status, Study, UserError, load
from bbo_suite.files.log import without_checksum
from bbo_suite.files.names import folder_name
from bbo_suite.store.folders import has_begun, run_folders
from bbo_suite.store.identity import complete, read_head
from bbo_suite.store.rows import HEADER, Row, parse_rows, read_rows
from bbo_suite.store.run_folder import RunFolder
from bbo_suite.store.stored_run import readable

IDENTITY = {"problem": "toy/small", "fingerprint": "f0", "strategy": "toy", "options": {"size": [1, 2]}}
IDENTITY |= {"seed": 3, "budget": 9, "batch": 2}


def row(evaluation, reason=""):
    return Row(evaluation, f"{evaluation:016x}", 1 / evaluation, Status.OK, 0.5, 0.25, "01", reason)


def written(path, n=3):
    """Make a folder with n rows and return its log's bytes."""
    with RunFolder(path, IDENTITY, FACTS) as folder:
        folder.append([row(i + 1, 'a, "b"é' if i else "") for i in range(n)])
    return (path / "rows.csv").read_bytes()


def refused(path, message, identity=IDENTITY):
    """Check that a folder is refused with that message and that nothing in it was changed."""
    before = contents(path)
    with pytest.raises(UserError, match=message) as caught, RunFolder(path, identity, FACTS):
        pass
    assert contents(path) == before
    return str(caught.value)


def test_rows_are_there_when_append_returns_and_come_back(tmp_path):
    (tmp_path / "a").mkdir()
    with RunFolder(tmp_path / "a" / "b", IDENTITY, FACTS) as folder:
        assert folder.stored == 0 and not folder.ended
        for i in range(4):
            folder.append([row(2 * i + 1), row(2 * i + 2, "why, then?")])
            assert read_rows(folder.path)[-1] == row(2 * i + 2, "why, then?")
    with RunFolder(tmp_path / "a" / "b", IDENTITY, FACTS) as folder:
        assert [r.evaluation for r in folder.rows()] == list(range(1, 9))
        folder.append([row(9)])
        folder.end("budget", 9)
    with RunFolder(tmp_path / "a" / "b", IDENTITY, FACTS) as folder:
        assert folder.ended and folder.stored == 9
    assert read_head(folder.path) == {**IDENTITY, **FACTS}


ZEROS = [b"\0", b"\0" * 4096, b"4,1\0\0"]


@pytest.mark.parametrize(
    "foreign", [*ZEROS, b"hello\n", b"\0x", b"4", b"\n", b"4,x\n", b"5,0000", b"\xff\xfe", HEADER.encode()]
)
def test_foreign_bytes_after_the_rows(tmp_path, foreign):
    data = written(tmp_path)
    (tmp_path / "rows.csv").write_bytes(data + foreign)
    if foreign in (*ZEROS, b"4"):  # a torn line, and what a power loss leaves of data that was not on disk yet
        with RunFolder(tmp_path, IDENTITY, FACTS) as folder:
            folder.append([row(4)])
        assert (tmp_path / "rows.csv").read_bytes() == data + row(4).line().encode()
    else:
        assert "line 5" in refused(tmp_path, "is damaged .* restore")


def test_another_run_in_the_folder(tmp_path):
    written(tmp_path)
    assert "seed 3, not 4" in refused(tmp_path, "another --study", {**IDENTITY, "seed": 4})


def test_another_runs_log_in_the_folder(tmp_path):
    perform(tmp_path / "one", seed=1)
    perform(tmp_path / "two", seed=2)
    (tmp_path / "two" / "rows.csv").write_bytes((tmp_path / "one" / "rows.csv").read_bytes())
    (tmp_path / "two" / "end.json").unlink()
    before = contents(tmp_path / "two")
    with pytest.raises(UserError, match="another candidate for evaluation"):
        perform(tmp_path / "two", seed=2)
    assert contents(tmp_path / "two") == before


HEADS = [None, b"", b"{", b"[]", b"null", b"\xff{}", b'{"problem": "toy/sm', b"\0" * 300]


def replace_head(path, content):
    (path / "run.json").unlink()
    if content is not None:
        (path / "run.json").write_bytes(content)


@pytest.mark.parametrize("content", HEADS)
@pytest.mark.parametrize("ended", [True, False])
def test_a_lost_head_is_written_again_once_the_rows_are_replayed(tmp_path, content, ended):
    perform(tmp_path)
    before = contents(tmp_path)
    replace_head(tmp_path, content)
    if not ended:
        (tmp_path / "end.json").unlink()
    assert perform(tmp_path) and contents(tmp_path).keys() == before.keys()
    assert all(contents(tmp_path)[tmp_path / name] == before[tmp_path / name] for name in ("run.json", "rows.csv"))


def test_a_lost_head_is_not_replaced_by_another_runs(tmp_path):
    perform(tmp_path, seed=1)
    replace_head(tmp_path, b"")
    before = contents(tmp_path)
    with pytest.raises(UserError, match=r"run\.json is missing or damaged"):
        perform(tmp_path, seed=2)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("content", HEADS)
def test_a_lost_head_without_rows_is_a_run_that_has_not_begun(tmp_path, content):
    written(tmp_path)
    (tmp_path / "rows.csv").unlink()
    replace_head(tmp_path, content)
    written(tmp_path)
    assert read_head(tmp_path) == {**IDENTITY, **FACTS}


@pytest.mark.parametrize("content", HEADS[1:])
def test_a_damaged_end_is_written_again(tmp_path, content):
    perform(tmp_path)
    (tmp_path / "end.json").write_bytes(content)
    assert not complete(tmp_path, 40) and perform(tmp_path) and complete(tmp_path, 40)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_that_refuses_locks_is_named(tmp_path, monkeypatch, code):
    def refuse(file, how):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", refuse)
    with (
        pytest.raises(UserError, match="has no locks"),
        RunFolder(tmp_path, IDENTITY, FACTS),
    ):
        pass


def test_files_are_on_disk_before_they_take_their_names_and_rows_every_few_seconds(tmp_path, monkeypatch):
    synced, clock = [], [0.0]
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    monkeypatch.setattr("bbo_suite.store.run_folder.time.monotonic", lambda: clock[0])
    with RunFolder(tmp_path / "run", IDENTITY, FACTS) as folder:
        for number, seconds in enumerate([1.0, 6.0, 8.0], start=1):
            clock[0] = seconds
            folder.append([row(number)])
        assert synced == [f".run.json.{os.getpid()}", "run", "rows.csv"]
        folder.end("budget", 3)
    assert synced[3:] == ["rows.csv", f".end.json.{os.getpid()}", "run"]


HOLD = """
import sys, pathlib
from bbo_suite.store.run_folder import RunFolder
with RunFolder(pathlib.Path(sys.argv[1]), {"problem": "toy/small", "seed": 3}, {}):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_second_writer_in_another_process_is_refused_until_the_first_is_gone(tmp_path):
    written(tmp_path)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        refused(tmp_path, "another process is writing .*; wait for it or choose another --study")
        other.kill()  # even so, the lock goes with the process
        other.wait()
    with RunFolder(tmp_path, IDENTITY, FACTS) as folder:
        assert folder.stored == 3
        refused(tmp_path, "another process is writing")  # two in one process are two, too
    with RunFolder(tmp_path, IDENTITY, FACTS):
        pass


def no_space(*arguments, **keywords):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("room", [5, 600])
def test_a_full_disk_in_the_middle_of_a_batch(tmp_path, monkeypatch, room):
    perform(tmp_path / "whole")
    write, left = os.write, [room]

    def full(file, data):
        if not left[0]:
            no_space()
        part = bytes(data)[: max(1, min(left[0], 40))]
        left[0] -= len(part)
        return write(file, part)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(UserError, match="No space left on device"):
            perform(tmp_path / "cut")
    assert (tmp_path / "cut" / "rows.csv").stat().st_size == room
    assert perform(tmp_path / "cut")
    assert rows_of(tmp_path / "cut") == rows_of(tmp_path / "whole")


@pytest.mark.slow
def test_resuming_holds_few_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("bbo_suite.store.rows.LINES", 100)
    peaks = []
    for budget in (200, 2_000):
        path = tmp_path / str(budget)
        perform(path, budget=budget, batch=100)
        (path / "end.json").unlink()
        tracemalloc.start()
        assert perform(path, budget=budget, batch=100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_the_end_is_believed_only_while_every_row_is_there(tmp_path):
    perform(tmp_path, budget=20)
    assert complete(tmp_path, 20)
    log = tmp_path / "rows.csv"
    whole = rows_of(tmp_path)
    log.write_bytes(log.read_bytes()[:-200])
    rows = read_rows(tmp_path)
    assert len(rows) < 20 and not complete(tmp_path, len(rows))
    assert perform(tmp_path, budget=20) and rows_of(tmp_path) == whole


def test_rows_beyond_the_budget_are_refused(tmp_path):
    perform(tmp_path, budget=20)
    log = tmp_path / "rows.csv"
    log.write_bytes(log.read_bytes() + row(21).line().encode())
    before = contents(tmp_path)
    with pytest.raises(UserError, match="evaluation 21 is stored"):
        perform(tmp_path, budget=20)
    assert contents(tmp_path) == before


def test_a_reader_never_sees_a_part_of_run_json(tmp_path, monkeypatch):
    """A crash before the new file takes the old one's place leaves the run as if it had not begun."""
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", no_space)
        with pytest.raises(UserError), RunFolder(tmp_path, IDENTITY, FACTS):
            pass
    assert not (tmp_path / "run.json").exists()
    written(tmp_path)


PARTS = st.lists(
    st.text() | st.text(alphabet="ab_-/.=@:é", max_size=8) | st.sampled_from(["a/b", "a--b", "a__b", "_", "..", "x"]),
    min_size=1,
    max_size=3,
)


@given(st.lists(PARTS, max_size=30))
def test_folder_names_tell_ids_apart_and_are_safe(ids):
    distinct = set(map(tuple, ids))
    names = {folder_name(*parts) for parts in distinct}
    assert len(names) == len(distinct)
    for name in names:
        assert name.isascii() and len(name) < 150 and not set(name) & set('/\\:*?"<>| \n\0')
        assert name[0] not in ".-" and name not in ("", ".", "..")


def test_folder_names_that_people_can_read():
    assert folder_name("fusion/mlp-mixer", "annealing", "0") == "fusion--mlp-mixer__annealing__0"
    assert folder_name("toy/small@v5e", "my_strategy", "12") == "toy--small@v5e__my_strategy__12"
    assert folder_name("fusion:/tmp/über.hlo", "x", "0") == "fusion---tmp---ber.hlo__x__0=5ff092ce6ccd"


def test_lines_out_of_order_lost_or_twice_are_found(tmp_path):
    head, *lines = written(tmp_path).splitlines(keepends=True)
    for changed in (
        lines[1:],
        lines[:1] + lines[2:],
        [lines[1], lines[0]],
        lines[:1] + lines,
        [b"".join(lines), b"\n"],
    ):
        (tmp_path / "rows.csv").write_bytes(head + b"".join(changed))
        refused(tmp_path, "rows.csv, line . is damaged")


TEXTS = st.text() | st.text(alphabet=" ,\"\n\r\t\0;'é日\u2028\ud800", max_size=30)
ROWS = st.builds(
    Row,
    st.integers(1, 10**9),
    st.text("0123456789abcdef", min_size=16, max_size=16),
    st.floats(0, allow_nan=False),
    st.sampled_from(Status),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.text("0123456789abcXYZ-,\"'", max_size=30),
    TEXTS,
)


def parsed(line):
    return parse_rows([without_checksum(line)])[0]


@given(ROWS)
@example(Row(1, "0" * 16, float("inf"), Status.TIMEOUT, 0.0, 5e-324, "", '","'))
@example(Row(1, "0" * 16, 5e-324, Status.OK, 1e-9, 1e9, "1-2,3", "a\ud800,\0b"))
@example(Row(1, "0" * 16, 1.7976931348623157e308, Status.OK, 0.1, 0.1, '"', '"'))
def test_a_line_gives_back_its_row(row):
    line = row.line()
    back = parsed(line)
    assert line.count("\n") == 1 and line.endswith("\n") and len(line.splitlines()) == 1
    exact = ("evaluation", "digest", "value", "status", "config")
    assert all(getattr(back, name) == getattr(row, name) for name in exact)
    printable = "".join(c if c.isprintable() else " " for c in row.reason)
    assert back.reason == " ".join(printable.split())
    assert back.strategy_seconds == pytest.approx(row.strategy_seconds, rel=1e-5)
    assert back.evaluation_seconds == pytest.approx(row.evaluation_seconds, rel=1e-5)
    assert back.line() == line


@given(ROWS)
def test_any_reader_of_csv_reads_a_line(row):
    fields = next(csv.reader([row.line()]))
    back = parsed(row.line())
    assert len(fields) == len(HEADER.split(","))
    assert (fields[0], fields[1], float(fields[2])) == (str(row.evaluation), row.digest, row.value)
    assert (fields[6], fields[7]) == (back.config, back.reason)


def test_a_short_log_is_read_without_a_frame(monkeypatch):
    """Pandas takes 5 ms for each, and a study may have thousands."""
    monkeypatch.delattr("pandas.read_csv")
    assert len(parse_rows([f"{n},95e0c70caf8cc336,0.25,ok,1e-06,0.5,01a,," for n in range(1, 11)])) == 10


@pytest.mark.parametrize(
    "line", ["", "1,a,2,ok,0,0,1,", "1,a,2,no,0,0,1,,", "1,a,x,ok,0,0,1,,", "1,a,2,ok,0,0,1,,0", '1,a,2,ok,0,0,",,']
)
def test_other_lines_are_no_rows(line):
    with pytest.raises(ValueError):
        parse_rows([line])


def test_a_line_as_people_see_it():
    row = Row(12, "95e0c70caf8cc336", 0.25, Status.COMPILE_ERROR, 1e-6, 0.5, "01a", 'no "x",\n line 2')
    assert row.line() == '12,95e0c70caf8cc336,0.25,compile_error,1e-06,0.5,01a,"no ""x"", line 2",590fe183\n'


NOBODY = 65534

only_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another")


@pytest.fixture
def study():
    """Yield a folder with a study of two runs that everybody may read: pytest's own folders are for their user only."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        results.chmod(0o755)
        for seed in (0, 1):
            perform(results / "s" / f"run{seed}", seed=seed, budget=20)
        assert len(load("s", results)) == 40 and len(Study("s", results)) == 2  # imports what the child may not read
        yield results


def as_nobody(check):
    """Call a function in a child process that has no rights."""
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            check()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@only_root
@pytest.mark.parametrize("hidden", ["", "run.json", "rows.csv"])
def test_a_run_that_may_not_be_read_is_named_and_left_out(study, hidden, capsys):
    (study / "s" / "run0" / hidden).chmod(0)
    why = rf"cannot read .*run0/{hidden or 'run.json'}: Permission denied"

    def check():
        assert has_begun(study / "s" / "run0") and len(run_folders("s", study)) == 2
        assert load("s", study)["seed"].unique().tolist() == [1]
        assert [run["seed"] for run in Study("s", study)] == [1]
        assert [run.head["seed"] for run in readable(run_folders("s", study))] == [1]
        assert len(re.findall(f"left out: {why}", capsys.readouterr().err)) == 3 - (not hidden)

    as_nobody(check)


@only_root
def test_a_study_that_may_not_be_read_is_named(study):
    (study / "s").chmod(0)

    def check():
        with pytest.raises(UserError, match=r"cannot read .*/s: Permission denied"):
            load("s", study)

    as_nobody(check)


@only_root
def test_a_run_whose_permission_is_lost_while_it_goes_on_keeps_its_rows(study, monkeypatch):
    shutil.rmtree(study / "s")
    study.chmod(0o777)
    monkeypatch.setattr(Problem, "fingerprint", lambda toy: "0" * 16)  # the child may not read the toys' file

    def check():
        def stopped():
            if (study / "s" / "run" / "rows.csv").stat().st_size > 500:
                (study / "s" / "run").chmod(0o500)
            return False

        with pytest.raises(UserError, match=r"cannot write .*/run: Permission denied; fix this, then run the same"):
            perform(study / "s" / "run", stopped=stopped)
        (study / "s" / "run").chmod(0o700)
        assert perform(study / "s" / "run")

    as_nobody(check)
