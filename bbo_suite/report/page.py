"""The page: one HTML file without external resources."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..files.names import without_controls
from .compare import Comparison
from .drawings import Drawing, Picture, script, template
from .findings import Findings
from .limits import Limit
from .table import Table


@dataclass(frozen=True)
class Page:
    """The content of the page, in reading order.

    Attributes:
      title: the study's name.
      summary: which strategies ran on which problems.
      findings: the best configurations; None if nothing succeeded.
      lead: the first drawing, where what was found has none.
      answers: sentences.
      limits: what cannot be concluded.
      compared: what `--compare` says, if there is another study.
      tables, pictures: results.
      provenance: where the numbers come from.
    """

    title: str
    summary: str
    findings: Findings | None
    lead: Drawing | None
    answers: Sequence[str]
    limits: Sequence[Limit]
    compared: Comparison | None
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    provenance: Sequence[Table]

    @property
    def strategies(self) -> list[str]:
        """The strategies that figures can hide."""
        return sorted(
            {name for picture in self.pictures for drawing in picture.drawings for name in drawing.strategies}
        )


def html(page: Page) -> str:
    """Return the page as HTML; every name in it is escaped."""
    return render("page.html", page=page)


def render(name: str, **content: Any) -> str:  # noqa: ANN401 - what the template shows
    """Return a template with its content as an HTML file without external resources; all text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("bbo_suite.report")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    environment.filters["whole"] = lambda text: text.replace(" %", "\u00a0%")  # no line break before a percent sign
    code = script()
    allowed = f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}"
    page = environment.get_template(name)
    return without_controls(page.render(style=template("page.css"), script=code, allowed=allowed, **content))
