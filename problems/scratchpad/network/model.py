"""A network of ours at a capacity, as a search problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Parts, Status, Structure
from bbo_suite.core.problem import NO_CHANGE

from ..model import Model
from .decode import decode
from .decomposition import NetworkDecomposition
from .evaluation import evaluate
from .instances import split
from .machine import GRANULE, Machine
from .networks import NETWORKS
from .structure import structure

DEFAULTS = Path(__file__).with_name("defaults.json")
"""For each instance, what the passes of `compile` reach: made by `make_defaults`, since it takes minutes."""
_VERSION = "1"


class NetworkModel(Model):
    """The bytes that a network moves between DRAM and the scratchpad."""

    unit = "bytes"

    def __init__(self, instance: str) -> None:
        name, capacity, banks = split(instance)
        self._machine = Machine(NETWORKS[name](), capacity, banks)
        self.space = self._machine.space
        self._known: dict[str, Any] = json.loads(DEFAULTS.read_text(encoding="utf-8"))[instance]
        self.default = self.space.unpack(self._known["default"])
        self.content = f"{_VERSION}|{instance}|{self._machine.network}"
        self._parts = NetworkDecomposition(self._machine)
        self.bound = float(self._machine.network.compulsory(GRANULE))

    def evaluate(self, configs: NDArray, with_parts: bool) -> Evaluations:
        """Return the bytes of each candidate, and of each of its groups."""
        if with_parts:
            description, costs = self._parts.evaluated(configs)
            parts = Parts(description.starts, description.keys, description.counts, costs)
            return Evaluations(parts.sums(), np.full(len(configs), Status.OK, np.int8), parts=parts)
        values = np.empty(len(configs))
        evaluate(configs.astype(np.int64), values, self._machine.at)
        return Evaluations.of(values)

    def structure(self) -> Structure:
        """Return which decisions interact."""
        return structure(self._machine, self._parts)

    def paste(self, config: NDArray) -> str:
        """Return a line for each group: its operators, its blocks, and the tiles and levels of each."""
        decode(config.astype(np.int64), self._machine.at)
        plan, operators = self._machine.plan, self._machine.network.operators
        lines = []
        for head in np.flatnonzero(plan.ends).tolist():
            members = [op for op in range(head, int(plan.ends[head])) if not plan.gone[op]]
            blocks = [f"dim {d} by {plan.blocks[head, d]}" for d in plan.streams[head].tolist() if d >= 0]
            lines.append(f"group{''.join(f', {block}' for block in blocks)}")
            for op in members:
                rank = len(operators[op].extents)
                tiles, levels = plan.tile[op, :rank].tolist(), plan.level[op, : len(operators[op].operands)].tolist()
                order = plan.order[op, : len(operators[op].tiled)].tolist()
                lines.append(f"  {operators[op].name}: tiles {tiles}, loops {order}, levels {levels}")
        across = {t: f" (dim {bank} across the banks)" for t, bank in enumerate(plan.bank.tolist()) if bank >= 0}
        resident = np.flatnonzero(plan.resident).tolist()
        staying = [self._machine.network.tensors[t].name + across.get(t, "") for t in resident]
        return "\n".join([*lines, *([f"resident: {', '.join(staying)}"] if staying else [])]) or NO_CHANGE

    def usage(self) -> str:
        """Return that no real compiler reads it."""
        return "for reading only: the plan of a compiler that manages a scratchpad; no real one takes it"

    def facts(self) -> dict[str, str]:
        """Return the capacity and the least that any plan moves."""
        return {
            "capacity": f"{self._machine.capacity:,} bytes",
            **({"banks": f"{self._machine.banks:,}"} if self._machine.banks else {}),
            "operators": f"{self._machine.ops:,}",
            "compulsory traffic": f"{self.bound:,.0f} bytes: inputs, weights and outputs, once each; the bound",
        }

    def baselines(self) -> dict[str, float]:
        """Return the bytes of compilers that do less than the default."""
        return {name: float(value) for name, value in self._known["baselines"].items()}
