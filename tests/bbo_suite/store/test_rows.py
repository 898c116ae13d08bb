import csv

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bbo_suite import Status
from bbo_suite.files.log import without_checksum
from bbo_suite.store.rows import HEADER, Row, parse_rows

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


def test_a_line_as_people_see_it():
    row = Row(12, "95e0c70caf8cc336", 0.25, Status.COMPILE_ERROR, 1e-6, 0.5, "01a", 'no "x",\n line 2')
    assert row.line() == '12,95e0c70caf8cc336,0.25,compile_error,1e-06,0.5,01a,"no ""x"", line 2",590fe183\n'
