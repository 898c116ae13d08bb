"""Folder names for any text."""

from __future__ import annotations

import hashlib
import re


def folder_name(*parts: str) -> str:
    """Return a readable folder name for any text; different texts give different names.

    `fusion/a, annealing, 0` is `fusion--a__annealing__0`; where the text cannot be recovered, it ends in a hash.
    """
    marked = (part.replace("/", "--") for part in parts)
    plain = "__".join(re.sub(r"[^\w.@+-]+", "-", part, flags=re.ASCII).strip("-.") or "x" for part in marked)
    exact = tuple(part.replace("--", "/") for part in plain.split("__")) == parts and len(plain) < 120
    return plain if exact else f"{plain[:100]}={hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"
