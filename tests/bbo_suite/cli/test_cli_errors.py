"""A user's error gives one sentence that names it, a nonzero exit code and no traceback."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import bbo_suite
from bbo_suite.errors import did_you_mean

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
    plugins = () if name == "plot" else toy
    done = suite(name, *plugins, *arguments)
    refused(done, *words)
    assert len(done.err) < 600 and not list(tmp_path.glob("results/*/*/rows.csv"))


def test_a_long_list_of_known_names_is_cut():
    assert did_you_mean("zzz", ["a", "b", "a"]) == " Known: a, b."
    hint = did_you_mean("zzz", [f"name{number:04}" for number in range(5000)])
    assert hint.startswith(" Known: name0000, name0001") and hint.endswith(" and 4,970 more.")


@pytest.mark.parametrize("arguments", [["--budget", "many"], ["--no-such"], ["--jobs"]])
def test_bad_usage(suite, arguments):
    done = suite("run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert arguments[0] in done.err


def test_study_name_of_other_letters(suite, toy):
    assert suite("run", *toy, "--budget", 10, "--study", "größe-日本").code == 0
    assert suite("plot", "größe-日本", "--figure", "time", "--format", "svg").code == 0


def test_option_for_all_that_have_it_and_for_one(suite, toy):
    names = ("--strategy", "pick", "--strategy", "random", "--budget", 10, "--json")
    done = suite("run", *toy, *names, "--option", "size=4", "--option", "pick.rate=0.25")
    stored = {run["strategy"]: json.loads(Path(run["path"], "run.json").read_text())["options"]
              for run in map(json.loads, done.out.splitlines())}  # fmt: skip
    assert stored == {"pick": {"size": 4, "rate": 0.25, "bold": False, "mode": "near"}, "random": {}}


def test_study_that_holds_other_settings(suite, toy):
    command = ("run", *toy, "--study", "s", "--json")
    before = suite(*command, "--budget", 20).out
    refused(suite(*command, "--budget", 30), "'s'", "budget 20, not 30", "--study")
    refused(suite(*command, "--budget", 20, "--batch", 5), "batch 100, not 5")
    refused(suite(*command, "--budget", 20, "--option", "size=5"), "options", "--study")
    assert suite(*command, "--budget", 20).out == before


def test_a_study_of_another_name(suite, toy):
    suite("run", *toy, "--budget", 10, "--study", "mine")
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


BROKEN_STRATEGIES = {
    "constructor": (
        "def __init__(self, *a): raise ValueError('no\\nluck')",
        "ValueError in its constructor",
        "no luck",
    ),
    "ask": ("def ask(self, n): return {}[n]", "KeyError in ask"),
    "tell": ("def tell(self, c, v): raise RuntimeError('told')", "RuntimeError in tell", "told"),
    "exit": ("def ask(self, n): raise SystemExit(0)", "SystemExit in ask"),
    "shape": ("def ask(self, n): return [[0, 0]]", "shape (1, 2), not (n, 4)"),
    "type": ("def ask(self, n): return self.task.space.sample(n, self.rng) + 0.5", "float64, not integers"),
    "range": ("def ask(self, n): return self.task.space.sample(n, self.rng) * 9 + 9", "indices 0 to 3"),
    "none": ("def ask(self, n): return None", "broke its contract in ask"),
    "many": ("def ask(self, n): return self.task.space.sample(n + 1, self.rng)", "when asked for"),
}


@pytest.mark.parametrize("fault", BROKEN_STRATEGIES)
def test_strategy_that_breaks_costs_only_its_own_run(suite, toy, tmp_path, fault):
    line, *words = BROKEN_STRATEGIES[fault]
    (tmp_path / "bad.py").write_text(f"{STRATEGY}    {line}\n")
    names = ("--strategy", "bad", "--strategy", "random", "--budget", 300, "--study", "s", "--json")
    done = suite("run", *toy, "--plugin", "bad.py", *names)
    assert done.code == 1
    assert [json.loads(line)["strategy"] for line in done.out.splitlines()] == ["random"]
    (sentence,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert all(word in sentence for word in ["strategy bad", *words]), sentence
    assert "Traceback" not in done.err
    folder = tmp_path / "results/s/toy--small__bad__0"
    if "raise" in line or "{}" in line:
        assert "Traceback" in (folder / "error.txt").read_text()
    if fault == "tell":
        assert len((folder / "rows.csv").read_text().splitlines()) == 101


PROBLEM = """
import numpy as np
from bbo_suite import Evaluations, Problem, Status, choice, product
class Bad(Problem):
    instances = ("a",)
    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(9)), choice("y", range(9))), np.zeros(2, int)
        {loading}
    def evaluate(self, configs):
        first = not configs.any()
        values = np.ones(len(configs))
        {body}
