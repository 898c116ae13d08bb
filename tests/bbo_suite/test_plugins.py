"""What plugins may be, and one sentence for what they may not: problems, strategies, names, arguments of `run`."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Problem, Strategy, Study, UserError, choice, product, scale

SETTINGS = {"budget": 20, "batch": 10, "jobs": 1, "quiet": True}
BASE = """
from bbo_suite import Strategy
class Base(Strategy):
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
"""
BESIDE = "from beside import Base\nclass Mine(Base):\n    pass\n"
FAILING = """
from dataclasses import dataclass
from bbo_suite import Strategy
@dataclass(frozen=True)
class Options:
    size: int = 3
class Mine(Strategy):
    Options = Options
    def __init__(self, *arguments):
        super().__init__(*arguments)
        raise ValueError("not today")
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
"""


@dataclass(frozen=True)
class Frozen(Problem):
    """A problem whose attributes cannot be set."""

    size: int = 6
    instances = (6,)

    @property
    def space(self):
        return product(choice("x", range(self.size)), choice("y", range(self.size)))

    @property
    def default(self):
        return np.zeros(2, int)

    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs.sum(axis=1))


@dataclass(slots=True)
class Slots(Problem):
    """A problem whose attributes are slots."""

    size: int
    space: object = None
    default: object = None

    def __post_init__(self):
        self.space, self.default = product(choice("x", range(self.size))), np.zeros(1, int)

    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs.sum(axis=1))


NAME = "s,p/a:c\n\x1b[31m=1"


class Odd(Problem):
    """A problem whose names and values are any objects."""

    instances = ("a",)
    unit = "bytes"

    def __init__(self, instance):
        values = [None, "None", True, 1, "1", 0.1 + 0.2, 0.3, (1, 2), float("inf"), 'a,b\n"q"', "=SUM(1)", "é☃"]
        self.space, self.default = product(choice("n", values), scale(NAME, [1, 2.5, 2**70])), np.zeros(2, int)

    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs.sum(axis=1))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    return lambda strategies="random", problems="recorded/llvm-tree", **settings: bbo_suite.run(
        strategies, problems, **{"results": tmp_path / "results", "study": "s", **SETTINGS, **settings}
    )


@pytest.fixture
def put(tmp_path):
    """Return a function that writes a file, with its folder, and returns its path."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("problem", [Frozen, Frozen(9), Slots(5)])
def test_problems_that_are_dataclasses_of_any_kind_run_and_resume(run, problem):
    study = run(problems=problem)
    assert study == run(problems=problem) and len(study.frame()) == 20


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("level = 'structure'", "the level of Mine is 'structure'; give one of Level.COSTS, "),
        ("Options = {'a': 1}", "the Options of Mine must be a frozen dataclass whose fields have defaults"),
        ("Options = dataclass(type('Options', (), {'__annotations__': {'a': int}}))", "whose fields have defaults"),
        ("ask = Strategy.ask", "no complete subclass of .*; Mine lacks ask$"),
        ("def __init__(self, *arguments): pass", "no task and no budget; let it begin with super"),
    ],
)
def test_wrong_attributes_of_a_strategy_are_one_sentence(run, put, body, words):
    text = f"from dataclasses import dataclass{BASE.replace('Base', 'Mine')}    {body}\n"
    with pytest.raises(UserError, match=words):
        run("mine", plugins=[put("mine.py", text)])


def test_a_file_beside_a_plugin_is_imported(run, put):
    put("one/beside.py", BASE)
    study = run("mine", plugins=[put("one/mine.py", BESIDE)])
    assert study[0]["strategy"] == "mine"
    put("two/beside.py", BASE.replace("sample", "sample_all"))
    with pytest.raises(UserError, match=r"two/other.py imports beside, but gets that of .*one/beside.py; rename one"):
        run("other", plugins=[put("two/other.py", BESIDE)])


