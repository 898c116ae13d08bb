"""Drawings in a page: SVG, packed to a sixth of its size, and the script that unpacks and explores it."""

from __future__ import annotations

import base64
import html
import re
import zlib
from dataclasses import dataclass
from importlib.resources import files

SCRIPTS = ("panzoom.min.js", "page.js", "drawings.js")
_HEAD = re.compile(r"^.*?<svg .*?>", re.DOTALL)


@dataclass(frozen=True)
class Drawing:
    """An SVG drawing; its ids must differ from those of other drawings in the page.

    Elements with a title show it at the pointer; `bbo_suite.figures.marks` describes what else they may tell.

    Attributes:
      svg: the drawing, as in a file.
    """

    svg: str

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, in points."""
        width, height = (re.search(rf'\b{side}="([\d.]+)', self._head) for side in ("width", "height"))
        return (float(width[1]), float(height[1])) if width and height else (640.0, 480.0)

    @property
    def _head(self) -> str:
        found = _HEAD.match(self.svg)
        return found[0] if found else ""

    @property
    def strategies(self) -> list[str]:
        """The strategies that the drawing marks, each once."""
        return list(dict.fromkeys(html.unescape(name) for name in re.findall(r'data-strategy="(.*?)"', self.svg)))

    @property
    def inline(self) -> str:
        """The drawing as it stands in HTML: without a declaration and without namespaces."""
        view = re.search(r'\bviewBox="[-\d. ]*"', self._head)
        width, height = self.size
        head = f'<svg width="{width:g}pt" height="{height:g}pt" {view[0] if view else ""}>'
        return head + self.svg[len(self._head) :]

    @property
    def packed(self) -> str:
        """The drawing as HTML, deflated and in base 64."""
        return base64.b64encode(zlib.compress(self.inline.encode(errors="backslashreplace"), 9)).decode()


def script() -> str:
    """Return the page's script. A library in it, Panzoom, pans and zooms; its licence is beside it."""
    return "\n".join(template(name) for name in SCRIPTS)


def template(name: str) -> str:
    """Return a file of the folder `templates`."""
    return (files("bbo_suite.report") / "templates" / name).read_text(encoding="utf-8")