"""
BROKEN_PROBLEMS = {
    "nan": ("return Evaluations.of(values if first else values * np.nan)", "the value of candidate", "nan"),
    "negative": ("return Evaluations.of(values if first else -values)", "a cost must be 0 or more"),
    "raises": (
        "if not first: raise OSError('disc\\nfull')\n        return Evaluations.of(values)",
        "OSError",
        "disc full",
    ),
    "list": ("return Evaluations.of(values) if first else [1.0]", "returned list", "Evaluations.of"),
    "shape": ("return Evaluations.of(values if first else values[1:])", "shape (19,) for 20 candidates"),
    "default": ("return Evaluations.of(values * np.inf)", "default configuration of bad/a fails", "must work"),
    "loading": ("return Evaluations.of(values)", "ZeroDivisionError in loading", "bad.py, line 8"),
}


@pytest.mark.parametrize("fault", BROKEN_PROBLEMS)
def test_problem_that_breaks(suite, tmp_path, fault):
    body, *words = BROKEN_PROBLEMS[fault]
    (tmp_path / "bad.py").write_text(PROBLEM.format(body=body, loading="1 / 0" if fault == "loading" else "pass"))
    refused(
        suite("run", "--plugin", tmp_path / "bad.py", "--strategy", "random", "--budget", 20, "--json"), "bad", *words
    )


def test_full_disk_keeps_what_was_stored(suite, toy, monkeypatch):
    command, write = ("run", *toy, "--budget", 300, "--study", "s", "--json"), os.write

    def full(file, data):
        if bytes(data).startswith(b"101,"):
            raise OSError(28, "No space left on device")
        return write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        refused(suite(*command), "results/s", "No space left on device", "same command again")
    rows = Path("results/s/toy--small__pick__0/rows.csv")
    assert len(rows.read_text().splitlines()) == 101
    assert json.loads(suite(*command).out)["evaluations"] == 300


def test_folder_that_cannot_be_locked(suite, toy, monkeypatch):
    suite("run", *toy, "--budget", 10, "--study", "s")

    def refuse(lock):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    refused(suite("run", *toy, "--budget", 10, "--study", "s"), "results/s", "Permission denied")


def test_broken_entry_point_does_not_hide_the_others(suite, monkeypatch):
    class Point:
        name = "broken"

        def load(self):
            raise ImportError("No module named 'absent'")

    real = bbo_suite.registry.entry_points
    monkeypatch.setattr("bbo_suite.registry.entry_points", lambda group: [*real(group=group), Point()])
    done = suite("list", "strategies", "--json")
    assert done.code == 0
    assert "random" in {item["id"] for item in json.loads(done.out)}
    assert len(done.err.splitlines()) == 1
    assert "broken" in done.err and "absent" in done.err
    refused(suite("show", "broken"), "strategy broken cannot be imported", "absent")


def test_two_processes_on_one_study(tmp_path, toy):
    command = [sys.executable, "-m", "bbo_suite", "run", *map(str, toy), "--budget", "300", "--repeats", "3"]
    command += ["--study", "s", "--json", "--jobs", "1"]
    slow = os.environ | {"TOY_SECONDS": "0.1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, cwd=tmp_path, env=slow, **pipes) for _ in range(2)]
    answers = sorted((p.communicate(timeout=60), p.returncode) for p in both)
    assert sorted(code for _, code in answers) == [0, 1]
    (((out, _), _),) = [a for a in answers if a[1] == 0]
    (((_, err), _),) = [a for a in answers if a[1] == 1]
    assert "another process is writing" in err and "Traceback" not in err
    assert [json.loads(line)["evaluations"] for line in out.splitlines()] == [300] * 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_to_a_full_disk_is_one_sentence(tmp_path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "bbo_suite", "list", "strategies", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "error: cannot read or write the output: No space left on device\n")
