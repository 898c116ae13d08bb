"""What single figures compute and draw, and how they keep levels of knowledge apart."""

import itertools
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from bbo_toys import frame
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from bbo_suite import UserError, figures
from bbo_suite.core.level import Level
from bbo_suite.figures import FIGURES, paper
from bbo_suite.figures.captions import ranked_together
from bbo_suite.figures.convergence import convergence_data
from bbo_suite.figures.convergence import draw as draw_convergence
from bbo_suite.figures.critical import critical_data
from bbo_suite.figures.critical import draw as draw_critical
from bbo_suite.figures.heat import heat_data
from bbo_suite.figures.highlight import highlighted
from bbo_suite.figures.profile import draw as draw_profile
from bbo_suite.figures.speedup import speedup_data
from bbo_suite.figures.style import LINES, looks_by_knowledge, seconds

STRATEGIES = ["annealing", "evolution", "exhaustive", "joint", "mbo", "nevergrad.de", "optuna.tpe", "random", "rl"]
STRATEGIES += ["local", "gp", "cmaes"]
FIRST = ("convergence", "speedup")


def texts(figure):
    """Return every text of a drawn figure, captions without line breaks."""
    FigureCanvasAgg(figure).draw()
    return [
        t.get_text().replace("\n", " ") for t in figure.findobj(lambda a: hasattr(a, "get_text")) if t.get_visible()
    ]


@pytest.fixture
def three():
    return frame(
        {
            ("p/a", "x", 0): [16, 8, 9, 4],
            ("p/a", "x", 1): [8, 8, 4, 2],
            ("p/a", "x", 2): [np.inf, 4, 4],
            ("p/b", "y", 0): [8, 1],
        },
        structured=("y",),
    )


def test_convergence_data_by_hand(three):
    data = convergence_data(three)
    x = data[data["strategy"] == "x"]
    # best costs: 16 8 8 | 8 8 4 | inf 4 4, cut to the shortest run; speedups: .5 1 1 | 1 1 2 | 0 2 2
    assert x["evaluation"].tolist() == [1, 2, 3]
    assert x["median"].tolist() == [0.5, 1.0, 2.0]
    assert x["lower"].tolist() == [0.25, 1.0, 1.5]
    assert x["upper"].tolist() == [0.75, 1.5, 2.0]
    assert set(x["runs"]) == {3} and set(x["problem"]) == {"p/a"}
    y = data[data["strategy"] == "y"]
    assert (y["median"].tolist(), y["runs"].tolist(), y["level"].tolist()) == ([1, 8], [1, 1], ["structure"] * 2)


def test_speedup_data_by_hand(three):
    x, y = speedup_data(three).to_dict("records")
    # speedups at the end: 2, 4, 2; a resampled mean is 2 with probability 8/27 and 4 with 1/27: more than 2.5 % each
    assert (x["runs"], x["budget"], x["evaluations"]) == (3, 4, 3)
    assert (x["mean"], x["low"], x["high"], x["least"], x["most"]) == pytest.approx((8 / 3, 2, 4, 2, 4))
    assert (y["mean"], y["runs"], y["level"], y["evaluations"]) == (8.0, 1, "structure", 2)
    assert np.isnan(y["low"]) and np.isnan(y["high"])


def test_an_interval_does_not_leave_the_range_of_the_runs():
    made = frame({("p", "x", 0): [8.0, 2.0], ("p", "x", 1): [8.0, 7.0], ("p", "y", 0): [7.0], ("p", "y", 1): [2.0]})
    data = speedup_data(made)
    assert data["low"].tolist() == data["least"].tolist() and data["high"].tolist() == data["most"].tolist()


def test_bars_are_sorted_and_runs_are_points():
    made = frame({("p", name, seed): [8.0, cost + seed] for name, cost in (("a", 6), ("b", 2)) for seed in (0, 1)})
    figure, _ = FIGURES["speedup"](made)
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    points = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]
    assert points == [pytest.approx([8 / 7, 8 / 6]), pytest.approx([8 / 3, 8 / 2])]


