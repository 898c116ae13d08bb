"""Parquet files that somebody damaged or wrote by hand: one sentence each, in little memory."""

import json
import tracemalloc

import numpy as np
import pytest

from bbo_problems.recorded import files
from bbo_suite import UserError
from bbo_suite.exchange.table import PARQUET
from bbo_suite.recording.files import KEY

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.slow

N = 60
COLUMNS = {
    "a": [i % 10 for i in range(N)],
    "m": [json.dumps(i // 10 or "x") for i in range(N)],
    "cost": [1.0 + i for i in range(N)],
    "status": ["ok"] * N,
    "reason": [""] * N,
}
METADATA = {"unit": "seconds", "default": {"a": 0, "m": "x"}, "as_text": ["m"]}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file as `record` does, with other columns or other metadata."""

    def write(columns, metadata=METADATA):
        table = pyarrow.table(COLUMNS | columns)
        text = metadata if isinstance(metadata, str) else json.dumps(metadata)
        parquet.write_table(table.replace_schema_metadata({KEY: text}), tmp_path / "x.parquet")
        return tmp_path / "x.parquet"

    return write


@pytest.mark.parametrize(
    ("columns", "metadata", "message"),
    [
        ({"a": [[1]] * N}, METADATA, "its column 'a' holds list"),
        ({"a": [None, *range(1, N)]}, METADATA, "its column 'a' has empty cells"),
        ({"m": [True] * N}, METADATA, "cannot use"),
        ({"m": ["[" * 100_000] * N}, METADATA, "nested too deeply"),
        ({"status": [["ok"]] * N}, METADATA, "its column 'status' holds list"),
        ({"status": [None, *["ok"] * (N - 1)]}, METADATA, "unknown status"),
        ({}, "[" * 100_000, "nested too deeply"),
        ({}, "1" * 5000, "an integer of thousands of digits"),
        ({}, [], "its metadata is a list"),
        ({}, METADATA | {"statistics": ["size"]}, "no column of numbers 'size'"),
        ({}, METADATA | {"statistics": ["cost"]}, "no column of numbers 'cost'"),
        ({"size": ["x"] * N}, METADATA | {"statistics": ["size"]}, "no column of numbers 'size'"),
    ],
)
def test_a_file_that_record_could_not_have_written_is_refused(written, columns, metadata, message):
    with pytest.raises(UserError, match=message):
        files.read(written(columns, metadata))


def test_mutants_are_read_or_refused(written):
    path, rng = written({}), np.random.default_rng(0)
    content = path.read_bytes()
    for _ in range(300):
        mutant = np.frombuffer(content, np.uint8).copy()
        mutant[rng.integers(len(mutant), size=3)] = rng.integers(256, size=3)
        path.write_bytes(mutant.tobytes())
        try:
            files.read(path)
        except UserError as error:
            assert "\n" not in str(error)


def test_a_few_bytes_that_stand_for_millions_of_cells_are_refused_in_little_memory(tmp_path):
    same = pyarrow.nulls(1 << 23, pyarrow.int8())
    parquet.write_table(pyarrow.table({"evaluation": same, "value": same}), tmp_path / "x.parquet")
    for read in (files.read, lambda path: next(PARQUET.read(path))):
        with pytest.raises((UserError, ValueError), match="16,777,216 cells"):
            read(tmp_path / "x.parquet")


def test_a_long_text_in_every_row_is_held_once(tmp_path):
    numbers = pyarrow.array(np.arange(1, 201))
    same = pyarrow.DictionaryArray.from_arrays(np.zeros(200, np.int32), ["x" * 200_000])
    table = pyarrow.table({"evaluation": numbers, "value": numbers, "reason": same})
    parquet.write_table(table, tmp_path / "x.parquet", store_schema=False)
    tracemalloc.start()
    rows = list(next(PARQUET.read(tmp_path / "x.parquet")).rows)
    assert len(rows) == 200 and len(rows[0].reason) == 200_000
    assert tracemalloc.get_traced_memory()[1] < 5e6  # and not 40 million
    tracemalloc.stop()
