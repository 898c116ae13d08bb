"""A user's error, a wrong use or a damaged run gives one sentence that names it, an exit code and no traceback."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from bbo_toys import Climber, Toy

import bbo_suite
from bbo_suite.cli import app
from bbo_suite.errors import did_you_mean
from bbo_suite.store.identity import read_head, write_head

STRATEGY = """
from bbo_suite import Strategy
class Mine(Strategy):
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
"""


def refused(done, *words):
    """Check that a command ended with one error sentence that contains the words."""
    sentences = [line for line in done.err.splitlines() if not line.startswith(("loading", "evaluating"))]
    assert done.code == 1, done
    assert len(sentences) == 1 and sentences[0].startswith("error: "), done.err
    assert [word for word in words if str(word) not in sentences[0]] == [], sentences[0]
    assert done.out == ""


MISTAKES = [
    ("run --strategy evolutoin", ["'evolutoin'", "Did you mean 'evolution'?"]),
    ("run --strategy ''", ["''", "annealing, evolution"]),
    ("run --problem toy/smal", ["'toy/smal'", "Did you mean 'toy/small'?"]),
    ("run --problem fusoin/resnet50", ["'fusoin'", "Did you mean 'fusion'?"]),
    ("run --problem fusion/resnet5", ["Did you mean 'fusion/resnet50'?"]),
    ("run --problem toy", ["'toy' does not name an instance", "toy/small, toy/large"]),
    ("run --problem toy/", ["toy/small"]),
    ("run --problem toy:file.txt", ["file.txt", "small, large"]),
    ("run --problem ''", ["''", "toy"]),
    ("run --budget 0", ["budget must be 1 or more, not 0"]),
    ("run --budget -5", ["-5"]),
    ("run --batch 0", ["batch must be 1 or more"]),
    ("run --repeats 0", ["repeats must be 1 or more"]),
    ("run --jobs 0", ["jobs must be 1 or more"]),
    ("run --seed -1", ["seed must be 0 or more, not -1"]),
    ("run --option sise=4", ["'sise'", "Did you mean 'size'?"]),
    ("run --option size", ["'size' has no value", "key=value"]),
    ("run --option size=four", ["size", "pick", "of type int", "'four'"]),
    ("run --option size=11", ["size", "between 1 and 10", "11"]),
    ("run --option rate=nan", ["rate", "a finite number", "nan"]),
    ("run --option rate=inf", ["rate", "a finite number", "inf"]),
    ("run --option bold=perhaps", ["bold", "bool", "'perhaps'"]),
    ("run --option mode=middle", ["mode", "near or far", "'middle'"]),
    ("run --option evolution.crossover=0.2", ["'evolution'", "not among those that run: pick"]),
    ("run --option random.size=2 --strategy random", ["random", "no option 'size'", "no options"]),
    ("run --option sise=2 --strategy random --strategy pick", ["random, pick", "'sise'", "'size'?"]),
    ("run --study ''", ["study name ''"]),
    ("run --study a/b", ["'a/b'", "slash"]),
    ("run --study ..", ["'..'"]),
    ("run --study=-dash", ["'-dash'", "begin with neither . nor -"]),
    (f"run --study {'x' * 300}", ["too long"]),
    ("run --results /dev/null", ["/dev/null"]),
    ("run --results /proc/none", ["cannot write /proc/none"]),
    ("plan --jobs 0", ["jobs must be 1 or more, not 0"]),
    ("record toy/small --out x.json --sample 0", ["sample must be 1 or more, not 0"]),
    ("record toy/small --out x.json --seed -1", ["seed must be 0 or more, not -1"]),
    ("pretrain --strategy rl --problem toy/small --out x --budget 0", ["budget", "not 0"]),
    ("pretrain --strategy rl --problem toy/small --out x --seed -1", ["seed", "not -1"]),
    ("plan --problem toy/smal", ["Did you mean 'toy/small'?"]),
    ("plan --only half", ["--only 'half' is not a share", "1/10"]),
    ("plan --only 1/2 --list", ["leave out --only"]),
    ("run --only 0/3", ["there is no share 0/3", "from 1"]),
    ("run --only 4/3", ["there is no share 4/3"]),
    ("run --cluster tcp://127.0.0.1:8786 --jobs 2", ["one run per worker at a time"]),
    ("record toy/small --out x.csv", ["name it .json"]),
    ("record toy/small --out no/where.json", ["there is no folder no"]),
    ("record toy/small --out x.json --parameter p9", ["no parameter 'p9'", "Did you mean"]),
    ("record toy/large --out x.json", ["give --sample"]),
    ("tune-strategy random --problem toy/small", ["random has no options", "nothing to tune"]),
    ("tune-strategy joint --problem toy/small --trials 1", ["trials must be 2 or more"]),
    ("tune-strategy evolution", ["no training problem"]),
    ("tune-strategy evolution --problems-from none.txt", ["none.txt", "No such file"]),
    ("tune-strategy evolutoin --problem toy/small", ["Did you mean 'evolution'?"]),
    ("tune-strategy optuna --problem toy/small", ["has several variants"]),
    ("tune-strategy evolution --problem toy/smal", ["Did you mean 'toy/small'?"]),
    ("pretrain --strategy pick --problem toy/small --out x", ["pick cannot be pre-trained", "rl"]),
    ("pretrain --strategy rl --problem toy/small --out no/x", ["there is no folder no"]),
    ("pretrain --strategy rl --problem toy/small --out .", ["cannot be written", "--out"]),
    ("pretrain --strategy rl --out x", ["no training problem", "--family"]),
    ("pretrain --strategy rl --out x --family tile/unifrom", ["'tile/unifrom'", "tile/uniform"]),
    ("run --workers 0", ["workers must be 1 or more"]),
    ("run --problem toy/small --strategy random,annealing", ["--strategy random --strategy annealing"]),
    ("run --problem ordering/small-a,ordering/large-a --strategy random", ["--problem ordering/small-a --problem"]),
    ("best nothing", ["there is no study 'nothing'"]),
    ("validate nothing", ["there is no study 'nothing'"]),
    ("watch nothing", ["there is no study 'nothing'"]),
    (f"watch {'x' * 300} --results .", ["cannot read", "File name too long"]),
    ("fleet --kernels tpu/smal", ["Did you mean 'tpu/small'?"]),
    ("plot nothing", ["'nothing'", "there are no studies yet"]),
    ("show fusoin", ["'fusoin'", "Did you mean 'fusion'?"]),
    *((f"show {name}", ["does not name an instance", "or another of its ", "`list fusion`"])
      for name in ("fusion", "fusion/", "fusion:")),
    *((f"show {name}", [f"there is no problem '{name}'", "Did you mean '"])
      for name in ("ehrlich/32x32-a@x", "ordering/small-a@x", "recorded/gcc-huffman@x", "gcc/base64#2",
                   "triton/matmul-4096@x", "llvm/base64#2", "halide/blur#1", "ORDERING/small-a")),
]  # fmt: skip
"""Commands with a mistake, and words of the sentence that names it."""


@pytest.mark.parametrize(("command", "words"), MISTAKES)
def test_a_mistake_is_named_in_one_sentence(suite, toy, tmp_path, command, words):
    name, *arguments = shlex.split(command)
    plugins = () if name in ("plot", "watch", "fleet") else toy
    done = suite(name, *plugins, *arguments)
    refused(done, *words)
    assert len(done.err) < 600 and not list(tmp_path.glob("results/*/*/rows.csv"))


def test_a_strategy_that_breaks_costs_only_its_own_run(suite, toy, tmp_path):
    (tmp_path / "bad.py").write_text(f"{STRATEGY}\n        raise KeyError(n)\n".replace("return", "_ ="))
    names = ("--strategy", "bad", "--strategy", "random", "--budget", 20, "--json")
    done = suite("run", *toy, "--plugin", "bad.py", *names)
    assert done.code == 1 and [json.loads(line)["strategy"] for line in done.out.splitlines()] == ["random"]
    (sentence,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert "strategy bad raised KeyError in ask" in sentence and "Traceback" not in done.err


def test_a_long_list_of_known_names_is_cut():
    assert did_you_mean("zzz", ["a", "b", "a"]) == " Known: a, b."
    hint = did_you_mean("zzz", [f"name{number:04}" for number in range(5000)])
    assert hint.startswith(" Known: name0000, name0001") and hint.endswith(" and 4,970 more.")


def test_option_for_all_that_have_it_and_for_one(suite, toy):
    names = ("--strategy", "pick", "--strategy", "random", "--budget", 10, "--json")
    done = suite("run", *toy, *names, "--option", "size=4", "--option", "pick.rate=0.25")
    stored = {run["strategy"]: json.loads(Path(run["path"], "run.json").read_text())["options"]
              for run in map(json.loads, done.out.splitlines())}  # fmt: skip
    assert stored == {"pick": {"size": 4, "rate": 0.25, "bold": False, "mode": "near"}, "random": {}}


def test_a_study_of_another_name(suite, toy):
    suite("run", *toy, "--budget", 10, "--study", "mine", "--json")
    refused(suite("plot", "mien"), "'mien'", "mine")


def test_study_without_a_row(suite, toy):
    run = json.loads(suite("run", *toy, "--budget", 10, "--study", "s", "--json").out)
    Path(run["path"], "rows.csv").write_text("")
    refused(suite("plot", "s"), "no evaluation yet", "results/s")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("absent.py", None, ["no plugin file absent.py"]),
        ("mine.txt", STRATEGY, ["mine.txt", ".py"]),
        ("mine.py", "def f(:\n", ["mine.py, line 1", "syntax"]),
        ("mine.py", "x = 1\n1 / 0\n", ["mine.py", "ZeroDivisionError"]),
        ("mine.py", "import no_such_module\n", ["mine.py", "no_such_module"]),
        ("mine.py", "import sys\nsys.exit(3)\n", ["mine.py", "SystemExit"]),
        ("mine.py", "x = 1\n", ["mine.py", "no subclass", "bbo_suite.Strategy"]),
        ("mine.py", STRATEGY + "class Other(Mine): pass\n", ["mine.py", "Mine and Other", "own file"]),
        ("random.py", STRATEGY, ["random.py", "another strategy 'random'", "rename"]),
        ("mine.py", STRATEGY + "    Options = int\n", ["dataclass"]),
    ],
)
def test_plugin_that_is_none(suite, tmp_path, name, text, words):
    if text is not None:
        (tmp_path / name).write_text(text)
    refused(suite("run", "--plugin", name, "--strategy", Path(name).stem, "--budget", 10), *words)


def test_broken_entry_point_does_not_hide_the_others(suite, points):
    def load():
        raise ImportError("No module named 'absent'")

    points("broken", load)
    done = suite("list", "strategies", "--json")
    assert done.code == 0
    assert "random" in {item["id"] for item in json.loads(done.out)}
    assert len(done.err.splitlines()) == 1
    assert "broken" in done.err and "absent" in done.err
    refused(suite("show", "broken"), "strategy broken cannot be imported", "absent")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_to_a_full_disk_is_one_sentence(tmp_path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "bbo_suite", "list", "strategies", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "error: cannot read or write the output: No space left on device\n")


@pytest.mark.slow
def test_a_run_with_closed_streams_writes_the_same_rows(toy, tmp_path):
    arguments = ["--strategy", "random", "--problem", "toy/small", "--budget", "30", "--jobs", "1"]
    command = shlex.join([sys.executable, "-m", "bbo_suite", "run", *map(str, toy), *arguments])
    for study, streams in (("open", ">/dev/null"), ("out", ">&-"), ("err", "2>&-"), ("all", "<&- >&- 2>&-")):
        done = subprocess.run(f"{command} --study {study} {streams}", shell=True, cwd=tmp_path, capture_output=True)
        assert done.returncode == 0, streams
    found = [file.read_text().splitlines() for file in tmp_path.glob("results/*/*/rows.csv")]
    first, *others = ([line.split(",")[:3] for line in lines] for lines in found)
    assert len(first) == 31 and others == [first] * 3


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
READING = ["report s", "plot s --figure convergence", "best s", "export s --to csv", "export s --to ioh"]
READING += ["export s --to digests", "site --out out --quiet"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", READING)
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


def test_a_damaged_run_is_left_out_of_a_forecast(suite, tmp_path):
    made = {"budget": 60, "repeats": 2, "study": "s", "results": tmp_path / "results", "quiet": True, "jobs": 1}
    bbo_suite.run(Climber, Toy, **made)
    other_cost(next((tmp_path / "results" / "s").glob("*__0")))
    done = suite("forecast", "s")
    assert done.code == 1 and done.err.count("left out: ") == 1 and "__0/rows.csv" in done.err and "60" in done.out


@pytest.mark.parametrize("damage", DAMAGES)
def test_commands_that_only_show_how_far_a_study_is_go_on(suite, tmp_path, whole, damage):
    damage(next(shutil.copytree(whole, tmp_path / "results" / "s").glob("*__0")))
    for command in ("watch s --once", "list studies"):
        done = suite(*command.split())
        assert done.code == 0 and "Traceback" not in done.err
