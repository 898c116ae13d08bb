"""Figures as SVG in which marked curves and bars say what they show, so that a page can name, read and hide them."""

from __future__ import annotations

import io
import json
import re
from xml.etree import ElementTree

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

SECONDS = "seconds"
"""The id of an axis of seconds."""
_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _LINK)


def mark(artist: Artist, strategy: str, text: str = "") -> None:
    """Say that an artist shows a strategy, given by its label in legends.

    Args:
      text: what it shows of the strategy; of a curve, a page reads the values at the pointer instead.
    """
    artist.set_gid(json.dumps([strategy, text, isinstance(artist, Line2D) and not text]))


def add_tooltip(artist: Artist, text: str) -> None:
    """Say what an artist shows that is no strategy."""
    artist.set_gid(json.dumps(["", legal(text), False]))


def legal(text: str) -> str:
    """Return text in which XML's forbidden characters are replaced."""
    return _FORBIDDEN.sub("\ufffd", text)


def settle(figure: Figure) -> None:
    """Compute the layout, so that saving in each format only draws: it would compute it again, and draw twice."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine("none")


def svg(figure: Figure, prefix: str = "") -> str:
    """Return a figure as SVG, without a date.

    A marked element has `data-strategy`, `data-curve` if its values can be read, and a title, which browsers show. A
    panel has `data-x` and `data-y`: the axis's label, unit, scale, limits, and the positions of the limits in points.

    Args:
      prefix: of every id, so that several figures fit into one page.
    """
    panels = {f"panel-{number}": ax for number, ax in enumerate(figure.axes) if ax.get_visible()}
    for name, ax in panels.items():
        ax.set_gid(name)
    file = io.BytesIO()
    settle(figure)
    dpi = figure.dpi
    FigureCanvasSVG(figure).print_svg(file, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    figure.dpi = dpi  # `print_svg` changes it; `savefig` does not, but draws everything twice
    root = ElementTree.fromstring(file.getvalue())
    for number, element in enumerate(root.iter(f"{{{_SVG}}}g")):
        name = element.get("id", "")
        if name.startswith("["):
            _describe(element, f"mark-{number}", *json.loads(name))
        elif name in panels:
            _measure(element, panels[name])
    if prefix:
        _rename(root, prefix)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Put a prefix before every id and every reference to one."""
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, prefix + value)
            elif value.startswith("#") and key == f"{{{_LINK}}}href":
                element.set(key, f"#{prefix}{value[1:]}")
            else:
                element.set(key, value.replace("url(#", f"url(#{prefix}"))


def _describe(element: ElementTree.Element, name: str, strategy: str, text: str, curve: bool) -> None:
    facts = {"id": name} | ({"data-strategy": strategy} if strategy else {}) | ({"data-curve": ""} if curve else {})
    element.attrib.update(facts)
    title = ElementTree.Element(f"{{{_SVG}}}title")
    title.text = ": ".join(filter(None, (strategy, text)))
    element.insert(0, title)


def _measure(element: ElementTree.Element, ax: Axes) -> None:
    """Tell how points of a panel correspond to values."""
    figure, place = ax.get_figure(root=True), ax.get_position()
    assert figure is not None
    width, height = 72 * figure.get_size_inches()
    y_label = ax.get_ylabel() or figure.axes[0].get_ylabel()  # written once in a row of panels
    for name, axis, label, ends in (
        ("data-x", ax.xaxis, ax.get_xlabel(), (width * place.x0, width * place.x1)),
        ("data-y", ax.yaxis, y_label, (height * (1 - place.y0), height * (1 - place.y1))),
    ):
        element.set(name, json.dumps([label, *_scale(axis), *(round(float(end), 3) for end in ends)]))


def _scale(axis: Axis) -> tuple[str, str, float, float]:
    low, high = axis.get_view_interval()
    return "s" if axis.get_gid() == SECONDS else "", axis.get_scale(), float(low), float(high)
