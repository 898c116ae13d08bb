"""One damaged run: every command that reads a study goes on with the others, names it once and ends with 1."""

import json
import shutil

import pytest
from bbo_toys import Climber, Toy

import bbo_suite
from bbo_suite.store.identity import read_head, write_head


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    results = tmp_path_factory.mktemp("whole")
    bbo_suite.run(Climber, Toy, budget=12, batch=4, repeats=3, study="s", results=results, quiet=True, jobs=1)
    return results / "s"


def empty(run):
    (run / "run.json").write_text("")


def no_object(run):
    (run / "run.json").write_text("[1, 2]")


def other_default(run):
    stored = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(stored | {"default": 50.0}))


def no_number(run):
    write_head(run, read_head(run) | {"default": "5"})


def one_bit(run):
    text = (run / "rows.csv").read_text()
    (run / "rows.csv").write_text(text.replace(",ok,", ",no,", 1))


def other_cost(run):
    text = (run / "rows.csv").read_text()
    line = text.splitlines()[2]
    value = line.split(",")[2]
    (run / "rows.csv").write_text(text.replace(line, line.replace(f",{value},", ",0.001,")))


DAMAGES = [other_cost, empty, no_object, other_default, no_number, one_bit]
COMMANDS = ["report s", "plot s --figure convergence", "best s", "export s --to csv", "export s --to ioh"]
COMMANDS += ["export s --to digests", "site --out out --quiet"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_run_is_left_out_and_the_others_are_shown(suite, tmp_path, whole, damage, command):
    study = shutil.copytree(whole, tmp_path / "results" / "s")
    first, *others = sorted(path for path in study.iterdir() if path.is_dir())
    damage(first)
    done = suite(*command.split())
    assert done.code == 1 and done.err.count("left out: ") == 1 and f"{first.name}/" in done.err
    assert done.out.strip() and "Traceback" not in done.err
    for other in others:
        damage(other)
    done = suite(*command.replace("convergence", "speedup").replace("--out out", "--out all").split())
    assert done.code == 1 and "Traceback" not in done.err and f"{first.name}/" in done.err


@pytest.mark.parametrize("damage", DAMAGES)
def test_commands_that_only_show_how_far_a_study_is_go_on(suite, tmp_path, whole, damage):
    damage(next(shutil.copytree(whole, tmp_path / "results" / "s").glob("*__0")))
    for command in ("watch s --once", "list studies"):
        done = suite(*command.split())
        assert done.code == 0 and "Traceback" not in done.err
