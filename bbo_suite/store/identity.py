"""What a run is, and what may stand beside it in a study's folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..files import read_json

RUN = "run.json"
IMPORTED = "imported"
"""The key of `run.json` under which stands where a run comes from that was not made here."""

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("problem", "fingerprint", "strategy", "unit"), str),
    **dict.fromkeys(("seed", "budget", "batch"), int),
    **{"options": dict, "default": (int, float), "uses_structure": bool},
}
"""What `run.json` must hold."""


OTHER_CONTENT = "the program, or the version of what compiles it, is another"
"""Why the fingerprint of a problem differs, for people."""


@dataclass(frozen=True)
class Run:
    """What identifies a run; equal runs give equal rows.

    Attributes:
      problem: its id.
      fingerprint: the hash of its content.
      strategy: its id.
      options: the fields of its options.
      seed, budget, batch: of the run; `batch` candidates are asked for at a time.
    """

    problem: str
    fingerprint: str
    strategy: str
    options: dict[str, Any]
    seed: int
    budget: int
    batch: int

    def identity(self) -> dict[str, Any]:
        """Return the run as it is stored and compared: what JSON makes of it, so that a tuple equals its list."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def generator(self) -> np.random.Generator:
        """Return the run's only source of randomness, derived from its identity by bytes."""
        text = json.dumps(self.identity(), sort_keys=True)
        return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest())))


def read_head(path: Path) -> dict[str, Any]:
    """Return what `run.json` says of the run in a folder.

    Raises:
      UserError: it is missing or damaged, or does not say what it must.
    """
    head = read_json(path / RUN)
    for name, kind in _KINDS.items():
        if not isinstance(head.get(name), kind):
            what = "is no such thing" if name in head else "is missing"
            raise UserError(f"{name!r} {what} in {path / RUN}; restore it, or delete its folder to run it anew")
    return head


def check_identity(path: Path, identity: Mapping[str, Any]) -> None:
    """Check that a folder holds no run yet, or the same.

    Raises:
      UserError: it holds another, and the message names what differs; or one that was imported.
    """
    if not (path / RUN).exists():
        return
    stored = read_json(path / RUN)
    if source := stored.get(IMPORTED):
        raise UserError(f"{path} was imported from {source['source']} and cannot be resumed; choose another --study")
    for key, value in identity.items():
        if stored.get(key) != value:
            there, here = json.dumps(stored.get(key)), json.dumps(value)
            why = f" ({OTHER_CONTENT})" if key == "fingerprint" else ""
            what = f"a run with {key} {there}, not {here}{why}"
            raise UserError(f"{path} holds {what}; choose another --study, or delete it")


def check_contents(study: Path, fingerprints: Mapping[str, str]) -> None:
    """Check that all runs in a study's folder that are of some problems are of these as they are.

    Args:
      fingerprints: of the problems, by id.

    Raises:
      UserError: one is of another content.
    """
    for file in sorted(study.glob(f"*/{RUN}")):
        stored = read_json(file)
        here, there = fingerprints.get(stored.get("problem", "")), stored.get("fingerprint")
        if here not in (None, there):
            what = f"{stored['problem']} with content {there}, which is not comparable to content {here}"
            raise UserError(f"{file.parent} is of {what}; choose another --study")
