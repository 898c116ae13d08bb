"""Figures as SVG: what is marked says which strategy it shows, and panels say how points correspond to values."""

import json
import re
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from bbo_suite.figures import style
from bbo_suite.figures.interactive import mark, svg

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