def test_convergence_starts_where_something_happens_and_ends_with_values():
    costs = np.full(1000, 8.0)
    costs[400:] = 4.0
    flat = np.full(1000, 8.0)
    made = frame({("p", "a", 0): costs, ("p", "b", 0): flat, ("q", "a", 0): [8.0, 2.0]})
    first, second = FIGURES["convergence"](made)[0].axes
    assert 150 < first.get_xlim()[0] < 401 and first.get_xlim()[1] > 1000
    assert second.get_xlim()[0] < 1
    ends = [text.get_text() for text in first.texts]
    assert {"2.0000", "1.0000"} <= set(ends)


def test_a_legend_names_only_what_is_drawn():
    made = frame({("p", "a", 0): [8.0, 4.0], ("q", "b", 0): [8.0, 2.0]})
    figure, _ = FIGURES["convergence"](made, problems=["q"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["b"]


@pytest.mark.slow
def test_only_times_have_a_speedup():
    made = frame({("p", "a", 0): [8.0, 4.0]})
    for unit, word in (("seconds", "speedup"), ("bytes", "improvement")):
        said = " ".join(texts(FIGURES["convergence"](made.assign(unit=unit))[0]))
        assert f"best {word} over the default" in said and ("speedup" in said.lower()) == (word == "speedup")


def test_figures_return_what_they_drew(three):
    figure, data = FIGURES["convergence"](three)
    pd.testing.assert_frame_equal(data, convergence_data(three))
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    assert [line.get_ydata().tolist() for line in lines] == [[0.5, 1.0, 2.0]]
    figure, data = FIGURES["speedup"](three)
    pd.testing.assert_frame_equal(data, speedup_data(three))
    assert [bar.get_x() + bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([8 / 3])


def test_a_default_that_costs_nothing_has_no_speedup_and_is_drawn():
    free = frame({("p/a", "x", 0): [0.0, 0.0]}).assign(default=0.0, speedup=np.nan)
    assert all(FIGURES[name](free)[0].axes for name in FIRST)


def test_failed_runs_are_named_as_such():
    assert "all failed" in texts(
        FIGURES["speedup"](frame({("p/a", "x", 0): [np.inf] * 3, ("p/a", "x", 1): [np.inf] * 3}))[0]
    )


NAMES = ["<b>", "$x$", "_x", "a_b^2", r"\alpha", "&amp;", "größe", "100%", "{x}"]


@pytest.mark.slow
def test_names_are_literal_text(tmp_path):
    figure, data = FIGURES["speedup"](frame({(f"{name}/$y$", name, 0): [4.0, 2.0] for name in NAMES}))
    found = texts(figure)
    assert set(NAMES) <= set(found)
    assert {f"{name}/$y$" for name in NAMES} <= set(found)
    (file,) = figures.save([("speedup", figure, data)], tmp_path, ["svg"])
    svg = file.read_text(encoding="utf-8")
    assert all(text in svg for text in ("&lt;b&gt;", "$x$", ">_x<", "größe", "&amp;amp;"))


def test_names_in_other_scripts_do_not_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(figures.write(frame({("日本/語", "策略\udc80", 0): [4.0, 2.0]}), tmp_path, names=["speedup"]))
    assert "日本/語" in (tmp_path / "speedup.svg").read_text(encoding="utf-8")


@cache
def crowded(strategies, problems):
    rng = np.random.default_rng(0)
    names = [(f"family/problem{p}", s, r) for p in range(problems) for s in STRATEGIES[:strategies] for r in range(2)]
    return frame({name: 4 + 2 * rng.random(30) for name in names}, budget=30, structured=("joint",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategies", "problems"),
    [(1, 1), (12, 1), (12, 9)],
)
@pytest.mark.parametrize("draw", [FIGURES["convergence"], FIGURES["speedup"]])
def test_labels_do_not_overlap(monkeypatch, draw, strategies, problems):
    figure, _ = draw(crowded(strategies, problems))
    assert len(apart(monkeypatch, figure)) > strategies + problems


OTHERS = [
    drawing for drawing in figures.FIGURES.values() if drawing.name not in ("convergence", "speedup", "exploration")
]


@pytest.mark.slow
@pytest.mark.parametrize("drawing", OTHERS, ids=lambda drawing: drawing.name)
def test_labels_of_other_figures_do_not_overlap(monkeypatch, drawing):
    figure, _ = drawing(crowded(12, 9))
    assert len(apart(monkeypatch, figure)) > 12


def apart(monkeypatch, figure):
    """Return the texts of a figure, once it is sure that none leaves it or lies on another."""
    shown, real = [], Text.draw
    monkeypatch.setattr(Text, "draw", lambda text, renderer: (shown.append(text), real(text, renderer)))
    FigureCanvasAgg(figure).draw()
    shown = [text for text in shown if text.get_visible() and text.get_text() not in ("", "default")]
    upright = [text for text in shown if text.get_rotation() in (0, 90)]  # the box of a slanted one is mostly empty
    boxes = [text.get_window_extent() for text in upright]
    for i, box in enumerate(boxes):
        assert figure.bbox.padded(1).containsx(box.x0) and figure.bbox.padded(1).containsx(box.x1), upright[i]
        assert figure.bbox.padded(1).containsy(box.y0) and figure.bbox.padded(1).containsy(box.y1), upright[i]
        clash = [upright[j] for j in range(i) if upright[j] is not upright[i] and overlap(box, boxes[j])]
        assert not clash, (upright[i], clash)
    return shown


def overlap(a, b):
    return a.x0 + 1 < b.x1 and b.x0 + 1 < a.x1 and a.y0 + 1 < b.y1 and b.y0 + 1 < a.y1


@pytest.mark.slow
def test_no_library_is_loaded_before_a_figure_is_drawn_and_no_window_system_at_all():
    code = "import bbo_suite.figures, sys; assert not {'matplotlib', 'pandas'} & set(sys.modules)\n" \
           "import matplotlib; matplotlib.use = None\nfrom bbo_suite.figures import convergence, speedup\n" \
           "assert 'matplotlib.pyplot' not in sys.modules"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_figure_that_a_study_does_not_support_is_refused_with_the_reason(three):
    with pytest.raises(UserError, match=r"critical.* 3 strategies"):
        FIGURES["critical"](three)
    with pytest.raises(UserError, match=r"heat.* needs an evaluation"):
        FIGURES["heat"](three.iloc[:0])


def test_nothing_to_draw_and_nowhere_to_write(tmp_path, three):
    with pytest.raises(UserError, match="no evaluation yet"):
        list(figures.write(three.iloc[:0], tmp_path / "s" / "figures"))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*file"):
        list(figures.write(three, tmp_path / "file"))


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_figure(tmp_path, three, full_disk):
    (file,) = figures.write(three, tmp_path, names=["speedup"], formats=["png"])
    old = file.read_bytes()
    with full_disk(1000), pytest.raises(UserError, match="cannot write"):
        list(figures.write(three, tmp_path, names=["speedup"], formats=["png"]))
    assert file.read_bytes() == old and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1, 6, ["1 s", "2 s", "3 s", "5 s"]),
        (0.3, 1.2, ["300 ms", "500 ms", "1 s"]),
        (0.25, 0.5, ["300 ms", "400 ms", "500 ms"]),
        (0.51, 0.54, ["510 ms", "515 ms", "520 ms", "525 ms", "530 ms", "535 ms", "540 ms"]),
        (1e-3, 1, ["1 ms", "10 ms", "100 ms", "1 s"]),
    ],
)
def test_an_axis_of_any_width_has_labels_that_do_not_overlap(low, high, shown):
    figure = Figure(figsize=(4, 2))
    ax = figure.subplots()
    ax.set(xscale="log", xlim=(0.999 * low, 1.001 * high))
    seconds(ax.xaxis)
    figure.draw_without_rendering()
    ticks = [tick for which in ("major", "minor") for tick in ax.xaxis.get_ticklabels(minor=which == "minor")]
    inside = sorted((tick.get_position()[0], tick.get_text()) for tick in ticks if tick.get_text())
    assert [text for place, text in inside if low * 0.999 <= place <= high * 1.001] == shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["speedup", "gains"])
