"""Pictures of what was found and of a space; figures as SVG, in which what is marked says what it shows."""

import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import bbo_suite
from bbo_suite import Study, UserError
from bbo_suite.core.program import Change, Kernel, Program, Words
from bbo_suite.figures import interactive, program, space, style
from bbo_suite.figures.interactive import mark, svg
from bbo_suite.figures.outcome import draw_changes
from bbo_suite.figures.program import alike, neighbours, regions


def made(*kernels, edges=()):
    """Return a program of kernels, given as name, cost, and further members."""
    parts = [Kernel(name, cost, (*members, name)) for name, cost, *members in kernels]
    numbers = {kernel.name: i for i, kernel in enumerate(parts)}
    pairs = [[numbers[a], numbers[b]] for a, b in edges]
    return Program(tuple(parts), np.array(pairs, int).reshape(-1, 2))


BEFORE = made(("a", 5.0), ("b", 3.0), ("c", 2.0), ("d", 4.0), ("e", 1.0), ("x", 3.0), ("y", 2.0), ("z", 6.0, "w"),
              edges=["ab", "bc", "cd", "de", "xy"])  # fmt: skip
AFTER = made(("a", 5.0), ("c", 3.5, "b"), ("d", 4.0), ("e", 1.0), ("y", 3.5, "x"), ("w", 1.0), ("z", 6.5),
             edges=["ac", "cd", "de", "wz"])  # fmt: skip
"""b moved into c and x into y, with equal gains; w left z, which cost 1.5."""


def found():
    return [
        (names(BEFORE, r.before), names(AFTER, r.after), r.gain)
        for group in alike(BEFORE, AFTER, regions(BEFORE, AFTER))
        for r in group
    ]


def names(drawn, numbers):
    return "".join(drawn.kernels[i].name for i in numbers)


def test_regions_are_kernels_that_became_others():
    assert found() == [("bc", "c", 1.5), ("xy", "y", 1.5), ("z", "wz", -1.5)]
    assert regions(BEFORE, BEFORE) == []


def test_the_same_change_in_several_places_is_one_group():
    groups = alike(BEFORE, AFTER, regions(BEFORE, AFTER))
    assert [len(group) for group in groups] == [2, 1]
    data = program.program_data(BEFORE, AFTER)
    rows = data[data["region"] == 1]
    assert rows[["places", "side", "kernel", "cost", "instructions"]].to_numpy().tolist() == [
        [2, "before", "b", 3.0, 1], [2, "before", "c", 2.0, 1], [2, "after", "c", 3.5, 2],
    ]  # fmt: skip


def test_neighbours_are_the_kernels_around():
    read, readers = neighbours(BEFORE, [1, 2])
    assert (names(BEFORE, read), names(BEFORE, readers)) == ("a", "d")


def titles(figure):
    root = ElementTree.fromstring(interactive.svg(figure))
    return [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]


