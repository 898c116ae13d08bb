"""Folder names for any text, and text that may come from anywhere as a terminal or a page can show it."""

from __future__ import annotations

import hashlib
import re


def plain(text: str) -> str:
    """Return a text that can name a study: other characters become hyphens; empty if nothing is left."""
    return re.sub(r"[^\w.@+-]+", "-", text, flags=re.ASCII).strip("-.")


def folder_name(*parts: str) -> str:
    """Return a readable folder name for any text; different texts give different names.

    `fusion/a, annealing, 0` is `fusion--a__annealing__0`; where the text cannot be recovered, it ends in a hash.
    """
    marked = (part.replace("/", "--") for part in parts)
    name = "__".join(plain(part) or "x" for part in marked)
    exact = tuple(part.replace("--", "/") for part in name.split("__")) == parts and len(name) < 120
    return name if exact else f"{name[:100]}={hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"


def printable(text: str) -> str:
    """Return a name with control characters, line breaks and bytes that are no text as in `\\x1b`, `\\n`, `\\udc80`.

    On a terminal they would move the cursor or change its title, and a page or a table could not hold them.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\r(?!\n)")


def without_controls(text: str) -> str:
    """Return text of any number of lines with other control characters written as `printable` does."""
    return _CONTROLS.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
