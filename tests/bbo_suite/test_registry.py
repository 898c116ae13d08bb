from pathlib import Path

import pytest

from bbo_suite import Problem, Strategy, UserError
from bbo_suite.registry import Registry

PLUGINS = Path(__file__).with_name("plugins")


def test_built_ins_are_there_and_load():
    registry = Registry()
    assert {"random", "exhaustive", "annealing", "evolution"} <= set(registry.strategies())
    assert all(issubclass(load(), Strategy) for load in registry.strategies().values())
    assert all(issubclass(load(), Problem) for load in registry.families().values())
    assert "fusion/resnet50" in registry.instances()


def test_plugin_by_its_stem():
    registry = Registry((PLUGINS / "toy.py", PLUGINS / "pick.py"))
    assert registry.strategy("pick").__name__ == "Pick"
    problem = registry.problem("toy/small")
    assert problem.id == "toy/small"
    assert registry.problem("toy/small") is problem
    assert registry.load("toy/small") is not problem


@pytest.mark.parametrize("load", [lambda known: known.strategy("Picks"), lambda known: known.problem("Picks/a")])
def test_a_plugin_that_is_asked_for_by_another_name_says_its_own(load):
    with pytest.raises(UserError, match="A plugin has the name of its file: 'pick'"):
        load(Registry((PLUGINS / "pick.py",)))


def test_a_family_without_instances_says_how_its_problems_are_written():
    with pytest.raises(UserError, match="'several' has none of its own: write several:llvm/lz"):
        Registry().problem("several/llvm/lz")


def test_same_file_twice_and_by_another_spelling_is_one_plugin(monkeypatch):
    monkeypatch.chdir(PLUGINS)
    registry = Registry((PLUGINS / "pick.py", Path("pick.py"), Path("pick.py"), Path("../plugins/pick.py")))
    assert registry.strategy("pick") is Registry((Path("pick.py"),)).strategy("pick")


def test_two_files_of_one_name_are_refused(tmp_path):
    (tmp_path / "pick.py").write_text((PLUGINS / "pick.py").read_text())
    with pytest.raises(UserError, match="another strategy 'pick'"):
        Registry((PLUGINS / "pick.py", tmp_path / "pick.py")).strategies()


@pytest.mark.parametrize("stem", ["a b", "größe", "x.y", "class"])
def test_unusual_file_names(tmp_path, stem):
    file = tmp_path / f"{stem}.py"
    file.write_text((PLUGINS / "pick.py").read_text())
    assert issubclass(Registry((file,)).strategy(stem), Strategy)


def test_abstract_and_imported_classes_are_no_plugins(tmp_path):
    file = tmp_path / "base.py"
    lines = ["from bbo_strategies.annealing import Annealing", "from bbo_suite import Strategy"]
    file.write_text("\n".join([*lines, "class Half(Strategy): pass", "class Mine(Annealing): pass"]))
    assert Registry((file,)).strategy("base").__name__ == "Mine"


@pytest.mark.parametrize("error", [ImportError("no x"), AttributeError("no y"), ValueError(), SyntaxError("bad")])
def test_entry_point_that_cannot_be_imported(points, error):
    def load():
        raise error

    points("broken", load)
    with pytest.raises(UserError, match="broken cannot be imported"):
        Registry().strategy("broken")
    assert Registry().strategy("random")


def test_file_of_a_family(tmp_path):
    file = tmp_path / "filed.py"
    file.write_text(
        "import numpy as np\n"
        "from bbo_suite import Evaluations, Problem, Space\n"
        "class Filed(Problem):\n"
        "    def __init__(self, n):\n"
        "        self.space, self.default = Space([2] * n), np.zeros(n, int)\n"
        "    @classmethod\n"
        "    def from_file(cls, path):\n"
        "        return cls(int(open(path).read()))\n"
        "    def evaluate(self, configs):\n"
        "        return Evaluations.of(configs.sum(axis=1))\n"
    )
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "size.txt").write_text("5")
    registry = Registry((file,))
    problem_id = f"filed:{tmp_path}/a:b/size.txt"
    assert len(registry.problem(problem_id).space) == 5
    (tmp_path / "a:b" / "size.txt").write_text("6")  # a session goes on after a file is edited
    assert len(Registry((file,)).problem(problem_id).space) == 6
    assert registry.problem(problem_id) is registry.problem(problem_id)
    with pytest.raises(UserError, match=r"filed:/none.*FileNotFoundError"):
        registry.problem("filed:/none")
    with pytest.raises(UserError, match="filed:path"):
        registry.problem("filed")


MANY = """
from bbo_suite import Strategy, UserError
class Many(Strategy):
    "Many."
    has_variants = True
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
    @classmethod
    def variants(cls):
        return ("North", "South", "Gone")
    @classmethod
    def variant(cls, name):
        if name == "Gone":
            raise UserError("strategy many:Gone needs gone, which is not installed: pip install gone")
        return type(name, (cls,), {"has_variants": False})
"""


@pytest.fixture
def many(tmp_path):
    (tmp_path / "many.py").write_text(MANY)
    return Registry((tmp_path / "many.py",))


def test_variant_by_its_name(many):
    assert many.strategy("many:North").__name__ == "North"
    assert many.strategies()["many"]().has_variants


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("many", "choose many:North, many:South, many:Gone or another of its 3; `show many` names them"),
        ("many:", "has several variants"),
        ("many:Nort", "Did you mean 'many:North'"),
        ("many:Gone", "pip install gone"),
        ("mny:North", "Did you mean 'many'"),
        ("auto", "The commands run and tune know auto; elsewhere, take the strategy that `recommend` names"),
        ("random:North", "'random' has no variants; leave out ':North'"),
    ],
)
def test_variant_that_is_none(many, name, words):
    with pytest.raises(UserError, match=words):
        many.strategy(name)
