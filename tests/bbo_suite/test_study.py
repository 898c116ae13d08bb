"""`bbo_suite.Study`: what a notebook shows of a stored study."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import bbo_suite
from bbo_suite import Study, UserError

PLUGINS = [Path(__file__).with_name("plugins") / name for name in ("toy.py", "pick.py")]


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
