"""The suite from Python: runs, also of classes and objects, and what a notebook shows of a stored study."""

import itertools
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from bbo_toys import rows_of
from matplotlib.figure import Figure

import bbo_suite
from bbo_suite import Evaluations, Problem, Strategy, Study, UserError, choice, option, product
from bbo_suite.plugins import ProblemRecipe, id_of_class
from bbo_suite.registry import Registry
from bbo_suite.runs.study_plan import StudyPlan, chosen_options, default_name
from bbo_suite.verify.validate import Finding, validate

PLUGINS = [Path(__file__).with_name("plugins") / name for name in ("toy.py", "pick.py")]


@pytest.fixture
def run(tmp_path):
    """Return `bbo_suite.run` with the toys, one process and an empty folder."""

    def call(strategies="pick", problems="toy/small", **settings):
        settings = {"budget": 50, "jobs": 1, "results": tmp_path, "plugins": PLUGINS, **settings}
        return bbo_suite.run(strategies, problems, **settings)

    return call


def test_run_and_load(run, tmp_path):
    summaries = run(["pick", "random"], ["toy/small", "toy/large"], repeats=2, study="s", budget=30)
    keys = ("problem", "strategy", "seed")
    expected = itertools.product(["toy/small", "toy/large"], ["pick", "random"], [0, 1])
    assert [tuple(s[key] for key in keys) for s in summaries] == list(expected)
    frame = bbo_suite.load("s", tmp_path, texts=["digest"])
    assert len(frame) == 8 * 30
    for summary in summaries:
        rows = frame[(frame[list(keys)] == [summary[key] for key in keys]).all(axis=1)]
        assert rows["value"].min() == summary["best"]
        assert rows["speedup"].iloc[-1] == summary["speedup"] == summary["default"] / summary["best"]
        assert rows["digest"].nunique() == summary["unique"]


@pytest.mark.slow
def test_again_and_another_folder_and_processes_give_the_same(run, tmp_path, monkeypatch):
    first = run(study="s", repeats=2)
    assert run(study="s", repeats=2) == first
    monkeypatch.chdir(PLUGINS[0].parent)
    other = run(study="s", repeats=2, jobs=2, results=tmp_path / "other", plugins=["toy.py", "pick.py"])
    assert [s["best"] for s in other] == [s["best"] for s in first]
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")  # the worker processes are still in the folder of before
    relative = run(study="s", repeats=2, jobs=2, results="here")
    assert [s["best"] for s in relative] == [s["best"] for s in first]
    assert (tmp_path / "deep/here/s").is_dir()


def test_problem():
    problem = bbo_suite.problem("toy/small", PLUGINS)
    assert problem.evaluate(np.full((2, 4), 3)).values.tolist() == [1.0, 1.0]
    with pytest.raises(UserError, match=r"Did you mean 'toy/small'\?"):
        bbo_suite.problem("toy/smal", PLUGINS)


