"""`run` with classes and objects: several processes, resume, and every mistake in one sentence."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from bbo_toys import rows_of

import bbo_suite
from bbo_suite import Evaluations, Problem, Strategy, UserError, choice, option, product
from bbo_suite.plugins import ProblemRecipe, id_of_class
from bbo_suite.registry import Registry

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
def run(tmp_path):
    return lambda strategies, problems, **settings: bbo_suite.run(
        strategies, problems, **{"jobs": 1, "results": tmp_path, **SETTINGS, **settings}
    )


@pytest.mark.slow
def test_classes_and_objects_mixed_with_ids_run_and_resume(run, tmp_path):
    study = run(["random", HillClimb], [Queens("8"), Queens, "recorded/llvm-tree"], repeats=2)
    expected = [(p, s) for p in ("queens/8", "queens/6", "recorded/llvm-tree") for s in ("random", "hill-climb")]
    assert [(r["problem"], r["strategy"]) for r in study[::2]] == expected
    before = {Path(r["path"]): rows_of(Path(r["path"])) for r in study}
    assert run(["random", HillClimb], [Queens("8"), Queens, "recorded/llvm-tree"], repeats=2) == study
    for path in list(before)[::2]:
        whole = (path / "rows.csv").read_bytes()
        (path / "rows.csv").write_bytes(whole[: len(whole) // 2])
    again = run([HillClimb, "random"], ["recorded/llvm-tree", Queens, Queens("8")], repeats=2)
    assert {Path(r["path"]): rows_of(Path(r["path"])) for r in again} == before


def test_registered_classes_and_problems_keep_their_ids(run):
    plugins = [Path(__file__).with_name("plugins") / name for name in ("toy.py", "pick.py")]
    pick, toy = Registry(tuple(plugins)).strategy("pick"), bbo_suite.problem("toy/small", plugins)
    annealing, tree = Registry().strategy("annealing"), bbo_suite.problem("recorded/llvm-tree")
    study = run([annealing, pick], [tree, toy, type(toy)])
    assert {(r["problem"], r["strategy"]) for r in study} == {
        (p, s) for p in ("recorded/llvm-tree", "toy/small") for s in ("annealing", "pick")
    }


def test_options_by_id_and_by_class(run):
    chosen = {"annealing": {"heat": 2, "cooling": "9"}, HillClimb: {"changes": 3, "layers": (1,)}}
    study = run(["annealing", HillClimb], Queens, options=chosen)
    heads = [json.loads(Path(r["path"], "run.json").read_text())["options"] for r in study]
    assert (heads[0]["heat"], heads[1]) == (2.0, {"changes": 3, "layers": [1]})
    assert run(["annealing", HillClimb], Queens, options=chosen) == study
    assert run("annealing", Queens, option_texts={"heat": "2", "cooling": "9"}) == study[:1]


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
def test_mistakes_are_one_sentence(run, strategies, problems, settings, words):
    with pytest.raises(UserError, match=words):
        run(strategies, problems, **settings)


def test_what_cannot_travel_is_refused_with_several_processes(run):
    with pytest.raises(UserError, match=r"generator.*jobs=1"):
        run("random", Queens(6, weight=(i for i in ())), jobs=2, repeats=2)


@pytest.mark.parametrize("jobs", [None, 2])
def test_one_run_is_made_in_this_process_and_needs_no_pickling(run, jobs):
    class Here(float):
        """A weight that cannot be sent."""

        def __reduce__(self):
            raise TypeError("it stays here")

    (summary,) = run("random", Queens(6, weight=Here(1.0)), jobs=jobs)
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


def test_a_changed_helper_is_refused(run, tmp_path, monkeypatch):
    first = imported(tmp_path / "a", MODULE, monkeypatch)
    run(first.Pick, first.Sum(4), jobs=2, repeats=2)
    other = imported(tmp_path / "b", MODULE.replace("+ 1.0", "+ 2.0"), monkeypatch)
    with pytest.raises(UserError, match="not comparable to content"):
        run("random", other.Sum(4))
    with pytest.raises(UserError, match="other code of strategy pick"):
        run(other.Pick, first.Sum(4))


@pytest.mark.slow
def test_several_processes_run_the_code_that_is_loaded_now(run, tmp_path, monkeypatch):
    bests = []
    for number, text in enumerate([MODULE, MODULE.replace("+ 1.0", "+ 2.0")]):
        module = imported(tmp_path / str(number), text, monkeypatch)
        bests.append(max(r["best"] for r in run(["random", module.Pick], module.Sum(2), jobs=2, study=f"s{number}")))
    assert bests == [1.0, 2.0]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_has_no_source_runs_once(run, tmp_path, capsys, jobs):
    held = {"__name__": "__main__"}
    exec(MODULE, held)
    study = run([held["Pick"], "random"], [held["Sum"](3)], jobs=jobs)
    assert [r["best"] for r in study] == [1.0, 1.0]
    assert "this study cannot be resumed, because" in capsys.readouterr().err
    for strategies, problem in (held["Pick"], Queens("6")), ("random", held["Sum"](3)):
        run(strategies, problem, study="t")
        with pytest.raises(UserError, match="no source file"):
            run(strategies, problem, study="t")


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