@pytest.mark.slow
def test_a_folder_without_rows_starts_over_with_other_code_and_options(run, put, tmp_path):
    plugin = put("mine.py", FAILING)
    with pytest.raises(UserError, match=r"strategy mine raised ValueError in its constructor .*not today"):
        run("mine", plugins=plugin)
    mended = put("fixed/mine.py", FAILING.replace('raise ValueError("not today")', "pass"))
    study = run("mine", plugins=mended, options={"mine": {"size": 4}})
    assert study[0]["evaluations"] == 20 and study.runs()["options"].tolist() == ['{"size": 4}']
    with pytest.raises(UserError, match="holds a run with options"):
        run("mine", plugins=mended, options={"mine": {"size": 5}})


def test_wrong_diagnostics_end_their_run_only(run, tmp_path):
    class Wrong(Strategy):
        def ask(self, n):
            return self.task.space.sample(n, self.rng)

        def diagnostics(self):
            return None

    with pytest.raises(UserError, match=r"^strategy wrong broke its contract in diagnostics: "):
        run([Wrong, "random"])
    assert [r["evaluations"] for r in Study("s", tmp_path / "results") if r["strategy"] == "random"] == [20]


WRONG = [
    ("baselines", "return None", "show run", "baselines must return a dict, not None"),
    ("baselines", "return {'-O3': -5.0}", "show run", "the baseline '-O3' costs -5; a cost must be 0 or more"),
    ("baselines", "return {'-O3': np.nan}", "show run", "the baseline '-O3' costs nan; a cost must be 0 or more"),
    ("assumptions", "return 'all'", "run", "assumptions must return a dict, not 'all'"),
    ("facts", "return 5", "show", "facts must return a dict, not 5"),
    ("paste", "return 5", "best", "paste must return a text, not 5"),
    ("fingerprint", "return None", "show run", "fingerprint must return a text, not None"),
    ("structure", "return 5", "show", "structure must return an object of bbo_suite, or None, not 5"),
]
ANY = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product
class Any(Problem):
    instances = ("a", "b,c")
    {unit}
    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(9))), np.zeros(1, int)
    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs.sum(axis=1))
    {method}