def written(figure):
    return [text.get_text() for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.slow
def test_the_picture_says_what_each_region_gains_and_names_instructions_at_the_pointer():
    figure, data = program.draw(BEFORE, AFTER, "seconds", "toy: 26 s → 24.5 s", "One note.")
    texts = written(figure)
    assert "gains 1.5 s (5.77 % of the whole), in 2 places: 3 s (11.54 %)" in texts
    assert "costs 1.5 s (5.77 % of the whole)" in texts
    assert {"before: 5 s", "after: 3.5 s", "+ b", "reads a", "read by d"} <= set(texts)
    assert "c: 3.5 s, 2 instructions\nb\nc" in titles(figure)
    assert "1 kernel (not drawn below): 5 s\na: 5 s" in titles(figure)
    assert set(data["region"]) == {1, 2}


def test_a_program_has_its_own_words():
    words = Words("country", "town", "a road", "from", "to", strip="by size", gone="others took it")
    before, after = (Program(each.kernels, each.edges, words) for each in (BEFORE, AFTER))
    text = " ".join(" ".join(written(program.draw(before, after, "people", "toy")[0])).split())
    assert "Strips: all countries by size; those" in text and "with the towns that moved out" in text
    assert "an arrow is a road. Orange: a country that is gone, because others took it" in text
    assert "from a" in text and "to d" in text and "kernel" not in text and "instruction" not in text


def test_hundreds_of_regions_fit():
    many = [(f"p{i}", 1.0 + i / 1e3) for i in range(300)]
    before = made(*[pair for i, (p, cost) in enumerate(many) for pair in ((p, cost), (f"c{i}", 1.0))])
    after = made(*[(f"c{i}", 1.5, p) for i, (p, cost) in enumerate(many)])
    figure, data = program.draw(before, after, "cycles", "many")
    assert figure.get_figheight() < 12 and data["region"].nunique() == 300
    assert any(f"Not drawn: {300 - program.MOST} regions" in " ".join(text.split()) for text in written(figure))


def test_a_kernel_with_other_settings_is_a_region():
    kernels = (Kernel("k", 2.0, ("k",), {"tile": "8"}), Kernel("k", 1.0, ("k",), {"tile": "16"}))
    before, after = (Program((kernel,), np.empty((0, 2), int)) for kernel in kernels)
    figure, _ = program.draw(before, after, "seconds", "tiles")
    assert "tile: 16" in written(figure) and "tile: 8" in written(figure)


@pytest.mark.slow
def test_changes_are_a_table_with_gains():
    listed = [(Change(0, "-fgcse", "-fgcse", "-fno-gcse"), math.inf), (Change(3, "inline", "10", "20"), 0.0125)]
    figure, data = draw_changes(listed, "gcc/sort")
    assert {"-fgcse", "-fgcse → -fno-gcse", "fails", "1.250 %"} <= set(written(figure))
    assert data["gain"].tolist() == [math.inf, 0.0125]
    assert "inline: 10 → 20\ngain: 1.250 %" in titles(figure)
    figure, _ = draw_changes(listed * 50, "many")
    assert figure.get_figheight() < 12
    draw_changes([], "none")


OTHER = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product
class Others(Problem):
    instances = ("a",)
    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(50))), np.array([0])
    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs[:, 0])
