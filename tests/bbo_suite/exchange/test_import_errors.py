"""A foreign or damaged file is refused in one sentence that names it and the place, and nothing is imported."""

import gzip
import json
import math
import sqlite3

import pytest

from bbo_suite import UserError
from bbo_suite.files.reading import read_json
from bbo_suite.store.rows import read_rows

from .stored_runs import HEAD, exported, imported, rows, store

TABLE = "problem,fingerprint,unit,default,strategy,seed,evaluation,value,status"
GOOD = "p,f,seconds,5,s,0,1,2.0,ok"


def refused(results, file, *parts, **settings):
    with pytest.raises(UserError) as caught:
        imported(results, file, **settings)
    for part in (str(file), *parts):
        assert part in str(caught.value)
    assert not list(results.glob("*/*/run.json")) and not list(results.glob(".importing*"))


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("p,f,seconds,5,s,0,2,1.0", ("line 3 has 8 fields and the header 9", "cut off")),
        ("p,f,seconds,5,s,0,2,x,ok", ("line 3 has 'x' as its value",)),
        ("p,f,seconds,5,s,0,2,nan,ok", ("evaluation 2 at line 3 costs nan",)),
        ("p,f,seconds,5,s,0,2,inf,ok", ("is ok",)),
        ("p,f,seconds,5,s,0,2,1.0,great", ("line 3 has 'great' as its status",)),
        ("p,f,seconds,5,s,0,1,1.0,ok", ("evaluation 1", "follows 1")),
        ("p,f,seconds,5,s,0,1.5,1.0,ok", ("line 3 has '1.5' as its evaluation",)),
        ("p,f,seconds,5,s,-1,1,1.0,ok", ("has '-1' as its seed",)),
        ("p,f,seconds,-5,s,1,1,1.0,ok", ("as its default",)),
        ("p,f,bytes,5,s,0,2,1.0,ok", ("line 3 repeats seed 0 of s on p",)),
        ('p,f,seconds,5,s,0,2,"1.0,ok', ("line 3",)),
    ],
)
def test_a_table_with_a_wrong_line(tmp_path, line, parts):
    file = tmp_path / "t.csv"
    file.write_text(f"{TABLE}\n{GOOD}\n{line}\n")
    refused(tmp_path, file, *parts)


def test_the_remedy_quotes_the_problem_of_a_table(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(f"{TABLE}\n{GOOD}\n".replace("unit,", "").replace("seconds,", "").replace("p,f", "a b/c,f"))
    refused(tmp_path, file, "does not say the unit of its runs; give --problem 'a b/c', and they are looked up")


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"{",
        b"\x1f\x8bbroken",
        b"a,b\n1,2\n",
        b"\0" * 99,
    ],
)
def test_what_is_no_format_at_all(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    refused(tmp_path, tmp_path / "f", "it is not IOHprofiler data, CSV")
    refused(tmp_path, tmp_path / "absent", "No such file")
    (tmp_path / "folder").mkdir()
    refused(tmp_path, tmp_path / "folder", "it is not IOHprofiler")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "it is empty"),
        ("evaluation,best\n1,3\n", "its table has no column 'value'; evaluation and value are needed"),
        ("evaluation,value,value\n1,3,4\n", "its header names column 'value' twice; drop one of the two"),
        ("evaluation;value\n1;3\n", "its columns are separated by ';'; separate them by commas"),
    ],
)
def test_a_table_that_is_nearly_one_says_what_it_lacks(tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    refused(tmp_path, tmp_path / "t.csv", words)


def test_text_that_is_not_in_utf_8_and_gzip_that_is_cut(tmp_path):
    (tmp_path / "t.csv").write_bytes(f"{TABLE}\n".encode() + b"p\xff,f,seconds,5,s,0,1,2.0,ok\n")
    refused(tmp_path, tmp_path / "t.csv", "not UTF-8 text")
    lines = (f"p,f,seconds,5,s,0,{i},2.0,ok\n" for i in range(1, 500))
    packed = gzip.compress(f"{TABLE}\n{''.join(lines)}".encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[:-12])
    refused(tmp_path, tmp_path / "t.csv.gz", "truncated or damaged")


def test_runs_of_nobody_knows_what_need_a_problem(tmp_path):
    (tmp_path / "t.csv").write_text("evaluation,value\n\n1,3\n\n")
    refused(tmp_path, tmp_path / "t.csv", "does not say the problem, fingerprint, unit, default", "--problem ID")
    (tmp_path / "u.csv").write_text("problem,evaluation,value\np/a,1,3\n")
    refused(tmp_path, tmp_path / "u.csv", "does not say the fingerprint, unit, default of its runs", "--problem p/a,")
    back = imported(tmp_path, tmp_path / "t.csv", problem="recorded/llvm-tree")
    assert list(back) == [("recorded/llvm-tree", "back", 0)]


@pytest.fixture
def index(tmp_path):
    """Return the index of two runs that were exported as IOHprofiler data."""
    for seed in range(2):
        store(tmp_path / "made", rows(3.0, math.inf, 2.0), seed=seed)
    (file,) = exported(tmp_path / "made", "ioh")[0].glob("*/*.json")
    return file


def changed(index, change):
    content = read_json(index)
    change(content)
    index.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda c: c.update(maximization=True), "maximises"),
        (lambda c: c.pop("scenarios"), "no 'scenarios'"),
        (lambda c: c["scenarios"][0].pop("runs"), "'runs'"),
        (lambda c: c["scenarios"][0].update(path="../../../s.txt"), "not a file beside it"),
        (lambda c: c["scenarios"][0]["runs"].pop(), "line 6 belongs to a run that"),
        (lambda c: c["scenarios"][0]["runs"][0].update(evals=4), "line 4 ends a run of 4 evaluations at 3"),
        (lambda c: c["scenarios"][0]["runs"][0].update(evals=math.inf), "a missing or wrong entry"),
        (lambda c: c["scenarios"][0]["runs"][0].update(bbo_suite=7), "are not an object"),
        (lambda c: c["scenarios"][0]["runs"][0]["bbo_suite"].update(seed="0"), "as its seed"),
    ],
)
def test_a_wrong_index(tmp_path, index, change, part):
    changed(index, change)
    refused(tmp_path, index, part)