"""


@pytest.mark.parametrize("wrong", ["'abc'", "5", "lambda: ['a']", "classmethod(list)"])
def test_wrong_instances_are_one_sentence(suite, put, wrong):
    plugin = put("any.py", ANY.format(unit=f"instances = {wrong}", method=""))
    for command in (("check", plugin), ("list", "--plugin", plugin), ("run", "--plugin", plugin)):
        done = suite(*command, "--strategy", "random") if command[0] == "run" else suite(*command)
        assert done.code == 1 and "error: the instances of Any are" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(("method", "body", "commands", "words"), WRONG)
def test_wrong_answers_of_a_problem_are_one_sentence(suite, put, method, body, commands, words):
    plugin = ("--plugin", put("any.py", ANY.format(unit="", method=f"def {method}(self, *arguments): {body}")))
    run = ("run", "--problem", "any/a", "--strategy", "random", "--budget", 5, "--study", "s", *plugin)
    shown = {"show": ("show", "any/a", *plugin), "run": run, "best": ("best", "s", *plugin)}
    if commands == "best":
        suite(*run)
    for command in commands.split():
        done = suite(*shown[command])
        assert words in done.err + done.out and "Traceback" not in done.err


@pytest.mark.parametrize(
    ("name", "problem", "unit", "words"),
    [
        (
            "a,b.py",
            "any/a",
            "",
            "has a comma, a line break or another character that cannot be printed; rename the file",
        ),
        ("a\nb.py", "any/a", "", "rename the file"),
        ("any.py", "any/b,c", "", "the name of problem 'any/b,c' has a comma"),
        ("any.py", "any/a", "unit = 5", "its unit is 5, but must be a text"),
        ("any.py", "any/a@b", "instances = ('a@b',)", "has '@', which marks a variant; rename the instance, or set"),
        ("any.py", "any/1", "instances = (1, 2)", "the instances of Any are (1, 2); write them as texts, such as '1'"),
        ("any.py", "any/a", "noisy = 'no'", "its noisy is 'no', but must be True or False"),
        ("any.py", "any/a", "optimum = 'low'", "its optimum is 'low', but must be a number or None"),
    ],
)
def test_names_and_attributes_that_are_refused(suite, put, name, problem, unit, words):
    done = suite("show", problem, "--plugin", put(name, ANY.format(unit=unit, method="")))
    assert done.code == 1 and words in done.err and done.err.count("\n") == 1


def test_a_plugin_in_utf_16_is_named_so(suite, tmp_path):
    (tmp_path / "wide.py").write_text(BASE, encoding="utf-16")
    done = suite("show", "wide", "--plugin", "wide.py")
    assert done.code == 1 and "wide.py cannot be read: it is text in UTF-16 or UTF-32; save it as UTF-8" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"keep_all": "yes"}, "keep_all must be True or False, not 'yes'"),
        ({"study": 5}, "study must be a text or None, not 5"),
        ({"repeats": 10**9}, "1,000,000,000 repeats would make 1,000,000,000 runs"),
        ({"repeats": 1e9}, "repeats must be a whole number, not 1000000000.0"),
        ({"budget": True}, "budget must be a whole number, not True"),
        ({"budget": 10**30}, "budget must be 9,223,372,036,854,775,807 or less"),
        ({"results": 5}, "results must be a text or a path, not 5"),
        ({"plugins": 5}, "plugins must be "),
        ({"plugins": [5]}, "plugins must be "),
        ({"max_seconds": "1h"}, "max_seconds must be a number or None, not '1h'"),
        ({"max_seconds": float("nan")}, "max_seconds must be a number or None, not nan"),
        ({"jobs": 2.5}, "jobs must be a whole number or None, not 2.5"),
        ({"quiet": "no"}, "quiet must be True or False or None, not 'no'"),
        ({"option_texts": {"size": 2}}, "option_texts must be a dict of texts"),
    ],
)
def test_arguments_of_another_type_are_one_sentence(run, arguments, words):
    with pytest.raises(UserError) as refused:
        run(**arguments)
    assert str(refused.value).startswith(words)


def test_other_functions_check_their_arguments_too(tmp_path):
    for call in (lambda: Study(5), lambda: bbo_suite.load(None), lambda: bbo_suite.problem(b"llvm/tree")):
        with pytest.raises(UserError, match="must be a text, not"):
            call()
    assert run_of_numpy(tmp_path)[0]["evaluations"] == 5


def run_of_numpy(results):
    counts = {"budget": np.int64(5), "batch": np.int8(2), "max_seconds": np.float32(60)}
    return bbo_suite.run("random", Slots(5), results=str(results), jobs=1, study="n", quiet=np.True_, **counts)


@pytest.mark.parametrize("to", ["t4", "kernel-tuner", "optuna"])
def test_a_study_of_objects_is_exported_from_python(run, tmp_path, to):
    made = run(problems=Odd("a"), keep_all=True)
    first, second = made.export(to, tmp_path / "a"), Study("s", tmp_path / "results", problems=Odd("a")).export(to)
    assert first == tmp_path / "a" and second.parent == made.path / "export"
    with pytest.raises(UserError, match="--plugin FILE"):
        Study("s", str(tmp_path / "results")).export(to, tmp_path / "c")
    assert not Path(tmp_path / "c").exists()


@pytest.mark.parametrize("to", ["t4", "kernel-tuner"])
def test_any_names_of_parameters_come_back_from_an_export(run, tmp_path, to):
    made = run("exhaustive", Odd("a"), keep_all=True, budget=36)
    (file,) = made.export(to, tmp_path / "a").iterdir()
    space = bbo_suite.problem(f"recorded:{file}").space
    assert [space.name(i) for i in range(len(space))] == ["n", NAME]
    assert space.cardinality == 36


@pytest.mark.parametrize("least", [0.0, 1e-320])
def test_every_command_calls_the_speedup_of_a_cost_of_0_infinite(suite, put, tmp_path, least):
    free = ANY.format(unit="", method="").replace("1.0 + configs.sum(axis=1)", f"{least} + (8.0 - configs.max(axis=1))")
    free = free.replace(
        'choice("x", range(9))), np.zeros(1', 'choice("x", range(9)), choice("y", range(9))), np.zeros(2'
    )
    plugin = ("--plugin", put("any.py", free))
    run = ("--problem", "any/a", "--strategy", "random", "--budget", 70, "--study", "s", *plugin)
    said = [suite("run", *run), suite("best", "s", *plugin), suite("watch", "s"), suite("forecast", "s")]
    assert [(done.code, "infinite" in done.out, "Warning" in done.err) for done in said] == [(0, True, False)] * 4
    assert "infinite" in str(Study("s", tmp_path / "results"))


GRAPH = "Graph(np.ones((2, 1), np.float32), ('f',), np.array([[0, {}]], np.int32))"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"neighbours": "np.array([9, 0])"}, "neighbours have the index 9, but there are 3"),
        ({"neighbours": "np.array([-1, 0])"}, "neighbours have the index -1, but there are 3"),
        ({"neighbours": "np.array([0, 1])"}, "parameter 0 is its own neighbour"),
        ({"neighbours": "np.array([1, 2])"}, "interactions are not symmetric: of 0 and 1, only one has the other"),
        ({"starts": "np.array([0, 2, 4, 4])", "neighbours": "np.array([1, 1, 0, 0])"}, "0 has the neighbour 1 twice"),
        ({"neighbours": "np.array([1.0, 0.0])"}, "neighbours are of type float64, not integers"),
        ({"starts": "np.array([0, 2])"}, "starts must be 4 numbers for 3 parameters"),
        ({"starts": "np.array([0, 1, 2, 3])"}, "from 0 to the number of neighbours"),
        ({"starts": "np.array([0, 2, 1, 2])"}, "starts must not decrease"),
        ({"features": "np.ones((2, 1))"}, "features must have one row per parameter"),
        ({"feature_names": "('one', 'two')"}, "one column per name"),
        ({"features": "np.full((3, 1), np.nan)"}, "a feature is not finite"),
        ({"graph": GRAPH.format(5)}, "the edges of its graph have the index 5, but there are 2"),
        ({"graph": GRAPH.format(1), "edges": "np.array([0, 1, -1])"}, "edges have the index 1, but there are 1"),
        ({"graph": GRAPH.format(1), "nodes": "np.array([0, 2, -1])"}, "nodes have the index 2, but there are 2"),
        ({"nodes": "np.array([0, -1, -1])"}, "nodes have the index 0, but there are 0"),
    ],
)
def test_a_structure_that_does_not_fit_is_an_error_of_the_problem(suite, put, changed, words):
    right = {"starts": "np.array([0, 1, 2, 2])", "neighbours": "np.array([1, 0])"}
    right |= {"features": "np.ones((3, 1))", "feature_names": "('one',)"}
    given = ", ".join(f"{name}={value}" for name, value in (right | changed).items())
    text = ANY.format(unit="", method=f"def structure(self): return Structure({given})").replace(
        'product(choice("x", range(9))), np.zeros(1, int)', "Space(np.full(3, 4)), np.zeros(3, int)"
    )
    plugin = put("any.py", text.replace("choice, product", "Graph, Space, Structure"))
    for command in (("run", "--strategy", "local"), ("recommend",)):
        done = suite(*command, "--plugin", plugin, "--problem", "any/a", "--budget", 5)
        assert done.code == 1
        assert "error: problem any/a declares a structure that does not fit: " in done.err and words in done.err


@pytest.mark.parametrize("where", ["file", "method"])
def test_a_plugin_that_enters_another_folder_leaves_paths_as_they_were_given(suite, put, tmp_path, where):
    enter = f"import os; os.chdir({str(put('away/x', '').parent)!r})"
    text = BASE.replace("from", f"{enter}\nfrom") if where == "file" else BASE.replace("return", f"{enter}; return")
    put("base.py", text)
    settings = ["--problem", "ordering/small-a", "--budget", 20, "--batch", 5, "--study", "s", "--json"]
    done = suite("run", "--plugin", "base.py", "--strategy", "base", *settings)
    assert done.code == 0 and '"complete": true' in done.out
    assert (tmp_path / "results/s").is_dir() and Path.cwd() == tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_files_with_names_of_libraries_where_the_command_runs_hide_none(tmp_path, jobs):
    for name in ("signal", "json", "numpy", "joblib"):
        (tmp_path / f"{name}.py").write_text(BASE)
    own = ["--plugin", "json.py", "--strategy", "json", "--jobs", jobs]
    rest = ["--problem", "tile/rnn", "--budget", "5", "--repeats", "2", "--quiet"]
    command = [sys.executable, "-m", "bbo_suite", "run", *own, *rest]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
