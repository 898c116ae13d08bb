"""Compiles every instance and stores the defaults: `python -m bbo_problems.scratchpad.network.make_defaults`."""

from __future__ import annotations

import json
import sys

import numpy as np

from .compile import Compiler
from .model import DEFAULTS
from .networks import INSTANCES, NETWORKS, split
from .state import Machine


def compiled(instance: str) -> dict[str, object]:
    """Return the default of an instance, the better of both orders of passes, and what other passes reach."""
    name, capacity, banks = split(instance)
    machine = Machine(NETWORKS[name](), capacity, banks)
    compiler = Compiler(machine)
    rows = compiler.default()
    moved = {what: int(compiler.bytes(row)) for what, row in rows.items()}
    best = min(("residency first", "fusion first"), key=moved.__getitem__)
    row = np.asarray(rows[best]).astype(machine.space.dtype)
    return {"default": machine.space.pack(row), "baselines": {k: v for k, v in moved.items() if k != best}}


def main(names: list[str]) -> None:
    """Write the defaults of the named instances, or of all."""
    known = json.loads(DEFAULTS.read_text(encoding="utf-8")) if DEFAULTS.exists() else {}
    for instance in names or INSTANCES:
        known[instance] = compiled(instance)
        DEFAULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