def test_damaged_rows_and_cut_files_of_ioh(tmp_path, index):
    (data,) = index.parent.glob("*/*.dat")
    whole = data.read_text()
    for content, part in (
        (whole.replace("inf", "oops", 1), "line 3 is not a row"),
        (whole[:-9], "line 8 is not a row"),
        ("".join(whole.splitlines(True)[:-1]), "ends a run of 3 evaluations at 2"),
        ("", "ends a run of 3 evaluations at 0"),
    ):
        data.write_text(content)
        refused(tmp_path, index, data.name, part)


def test_what_others_write_is_read_where_it_has_a_problem(tmp_path):
    """Rows of improvements and of the last evaluation, as IOHexperimenter 0.3.22 writes them."""
    folder = tmp_path / "data_f7_mine"
    folder.mkdir()
    text = "evaluations raw_y\n1 3.5000000000\n4 0.5000000000\n6 3.5000000000\n"
    (folder / "IOHprofiler_f7_DIM3.dat").write_text(text + text.replace("0.5", "0.25"))
    runs = [{"instance": 1, "evals": 6, "best": {"evals": 4, "y": y, "x": [0, 0, 1]}} for y in (0.5, 0.25)]
    scenario = {"dimension": 3, "path": "data_f7_mine/IOHprofiler_f7_DIM3.dat", "runs": runs}
    index = {"function_id": 7, "maximization": False, "algorithm": {"name": "rs"}, "scenarios": [scenario]}
    (tmp_path / "IOHprofiler_f7_mine.json").write_text(json.dumps(index))
    back = imported(tmp_path, tmp_path / "IOHprofiler_f7_mine.json", problem="recorded/llvm-tree")
    values = [[row.value for row in read_rows(path)] for path in back.values()]
    assert [seed for _, _, seed in back] == [0, 1]
    assert values == [[3.5, 3.5, 3.5, 0.5, 0.5, 3.5], [3.5, 3.5, 3.5, 0.25, 0.25, 3.5]]


OPERATIONS = [
    {"op_code": 0, "worker_id": "w", "study_name": "a", "directions": [1]},
    {"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-01-01T00:00:00.000000+00:00"}
    | {"state": 1, "value": 2.5, "values": None, "datetime_complete": "2026-01-01T00:00:03.000000+00:00"}
    | {"distributions": {}, "params": {}, "user_attrs": {}, "system_attrs": {}, "intermediate_values": {}},
]


def journal(*operations):
    return "".join(f"{json.dumps(operation)}\n" for operation in operations)


def test_a_journal_of_somebody_else(tmp_path):
    file = tmp_path / "o.log"
    file.write_text(journal(*OPERATIONS, OPERATIONS[1] | {"state": 3, "value": None}))
    ((_, path),) = imported(tmp_path, file, problem="recorded/llvm-tree").items()
    found = read_rows(path)
    assert [(row.value, row.status.word, row.evaluation_seconds) for row in found] == [
        (2.5, "ok", 3.0), (math.inf, "runtime_error", 3.0)]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (journal(*OPERATIONS) + '{"op_code": 4, "wor', "line 3 is not valid JSON; it is cut off"),
        (journal(OPERATIONS[0], [1]), "line 2 is not an operation"),
        (journal(OPERATIONS[0], {"op_code": 4}), "Optuna cannot read it (KeyError"),
        (journal(OPERATIONS[0] | {"directions": [2]}), "study 'a' does not minimise"),
        (
            journal(OPERATIONS[0], {"op_code": 2, "study_id": 0, "user_attr": {"bbo_suite": HEAD | {"trials": 2}}}),
            "0 trials",
        ),
        (
            journal(OPERATIONS[0], {"op_code": 2, "study_id": 0, "user_attr": {"bbo_suite": {"evaluations": "9"}}}),
            "invalid attribute",
        ),
        (journal(*OPERATIONS[:1], OPERATIONS[1] | {"value": -1.0}), "costs -1.0"),
        (journal(*OPERATIONS[:1], OPERATIONS[1] | {"user_attrs": {"status": 7}}), "trial 0 of study 'a' has"),
    ],
)
def test_a_damaged_journal(tmp_path, text, part):
    file = tmp_path / "o.log"
    file.write_text(text)
    refused(tmp_path, file, part, problem="recorded/llvm-tree")


@pytest.mark.slow
def test_a_database_that_is_not_optunas_is_not_changed(tmp_path):
    file = tmp_path / "o.db"
    with sqlite3.connect(file) as database:
        database.execute("create table t (x)")
    before = file.read_bytes()
    refused(tmp_path, file, "Optuna cannot read it")
    assert file.read_bytes() == before
    file.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    refused(tmp_path, file, "Optuna cannot read it")


@pytest.mark.slow
def test_damaged_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "t.parquet"
    file.write_bytes(b"PAR1" + b"x" * 100)
    refused(tmp_path, file, "it is damaged")
    parquet.write_table(pyarrow.table({"x": [1]}), file)
    refused(tmp_path, file, "no column 'evaluation'")
    parquet.write_table(pyarrow.table({"evaluation": [1, 2], "value": ["1", "x"]}), file)
    refused(tmp_path, file, "row 2 has 'x' as its value", problem="recorded/llvm-tree")