def test_a_failed_run_is_an_error_and_the_others_are_stored(run, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(PLUGINS[1].read_text().replace("return self", "raise ValueError('no')\n        return self"))
    with pytest.raises(UserError, match="bad raised ValueError in ask"):
        run(["bad", "random"], plugins=[*PLUGINS, bad], study="s")
    assert set(bbo_suite.load("s", tmp_path)["strategy"]) == {"random"}


def test_interrupt_in_a_program_ends_the_program(run, tmp_path):
    nosy = tmp_path / "nosy.py"
    text = PLUGINS[1].read_text().replace("return self", "signal.raise_signal(signal.SIGINT)\n        return self")
    nosy.write_text("import signal\n" + text)
    before = signal.getsignal(signal.SIGINT)  # which may be "ignore" where the tests run in the background
    with pytest.raises(KeyboardInterrupt):
        run("nosy", plugins=[*PLUGINS, nosy], study="s", batch=10)
    assert len(bbo_suite.load("s", tmp_path)) == 10
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("option", ["portfolio.members=pick,random", "joint.schedule=all: pick"])
def test_a_plugin_is_a_member_and_a_step(run, tmp_path, option):
    key, _, value = option.partition("=")
    strategy = key.partition(".")[0]
    first, again = (run(strategy, study="s", option_texts={key: value}, batch=10, jobs=jobs) for jobs in (1, 2))
    assert first == again and first[0]["evaluations"] == 50
    (verdict,) = validate(Registry(tuple(PLUGINS)), "s", tmp_path, 50, lambda number, words: None)
    assert verdict.replayed is Finding.HOLDS


def test_options_of_one_and_of_all():
    registry = Registry((PLUGINS[1],))
    texts = {"size": "4", "evolution.crossover": "0.2", "pick.rate": "0.1"}
    chosen = chosen_options(registry, ["pick", "evolution"], texts)
    assert (chosen["pick"].size, chosen["pick"].rate, chosen["evolution"].crossover) == (4, 0.1, 0.2)
    with pytest.raises(UserError, match="Did you mean 'crossover'"):
        chosen_options(registry, ["evolution"], {"evolution.crosover": "0.2"})


def test_options_of_strategies_with_dots_in_their_names(tmp_path):
    for name in ("a", "a.b"):
        (tmp_path / f"{name}.py").write_text(PLUGINS[1].read_text())
    registry = Registry((tmp_path / "a.py", tmp_path / "a.b.py"))
    chosen = chosen_options(registry, ["a", "a.b"], {"a.b.size": "7", "a.rate": "0.1"})
    assert (chosen["a"].size, chosen["a.b"].size, chosen["a"].rate) == (3, 7, 0.1)


def test_default_names_differ_exactly_when_settings_do():
    registry = Registry((PLUGINS[1],))

    def name(strategies=("pick", "random"), problems=("a/b", "a/c"), budget=1, batch=2, seed=3, **texts):
        return default_name(strategies, problems, chosen_options(registry, strategies, texts), budget, batch, seed)

    assert name() == name() == name(("random", "pick"), ("a/c", "a/b")) == name(size="3")
    others = [
        name(strategies=("pick",)),
        name(problems=("a/b",)),
        name(problems=("a-b",)),
        name(problems=("a:b",)),
        name(budget=2),
        name(batch=3),
        name(seed=4),
        name(size="4"),
    ]
    assert len({name(), *others}) == len(others) + 1


@pytest.mark.parametrize("problem", ["größe:日本/ü.hlo", "f:/" + "x" * 500, "f:../../etc", "-/-", "f/.", "[a]/$b"])
def test_default_names_are_names_of_studies(tmp_path, problem):
    name = default_name(["pick"], [problem], {}, 1, 1, 0)
    StudyPlan(name, tmp_path, Registry(), (problem,), {})
    assert len(name) < 100
    assert json.loads(json.dumps(name)) == name


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a study of two strategies on two problems, and its results folder."""
    results = tmp_path_factory.mktemp("results")
    settings = {"budget": 60, "batch": 20, "repeats": 3, "jobs": 1, "plugins": PLUGINS, "results": results}
    return bbo_suite.run(["pick", "annealing"], ["toy/small", "toy/large"], study="s", **settings), results


def test_it_is_a_sequence_of_summaries(made):
    study, results = made
    assert (
        len(study) == 12 and study[0]["seed"] == 0 and [run["strategy"] for run in study[2:4]] == ["pick", "annealing"]
    )
    assert study == list(study) and study != list(study)[1:] and study.path == results / "s"
    opened = Study("s", results)
    key = lambda run: run["path"]  # noqa: E731
    assert sorted(opened, key=key) == sorted(study, key=key)


def test_a_call_holds_its_runs_and_the_folder_all(made):
    study, results = made
    settings = {"budget": 60, "batch": 20, "jobs": 1, "plugins": PLUGINS, "results": results}
    part = bbo_suite.run("pick", "toy/small", study="s", **settings)
    assert part == study[:1] and len(part.frame()) == 12 * 60 and len(Study("s", results)) == 12


@pytest.mark.slow
def test_frame_diagnostics_and_best(made):
    study, results = made
    frame = study.frame(["digest"])
    assert len(frame) == 12 * 60 and {"digest", "speedup"} <= set(frame)
    assert list(study.diagnostics()) == ["problem", "strategy", "seed", "evaluation", "name", "value"]
    best = {one["problem"]: one for one in study.best()}
    for problem, one in best.items():
        assert one["speedup"] == max(run["speedup"] for run in study if run["problem"] == problem)
        assert one["measured_again"]["values"][0] == one["value"] and one["paste"]
    assert [one["why_not_measured"] is None for one in Study("s", results).best()] == [False, False]  # without plugins
    assert Study("s", results, PLUGINS).best() == study.best()


@pytest.mark.slow
def test_figures_and_report(made):
    study, _ = made
    assert isinstance(study.plot(), Figure)
    assert study.plot()._repr_png_().startswith(b"\x89PNG")  # a notebook shows it without pyplot
    assert len(study.plot("speedup").axes) > len(study.plot("speedup", problems="toy/small").axes)
    with pytest.raises(UserError, match="'speedup'"):
        study.plot("sped")
    with pytest.raises(UserError, match="models"):
        study.plot("models")
    for name in ("convergence", "heat", "program"):
        with pytest.raises(UserError, match="typo"):
            study.plot(name, problems="typo")
    assert "<html" in study.report().read_text(encoding="utf-8")


def test_it_shows_a_table(made):
    lines = repr(made[0]).splitlines()
    assert lines[0] == f"study 's' in {made[1] / 's'}"
    assert lines[1].split() == ["problem", "strategy", "runs", "median", "speedup"]
    speedups = sorted(run["speedup"] for run in made[0] if (run["problem"], run["strategy"]) == ("toy/small", "pick"))
    assert lines[2].split() == ["toy/small", "pick", "3", f"{speedups[1]:.4f}"]
    assert len({len(line) for line in lines[1:]}) == 1 and len(lines) == 6


def test_a_study_inside_the_working_directory_has_a_relative_path(made, monkeypatch):
    study = made[0]
    monkeypatch.chdir(study.path.parents[1])
    place = f"{study.path.parent.name}/s"
    assert repr(study).splitlines()[0] == f"study 's' in {place}" and f"in {place}<" in study._repr_html_()


def test_names_in_a_notebook_are_escaped(tmp_path):
    plugin = tmp_path / "a<b.py"
    plugin.write_text(PLUGINS[1].read_text())
    study = bbo_suite.run("a<b", "recorded/llvm-tree", budget=5, jobs=1, plugins=[plugin], results=tmp_path, study="s")
    assert "<td>a&lt;b</td>" in study._repr_html_()


def test_the_public_names():
    assert {"run", "Study", "Problem", "figures", "stats", "LiveProblem", "__version__"} <= set(dir(bbo_suite))
    assert not {"api", "errors", "core", "import_module", "Any"} & set(dir(bbo_suite))
    assert bbo_suite.figures.FIGURES and bbo_suite.stats.best_so_far and bbo_suite.LiveProblem.__mro__[-2:]
    assert all(hasattr(bbo_suite, name) for name in dir(bbo_suite))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bbo_suite.nothing  # noqa: B018
    assert (Path(bbo_suite.__file__).parent / "py.typed").exists()


CALL = """
import sys, types, bbo_suite
if sys.argv[1] == "notebook":
    sys.modules["ipykernel"] = types.ModuleType("ipykernel")
    sys.modules["ipywidgets"] = None  # with it, lines are drawn by the notebook, which is none here
print(bbo_suite.__version__)
bbo_suite.run("random", "recorded/llvm-tree", budget=5, jobs=1, results=sys.argv[2], quiet=eval(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "quiet", "shows"),
    [("script", None, False), ("script", False, True), ("notebook", None, True), ("notebook", True, False)],
)
def test_where_progress_is_shown(tmp_path, place, quiet, shows):
    command = [sys.executable, "-c", CALL, place, str(tmp_path), str(quiet)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ("loading recorded/llvm-tree" in done.stderr) is shows
    assert done.stdout.strip() == json.loads(json.dumps(bbo_suite.__version__))


SETTINGS = {"budget": 40, "batch": 10, "study": "s"}


class Queens(Problem):
    """Attacks among queens, one a row."""

    instances = ("6", "8")

    def __init__(self, size, weight=1.0):
        n, self.weight = int(size), weight
        self.space = product(*(choice(f"row {i}", list(range(n))) for i in range(n)))
        self.default = np.zeros(n, int)

    def evaluate(self, configs):
        return Evaluations.of(1 + self.weight * attacks(configs))


def attacks(configs):
    rows = np.arange(configs.shape[1])
    same = [(part[:, :, None] == part[:, None, :]).sum(axis=(1, 2)) for part in (configs, configs + rows)]
    return same[0] + same[1]


@dataclass(frozen=True)
class ClimbOptions:
    changes: int = option(1, "how many", low=1, high=9)
    layers: tuple = (4, 2)


class HillClimb(Strategy):
    """Changes the best candidate so far."""

    Options = ClimbOptions

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.best, self.cost = self.task.default, np.inf

    def ask(self, n):
        rows = np.tile(self.best, (n, 1))
        for _ in range(self.options.changes):
            columns = self.rng.integers(0, rows.shape[1], n)
            rows[np.arange(n), columns] = self.rng.integers(0, self.task.space.sizes[columns])
        return rows

    def tell(self, configs, values):
        if values.min() < self.cost:
            self.best, self.cost = configs[values.argmin()], values.min()


@pytest.fixture
def run_objects(tmp_path):
    return lambda strategies, problems, **settings: bbo_suite.run(
        strategies, problems, **{"jobs": 1, "results": tmp_path, **SETTINGS, **settings}
    )


@pytest.mark.slow
def test_classes_and_objects_mixed_with_ids_run_and_resume(run_objects, tmp_path):
    study = run_objects(["random", HillClimb], [Queens("8"), Queens, "recorded/llvm-tree"], repeats=2)
    expected = [(p, s) for p in ("queens/8", "queens/6", "recorded/llvm-tree") for s in ("random", "hill-climb")]
    assert [(r["problem"], r["strategy"]) for r in study[::2]] == expected
    before = {Path(r["path"]): rows_of(Path(r["path"])) for r in study}
    assert run_objects(["random", HillClimb], [Queens("8"), Queens, "recorded/llvm-tree"], repeats=2) == study
    for path in list(before)[::2]:
        whole = (path / "rows.csv").read_bytes()
        (path / "rows.csv").write_bytes(whole[: len(whole) // 2])
    again = run_objects([HillClimb, "random"], ["recorded/llvm-tree", Queens, Queens("8")], repeats=2)
    assert {Path(r["path"]): rows_of(Path(r["path"])) for r in again} == before


@pytest.mark.slow
def test_registered_classes_and_problems_keep_their_ids(run_objects):
    plugins = [Path(__file__).with_name("plugins") / name for name in ("toy.py", "pick.py")]
    pick, toy = Registry(tuple(plugins)).strategy("pick"), bbo_suite.problem("toy/small", plugins)
    annealing, tree = Registry().strategy("annealing"), bbo_suite.problem("recorded/llvm-tree")
    study = run_objects([annealing, pick], [tree, toy, type(toy)])
    assert {(r["problem"], r["strategy"]) for r in study} == {
        (p, s) for p in ("recorded/llvm-tree", "toy/small") for s in ("annealing", "pick")
    }


@pytest.mark.slow
def test_options_by_id_and_by_class(run_objects):
    chosen = {"annealing": {"heat": 2, "cooling": "9"}, HillClimb: {"changes": 3, "layers": (1,)}}
    study = run_objects(["annealing", HillClimb], Queens, options=chosen)
    heads = [json.loads(Path(r["path"], "run.json").read_text())["options"] for r in study]
    assert (heads[0]["heat"], heads[1]) == (2.0, {"changes": 3, "layers": [1]})
    assert run_objects(["annealing", HillClimb], Queens, options=chosen) == study
    assert run_objects("annealing", Queens, option_texts={"heat": "2", "cooling": "9"}) == study[:1]


class Annealing(HillClimb):
    pass


class Fusion(Queens):
    pass


class Half(Strategy):
    pass


class Endless(Problem):
    def evaluate(self, configs):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("strategies", "problems", "settings", "words"),
    [
        (3, Queens, {}, r"3 \(int\) is not a strategy; give an id or a subclass of bbo_suite.Strategy"),
        ("random", HillClimb, {}, r"HillClimb \(ABCMeta\) is not a problem; give an id, a subclass"),
        (Half, Queens, {}, "class Half is incomplete: it does not define ask"),
        ("random", Endless, {}, r"problem class Endless lists no instances; give an object instead, such as Endless"),
        (Annealing, Queens, {}, "class Annealing would have the id 'annealing', which another strategy has; rename it"),
        ("random", Fusion, {}, "class Fusion has the name of a family of problems, 'fusion'; rename it"),
        ("random", [Queens(8), Queens("8")], {}, "two problems would have the id 'queens/8'"),
        ("random", Queens, {"options": {"heat": 2}}, r"the options of 'heat' must be a dict, not 2; write options=\{"),
        ("random", Queens, {"options": {"annealing": {}}}, "options are for strategy 'annealing', which is not among"),
        (HillClimb, Queens, {"options": {"hill-climb": {"changes": 2.5}}}, "changes of strategy hill-climb must be of"),
        (HillClimb, Queens, {"options": {HillClimb: {"change": 2}}}, "Did you mean 'changes'"),
        ("random", Queens, {"budget": 1e3}, "budget must be a whole number, not 1000.0"),
        ("random", Queens, {"budget": True}, "budget must be a whole number, not True"),
    ],
)
def test_mistakes_are_one_sentence(run_objects, strategies, problems, settings, words):
    with pytest.raises(UserError, match=words):
        run_objects(strategies, problems, **settings)


def test_what_cannot_travel_is_refused_with_several_processes(run_objects):
    with pytest.raises(UserError, match=r"generator.*jobs=1"):
        run_objects("random", Queens(6, weight=(i for i in ())), jobs=2, repeats=2)


@pytest.mark.parametrize("jobs", [None, 2])
def test_one_run_is_made_in_this_process_and_needs_no_pickling(run_objects, jobs):
    class Here(float):
        """A weight that cannot be sent."""

        def __reduce__(self):
            raise TypeError("it stays here")

    (summary,) = run_objects("random", Queens(6, weight=Here(1.0)), jobs=jobs)
    assert summary["evaluations"] == 40


MODULE = """
import numpy as np
from bbo_suite import Evaluations, Problem, Strategy, choice, product

def cost(configs):
    return configs.sum(axis=1) + 1.0

class Sum(Problem):
    def __init__(self, size):
        self.space = product(*(choice(str(i), [0, 1]) for i in range(size)))
        self.default = np.zeros(size, int)

    def evaluate(self, configs):
        return Evaluations.of(cost(configs))

class Pick(Strategy):
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
"""


def imported(folder, text, monkeypatch):
    folder.mkdir()
    (folder / "user_module.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "user_module", raising=False)
    import user_module

    return user_module


def test_a_changed_helper_is_refused(run_objects, tmp_path, monkeypatch):
    first = imported(tmp_path / "a", MODULE, monkeypatch)
    run_objects(first.Pick, first.Sum(4), jobs=2, repeats=2)
    other = imported(tmp_path / "b", MODULE.replace("+ 1.0", "+ 2.0"), monkeypatch)
    with pytest.raises(UserError, match="not comparable to content"):
        run_objects("random", other.Sum(4))
    with pytest.raises(UserError, match="other code of strategy pick"):
        run_objects(other.Pick, first.Sum(4))


@pytest.mark.slow
def test_several_processes_run_the_code_that_is_loaded_now(run_objects, tmp_path, monkeypatch):
    bests = []
    for number, text in enumerate([MODULE, MODULE.replace("+ 1.0", "+ 2.0")]):
        module = imported(tmp_path / str(number), text, monkeypatch)
        bests.append(
            max(r["best"] for r in run_objects(["random", module.Pick], module.Sum(2), jobs=2, study=f"s{number}"))
        )
    assert bests == [1.0, 2.0]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_has_no_source_runs_once(run_objects, tmp_path, capsys, jobs):
    held = {"__name__": "__main__"}
    exec(MODULE, held)
    study = run_objects([held["Pick"], "random"], [held["Sum"](3)], jobs=jobs)
    assert [r["best"] for r in study] == [1.0, 1.0]
    assert "this study cannot be resumed, because" in capsys.readouterr().err
    for strategies, problem in (held["Pick"], Queens("6")), ("random", held["Sum"](3)):
        run_objects(strategies, problem, study="t")
        with pytest.raises(UserError, match="no source file"):
            run_objects(strategies, problem, study="t")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("HillClimb", "hill-climb"), ("X", "x"), ("MBOSearch", "mbo-search"), ("a_b", "a-b"), ("Two2Three", "two2-three")],
)
def test_ids_of_classes(name, expected):
    assert id_of_class(type(name, (), {})) == expected


def test_ids_of_problems():
    def named(*arguments, **keywords):
        return ProblemRecipe.of(Queens, arguments, keywords).id

    assert named(8, "a b", x=1.5) == "queens/8-a_b-x=1.5" and named() == "queens/instance"
    assert named(np.arange(3)) == named(np.arange(3)) != named(np.arange(4)) and len(named("x" * 500)) < 30
    assert named(object()) == "queens/object"
