import errno
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite import UserError
from bbo_suite.files.log import CheckedLog, checksummed, without_checksum

HEADER = "name,count,check\n"
TEXTS = ["a,1,", "b,2,", "é,3,"]
LINES = [checksummed(text) for text in TEXTS]
DATA = "".join([HEADER, *LINES]).encode()


@pytest.fixture
def log(tmp_path):
    return CheckedLog(tmp_path / "log.csv", HEADER)


@given(st.text(), st.data())
def test_a_changed_line_is_found(text, data):
    line = checksummed(text := "".join(c for c in text if c != "\n" and c.isprintable()))
    assert without_checksum(line) == text
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda c: c != line[place]))
    with pytest.raises(ValueError, match="checksum"):
        without_checksum(line[:place] + other + line[place + 1 :])


@pytest.mark.parametrize("cut", range(len(DATA)))
def test_a_log_that_ends_at_any_byte_is_continued(log, cut):
    log.file.write_bytes(DATA[:cut])
    found = list(log)
    assert found == TEXTS[: len(found)]
    log.append(LINES[len(found) :])
    assert log.file.read_bytes() == DATA


@pytest.mark.parametrize(
    ("content", "line"),
    [(DATA[1:], 1), (b"\n" + DATA, 1), (b"x", 1), (DATA.replace(b"b,2", b"b,3"), 3), (DATA + b"\n", 5)],
)
def test_damage_is_named_and_nothing_is_changed(log, content, line):
    log.file.write_bytes(content)
    with pytest.raises(UserError, match=f"line {line} is damaged"):
        log.append(LINES)
    assert log.file.read_bytes() == content


def test_lines_that_cannot_be_parsed_are_damaged(tmp_path):
    log = CheckedLog(tmp_path / "numbers", "", int, checksums=False, remedy="remove it")
    log.append(["1\n", "x\n"])
    with pytest.raises(UserError, match=r"line 2 is damaged .*: remove it$"):
        list(log)


def test_what_was_not_read_is_removed_by_the_next_line(log):
    log.file.write_bytes(DATA + b"\0\0")
    lines = iter(log)
    assert next(lines) == TEXTS[0]
    log.append(LINES[2:])
    assert list(CheckedLog(log.file, HEADER)) == [TEXTS[0], TEXTS[2]]


@pytest.mark.parametrize("gone", ["folder", "file", "replaced"])
def test_a_file_that_is_gone_is_not_written_anew(tmp_path, gone):
    (tmp_path / "run").mkdir()
    log = CheckedLog(tmp_path / "run" / "log.csv", HEADER)
    log.append(LINES)
    shutil.rmtree(tmp_path / "run") if gone == "folder" else log.file.unlink()
    if gone == "replaced":
        log.file.write_bytes(DATA)
    with pytest.raises(UserError, match="moved or deleted"):
        log.append(LINES)


def test_a_second_writer_is_noticed(log):
    other = CheckedLog(log.file, HEADER)
    log.append(LINES[:1])
    other.append(LINES[1:])
    with pytest.raises(UserError, match="another process has written"):
        log.append(LINES)
    assert log.file.read_bytes() == DATA


def test_a_full_disk_is_one_sentence_and_the_log_is_continued(log, monkeypatch):
    write, left = os.write, [40]

    def full(file, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data)[: min(left[0], 25)]
        left[0] -= len(part)
        return write(file, part)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(UserError, match="No space left on device; fix this"):
            log.append(LINES)
    assert log.file.read_bytes() == DATA[:40]
    again = CheckedLog(log.file, HEADER)
    again.append(LINES[len(list(again)) :])
    assert log.file.read_bytes() == DATA


def files():
    """Return the number of files that this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_file_is_closed_with_its_log(tmp_path):
    log = CheckedLog(tmp_path / "log.csv", HEADER)
    before = files()
    log.append(LINES)
    assert files() == before + 1
    log.close()
    log.append(LINES)
    log.sync()
    del log
    assert files() == before
