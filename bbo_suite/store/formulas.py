"""Texts of CSV files that a spreadsheet would calculate get a mark before them, which readers remove."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""The start of a cell that a spreadsheet would calculate, or that carries a mark against this already."""


def inert(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet takes for a formula."""
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        column = frame[name]
        if column.dtype == "category":
            frame[name] = column.cat.rename_categories([_marked(text) for text in column.cat.categories])
        else:
            frame[name] = [_marked(text) for text in column]
    return frame


def _marked(text: str) -> str:
    """Return text with a quote before it if it begins like a formula; `unmarked` removes exactly this quote."""
    return f"'{text}" if _FORMULA.match(text) else text


def unmarked(cell: str) -> str:
    """Return the text of a cell as it was before `inert`."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