"""


def test_names_with_control_characters_do_not_break_the_file():
    figure, _ = draw_changes([(Change(0, "a\x00b\x1bc\nd", "\ud800", "$x$"), 0.5)], "title\x07")
    assert "a\\x00b\\x1bc\\nd" in written(figure)
    assert titles(figure) == ["a\ufffdb\ufffdc\nd: \ufffd → $x$\ngain: 50.000 %"]


def test_plot_draws_what_a_run_or_a_study_found(suite, toy, tmp_path):
    suite("run", *toy, "--strategy", "random", "--strategy", "pick", "--budget", 20, "--study", "s", "--json")
    plot = ("plot", "s", *toy, "--figure", "program", "--format", "svg")
    assert suite(*plot).out == "results/s/figures/program-toy--small.svg\n"
    assert suite(*plot, "--run", "toy/small/pick/0").out == "results/s/figures/program-toy--small__pick__0.svg\n"
    text = (tmp_path / "results/s/figures/program-toy--small__pick__0.svg").read_text()
    assert "toy/small: 5" in text and ", by pick" in text and "changes are needed" in text
    assert "there is no run 'toy/small/pick/7'" in suite(*plot, "--run", "toy/small/pick/7").err
    (tmp_path / "others.py").write_text(OTHER)
    suite("run", "--plugin", "others.py", "--strategy", "random", "--budget", 20, "--study", "s", "--json")
    done = suite(*plot)
    assert done.code == 0 and done.out.count("\n") == 1
    assert "not drawn: others/a cannot be drawn: there is no" in done.err
    done = suite("plot", "s", "--figure", "program")
    assert done.code == 1 and done.err.startswith("error: others/a cannot be drawn: there is no problem 'others/a'")
    assert "drawn alone" in suite(*plot, "--figure", "heat").err


def test_python_draws_what_was_found(suite, toy):
    suite("run", *toy, "--strategy", "random", "--budget", 20, "--study", "s", "--json")
    study = Study("s", plugins=[path for path in toy if isinstance(path, Path)])
    assert any(text.startswith("toy/small: 5 s →") for text in written(study.plot("program")))
    (best,) = study.best(minimal=True)
    assert best["minimal"]["needed"]
    with pytest.raises(UserError, match="no problem 'toy/large'"):
        study.plot("program", ["toy/large"])


def drawn(problem, **limits):
    loaded = bbo_suite.problem(problem)
    found = space.sample(loaded, np.random.default_rng(0), **limits)
    return found, *space.draw(loaded, found)


def test_a_small_space_is_drawn_whole():
    found, figure, data = drawn("recorded/triton-softmax-8192x4096")
    assert found.whole and len(found.costs) + found.failed == 480
    assert data["lowest"].min() == found.costs.min()
    assert data.groupby("parameter")["candidates"].sum().eq(len(found.costs)).all()
    assert "The whole space" in figure.get_supxlabel()


def test_a_large_space_is_sampled():
    found, figure, data = drawn("llvm/tree", most=60)
    assert not found.whole and len(found.costs) + found.failed == 60
    assert "random sample" in figure.get_supxlabel()
    assert (data["effect"] >= 0).all() and data["effect"].is_monotonic_decreasing


def test_a_parameter_that_decides_all_has_the_whole_effect():
    groups, logs = np.repeat([0, 1, 2], 50), np.repeat([0.0, 1.0, 5.0], 50)
    assert space.effect_of(groups, logs) == pytest.approx(1)
    assert space.effect_of(np.random.default_rng(0).integers(0, 3, 150), logs) < 0.05
    assert space.effect_of(np.zeros(150, int), logs) == 0


def test_what_cannot_be_drawn_is_named(suite):
    assert "128 parameters" in suite("show", "ehrlich/128x32-a", "--picture", "x.png").err
    assert "does not end in .svg" in suite("show", "llvm/tree", "--picture", "x.gif").err


@pytest.mark.slow
def test_show_draws(suite, tmp_path):
    done = suite("show", "recorded/triton-softmax-8192x4096", "--picture", tmp_path / "space.svg")
    assert done.code == 0 and (tmp_path / "space.svg").stat().st_size > 1000


def test_a_space_where_nothing_succeeds_is_refused():
    problem = bbo_suite.problem("recorded/triton-softmax-8192x4096")
    with pytest.raises(UserError, match="too few for a picture"):
        space.sample(problem, np.random.default_rng(0), most=1)


G = "{http://www.w3.org/2000/svg}g"


@pytest.fixture
def figure():
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.subplots()
    (line,) = ax.plot([1, 10, 100], [1.0, 1.5, 2.0])
    mark(line, 'a "<b>" & c')
    mark(ax.bar([5], [1])[0], "d", "1.5000")
    ax.set(xscale="log", xlim=(1, 100), ylim=(0, 2), xlabel="evaluations", ylabel="speedup")
    with mpl.rc_context(style.SETTINGS):
        yield figure


def marks(text):
    return [g for g in ElementTree.fromstring(text).iter(G) if "data-strategy" in g.attrib]


def test_marks_name_their_strategy(figure):
    curve, bar = sorted(marks(svg(figure)), key=lambda g: g.get("data-strategy"))
    assert (curve.get("data-strategy"), curve.get("data-curve"), curve[0].text) == ('a "<b>" & c', "", 'a "<b>" & c')
    assert (bar.get("data-strategy"), bar.get("data-curve"), bar[0].text) == ("d", None, "d: 1.5000")


def test_a_point_of_a_curve_is_found_by_its_panel(figure):
    text = svg(figure)
    panel = next(g for g in ElementTree.fromstring(text).iter(G) if "data-x" in g.attrib)
    across, up = (json.loads(panel.get(name)) for name in ("data-x", "data-y"))
    assert (across[:5], up[:5]) == (["evaluations", "", "log", 1, 100], ["speedup", "", "linear", 0, 2])
    (curve,) = (g for g in marks(text) if "data-curve" in g.attrib)
    x, y = map(float, re.findall(r"[\d.]+", curve.find("{*}path").get("d"))[2:4])
    assert 100 ** ((x - across[5]) / (across[6] - across[5])) == pytest.approx(10)
    assert 2 * (y - up[5]) / (up[6] - up[5]) == pytest.approx(1.5)


def test_an_axis_of_seconds_has_a_unit(figure):
    style.seconds(figure.axes[0].xaxis)
    assert "[&quot;evaluations&quot;, &quot;s&quot;" in svg(figure)


def test_a_prefix_changes_every_id_and_reference(figure):
    text = svg(figure, "x-")
    ids = re.findall(r'\bid="(.*?)"', text)
    assert ids and all(name.startswith("x-") for name in ids) and len(ids) == len(set(ids))
    references = re.findall(r'(?:url\(|href=")#(.*?)[")]', text)
    assert references and set(references) <= set(ids)


def test_the_same_figure_has_the_same_bytes_and_nothing_from_elsewhere(figure):
    assert svg(figure) == svg(figure)
    assert "matplotlib.org" not in svg(figure)