def test_labels_of_a_page_for_a_paper_do_not_lie_on_one_another(name):
    runs = {
        (f"family/a-program-{p}", f"s{s}", r): [8.0, 7.4 - p / 99 - r / 9] for p in range(20) for s in range(6)
        for r in (0, 1)
    }  # fmt: skip
    drawing = figures.FIGURES[name]
    _, figure, _ = next(drawing.pages(frame(runs)))
    paper.fit(figure)
    FigureCanvasAgg(figure).draw()
    for texts in (
        [ax.xaxis.label for ax in figure.axes],
        *([tick for tick in ax.get_xticklabels() if tick.get_text()] for ax in figure.axes),
    ):
        assert {text.get_rotation() for text in texts} <= {0, 90}  # the box of a slanted one is mostly empty
        boxes = [text.get_window_extent() for text in texts]
        assert boxes and not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))


COSTS = {"annealing": 6.0, "random": 7.0, "mbo": 5.0, "local": 4.0, "graybox": 2.0}


@pytest.fixture(scope="module")
def of_levels():
    runs = {(f"p/{i}", name, 0): [8.0, 8.0, cost + i / 9] for i in range(4) for name, cost in COSTS.items()}
    return frame(runs, budget=3, structured=("local",), hearing=("graybox",))


def test_each_level_has_a_line_style_and_each_strategy_a_colour_and_a_marker():
    names = [f"s{number}" for number in range(12)]
    levels = dict(zip(names, [*Level] * 3, strict=True))
    made = looks_by_knowledge(levels)
    assert {(level, made[name].dash) for name, level in levels.items()} == {(k, line) for k, (line, _) in LINES.items()}
    assert len({look.marker for look in made.values()}) == len({look.colour for look in made.values()}) == 12


