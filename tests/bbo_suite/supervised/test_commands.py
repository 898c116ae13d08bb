"""Commands: what is put into them, their processor time, and that nothing of them is left."""

import subprocess
import sys
import time

import pytest

from bbo_suite.supervised.commands import filled, last_words, run, words


def running(command):
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return command in listed.splitlines()


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("gcc {flags} -o {out} a.c", ["gcc", "-O2", "-g", "-o", "./x", "a.c"]),
        ("make CFLAGS={flags}", ["make", "CFLAGS=-O2 -g"]),
        ('make "CFLAGS={flags}"', ["make", "CFLAGS=-O2 -g"]),
        ("make CFLAGS='{flags} -w'", ["make", "CFLAGS=-O2 -g -w"]),
        ("awk '{print}' {out}", ["awk", "{print}", "./x"]),
        ("X={flags} run", ["/bin/sh", "-c", "X='-O2 -g' run"]),
        ("make && cp a {out}", ["/bin/sh", "-c", "make && cp a ./x"]),
    ],
)
def test_a_text_becomes_words_or_stays_in_its_word(template, wanted):
    assert words(filled(template, {"flags": "-O2 -g", "out": "./x"})) == wanted


def test_processor_time_counts_work_and_not_waiting(tmp_path):
    loop = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    busy, idle = (run(f"sh -c '{what}'", tmp_path, tmp_path / "out.txt", 60) for what in (loop, "sleep 0.1"))
    assert busy.cpu > 3 * idle.cpu and idle.wall > 0.1 > idle.cpu


@pytest.mark.skipif(sys.platform != "linux", reason="reads ps")
@pytest.mark.parametrize("command", ["sleep 71.5", "sh -c 'sleep 71.5 & sleep 71.5'", "sh -c 'sleep 71.5 & exit 0'"])
def test_what_takes_too_long_ends_with_all_that_it_started(tmp_path, command):
    started = time.monotonic()
    ended = run(command, tmp_path, tmp_path / "out.txt", 0.3)
    while running("sleep 71.5") and time.monotonic() - started < 10:  # a signal takes a moment on a busy machine
        time.sleep(0.05)
    assert time.monotonic() - started < 10
    assert ended.late == ("exit" not in command)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'echo first >&2; echo error: this >&2; echo last >&2; exit 3'", ("exit code 3", "error: this")),
        ("python3 -c 'import os; os.abort()'", ("SIGABRT", "Aborted")),
        ("sh -c 'read line || exit 1'", ("exit code 1", "")),
    ],
)
def test_a_failure_is_explained_by_its_last_words(tmp_path, command, words):
    ended = run(command, tmp_path, tmp_path / "out.txt", 60)
    assert words[0] in ended.failure(60) and last_words(tmp_path / "out.txt") == words[1]
