"""What tells whether code and arguments that are not ours have changed."""

import linecache
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from bbo_suite import Problem, Space
from bbo_suite.core.versions import arguments_version, code_version, is_ours, value_version
from bbo_suite.plugins import classes_of
from bbo_suite.registry import Registry

PLUGIN = """
from bbo_suite import Evaluations, Problem, Space
{constant}
def cost(rows):
    return rows.sum(axis=1) + {add}
class Sum(Problem):
    instances = ("a",)
    def __init__(self, instance, scale=1):
        self.space, self.default = Space([3, 3]), [0, 0]
    def evaluate(self, rows):
        return Evaluations.of(cost(rows))
"""


def loaded(folder, add=1, constant=""):
    folder.mkdir()
    (folder / "sums.py").write_text(PLUGIN.format(add=add, constant=constant))
    (found,) = classes_of(folder / "sums.py", Problem)
    return found


def test_a_version_covers_the_whole_module_and_the_arguments(tmp_path):
    first, same, helper, constant = (
        loaded(tmp_path / name, *change)
        for name, change in {"a": (), "b": (), "c": (2,), "d": (1, "LIMIT = 4")}.items()
    )
    assert first("a").fingerprint() == same("a").fingerprint()
    others = [helper("a"), constant("a"), first("a", 2), first("a", scale=2), first("b")]
    assert len({each.fingerprint() for each in [first("a"), *others]}) == 6
    assert {each.why_unversioned() for each in others} == {""}


@pytest.mark.parametrize(
    ("imported", "changed", "counts"),
    [
        ("import near", "near.py", True),
        ("from near import f", "near.py", True),
        ("from pack.part import f", "pack/part.py", True),
        ("from pack.part import f", "pack/other.py", True),
        ("import near", "deep.py", True),  # which near.py imports
        ("def late():\n    import near", "near.py", True),
        ("import near", "alone.py", False),
        ("import near", "json.py", False),  # Python's own is the one that is imported
    ],
)
def test_a_version_covers_files_beside_a_plugin_that_it_imports(tmp_path, monkeypatch, imported, changed, counts):
    (tmp_path / "pack").mkdir()
    near = {"near.py": "import deep, json\ndef f(): pass\n", "deep.py": "", "alone.py": "", "json.py": "broken("}
    for name, text in {**near, "pack/__init__.py": "", "pack/part.py": "def f(): pass\n", "pack/other.py": ""}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sums.py").write_text(PLUGIN.format(add=1, constant=imported))
    for name in ("near", "deep", "pack", "pack.part"):
        sys.modules.pop(name, None)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (found,) = classes_of(tmp_path / "sums.py", Problem)
    before = code_version(found)
    with (tmp_path / changed).open("a") as file:
        file.write("# changed, and of another size\n")
    assert (code_version(found) != before) == counts


def test_built_ins_are_ours():
    assert is_ours(Registry().strategy("random")) and is_ours(type(Registry().problem("recorded/llvm-tree")))
    assert is_ours(Registry().strategy("optuna:TPESampler")) and not is_ours(Mine)
    assert not is_ours(type(Problem)("Variant", (Mine,), {})) and code_version(type(Problem)("V", (Mine,), {}))


class Mine(Problem):
    def __init__(self, *arguments):
        self.space, self.default = Space([2]), [0]

    def evaluate(self, configs):
        raise NotImplementedError


def executed(text, name, file="<string>", module="__main__"):
    held = {"__name__": module, "Problem": Problem, "Space": Space, "Mine": Mine}
    exec(compile(text, file, "exec"), held)
    return held[name]


def test_a_class_without_source_has_no_version():
    made = executed("class Typed(Mine):\n    def paste(self, config): return 'x'", "Typed")
    assert code_version(made) == ""
    assert "has no source file" in made().why_unversioned() and made().fingerprint() == made().fingerprint()


def cells(texts):
    """Execute the cells of a notebook as IPython does, and return the names that they define."""
    held = {"__name__": "__main__", "Mine": Mine}
    for number, text in enumerate(texts):
        file = f"<ipython-input-{number}-{hash(text)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), held)
    return held


def test_a_class_in_a_notebook_has_the_version_of_its_cells():
    used = "def weight(x):\n    return 2 * x\n"
    own = "class Typed(Mine):\n    def paste(self, config):\n        return [weight(x) for x in config]\n"
    first, again, changed = (
        code_version(cells(texts)["Typed"])
        for texts in ([used, own], ["1 + 1", used, "unused = 4", own], [used.replace("2", "3"), own])
    )
    assert first and first == again != changed


def test_a_class_without_methods_has_the_version_of_its_module():
    assert code_version(type("Other", (Mine,), {"__module__": "nowhere"})) == ""
    assert code_version(Pair) == code_version(Mine) == code_version(Bare) != ""


class Bare(Mine):
    pass


@dataclass(frozen=True)
class Pair:
    left: object
    right: object = 1


class Colour(Enum):
    RED = 1


def test_equal_arguments_have_equal_versions_and_others_do_not():
    values = [None, True, 1, 1.0, "1", b"1", Colour.RED, Path("a"), Pair(1), Space([2, 3]), loaded]
    values += [np.arange(3), np.arange(3.0), np.full(2, 1), [1, 2], (1, 2), {1, 2}, [], {"a": 1}, {"a": 2}]
    values += [Mine, Mine(1), Mine(2)]
    versions = [value_version(value) for value in values]
    assert "" not in versions and len(set(versions)) == len(versions)
    assert value_version({2, 1}) == value_version({1, 2}) and value_version(Mine(1)) == value_version(Mine(1))


def test_the_version_of_a_function_covers_its_closure():
    def adder(number):
        return lambda x: x + number

    assert value_version(adder(1)) == value_version(adder(1)) != value_version(adder(2))


@pytest.mark.parametrize("value", [object(), np.random.default_rng(0), [object()], {"a": object()}, Pair(object())])
def test_a_value_that_cannot_be_compared_has_no_version(value):
    assert value_version(value) == "" and arguments_version((1, value), {}) == ""
    assert "cannot be compared" in Mine(value).why_unversioned()