def test_curves_show_the_levels_and_the_caption_explains_them(of_levels):
    figure, data = draw_convergence(of_levels, problems=["p/0"])
    shown = {line.get_color(): line.get_linestyle() for line in figure.axes[0].lines[1:]}
    look = highlighted(of_levels).looks
    assert [shown[look[n].colour] for n in ("mbo", "local", "graybox")] == [
        "-",
        "--",
        ":",
    ]
    text = figure.get_supxlabel().replace("\n", " ")
    assert "solid: costs only, dashed: structure, dotted: costs of parts" in text and "compiling is not counted" in text
    assert data.groupby("strategy")["level"].first()["graybox"] == "parts"


def test_no_figure_ranks_a_strategy_that_sees_parts_with_others(of_levels):
    assert set(critical_data(ranked_together(of_levels))["strategy"]) == {*COSTS} - {"graybox"}
    for draw in (draw_critical, draw_profile):
        figure, data = draw(of_levels)
        assert "graybox" not in set(data["strategy"])
        assert "because they see costs of parts: graybox" in figure.get_supxlabel().replace("\n", " ")
    cells = heat_data(of_levels)
    first = cells[cells["problem"] == "p/0"]
    assert first["strategy"].tolist()[0] == "local" and first["strategy"].tolist()[-1] == "graybox"
    assert first.set_index("strategy")["share"][["local", "graybox"]].tolist() == [1, 1]


def test_strategies_that_all_see_parts_are_ranked(of_levels):
    every = of_levels.assign(level="parts")
    assert ranked_together(every) is every
    costs = of_levels.assign(level="costs")
    assert ranked_together(costs) is costs
