"""A wrong use of the command line gives the same kind of sentence as any other mistake, with the value in it."""

import pytest
import typer

from bbo_suite.cli import app

COMMANDS = typer.main.get_command(app).commands


NUMBERS = [
    (name, option.opts[0])
    for name, command in COMMANDS.items()
    for option in command.params
    if option.metavar in ("COUNT", "TIME")
]
CHOICES = [("plot", "--format"), ("plot", "--style"), ("export", "--to")]


@pytest.mark.parametrize(("command", "flag"), [*NUMBERS, *CHOICES])
def test_a_wrong_value_is_echoed_in_one_sentence(suite, command, flag):
    done = suite(command, flag, "x'y")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"error: invalid value for '{flag}'")
    assert "x'y" in done.err
    assert " Help: " in done.err and done.err.endswith(f" {command} --help\n")


def test_numbers_of_all_commands_were_tried():
    assert {("run", "--budget"), ("run", "--max-seconds"), ("validate", "--sample"), ("record", "--seed")} <= {*NUMBERS}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rum"], "no such command 'rum'"),
        (["run", "--no-such"], "no such option: --no-such"),
        (["run", "--jobs"], "option '--jobs' requires an argument"),
        (["plot"], "missing argument 'STUDY'"),
        (["plot", "a", "b"], "(b)"),
        (["--no-such"], "no such option: --no-such"),
    ],
)
def test_a_wrong_command_line_gives_one_sentence(suite, arguments, words):
    done = suite(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("error: ") and words in done.err and " Help: " in done.err


def test_without_arguments_it_prints_the_help(suite):
    assert "tune-strategy" in suite("--help").out
    done = suite()
    assert "tune-strategy" in done.out + done.err and "error" not in done.err


def test_counts_and_durations_have_units(suite, toy):
    done = suite("plan", *toy, "--budget", "1k", "--batch", "1e1", "--repeats", "2", "--option", "size=1e1", "--json")
    assert '"evaluations": 2000' in done.out
    done = suite("plan", *toy, "--max-seconds", "10m", "--budget", "2k", "--list")
    assert "--budget 2000 --max-seconds 600.0" in done.out
