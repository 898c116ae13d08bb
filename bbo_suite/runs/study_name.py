"""Names of studies: what a name may be, and the default name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.options import identifying
from ..errors import UserError

LONGEST = 255
"""Bytes of a folder's name, on nearly all file systems."""


def check_name(study: str) -> None:
    """Check that a study's name can name a folder.

    Raises:
      UserError: it cannot name one.
    """
    if not re.fullmatch(r"[\w@+][\w.@+-]*", study):
        what = "letters, digits and any of . _ @ + - without a slash, and begin with neither . nor -"
        raise UserError(f"study name {study!r} must be {what}")
    if len(study.encode()) > LONGEST:
        raise UserError(f"study name {study!r} is too long; at most {LONGEST} bytes can name a folder")


def default_name(
    strategies: Sequence[str], problems: Sequence[str], chosen: Mapping[str, Any], budget: int, batch: int, seed: int
) -> str:
    """Return a study name that depends only on the settings, so that the same command finds its study again."""
    strategies, problems = sorted(strategies), sorted(problems)
    settings = [problems, {name: identifying(made) for name, made in chosen.items()}, budget, batch, seed]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    words = [problems[0] if len(problems) == 1 else f"{len(problems)}-problems"]
    words.append("-".join(strategies) if len(strategies) <= 4 else f"{len(strategies)}-strategies")
    return f"{re.sub(r'[^A-Za-z0-9.+]+', '-', '-'.join(words)).strip('-.')[:80]}-{digest}".strip("-")
