"""A network of ours at a capacity, as a search problem, and which of its decisions interact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decomposition, Graph, Structure

from ..model import Groups, Model, interactions
from .decode import FEATURES, decode, evaluate, write_groups
from .groups import NORMAL
from .networks import NETWORKS, Role, split
from .space import GRANULE, Machine

_WHAT = ("tile", "order", "level", "eliminate", "link", "stream", "blocks", "resident", "storage")
_BANKS = "across the banks"
_NODE = ("log work", "log bytes", "moves")


def structure(machine: Machine, parts: Decomposition) -> Structure:
    """Return the structure of the space."""
    names = [machine.space.name(i) for i in range(len(machine.space))]
    starts, neighbours = interactions(_members(machine), len(names))
    nodes = _nodes(machine)
    what_for = (*_WHAT, *((_BANKS,) if machine.banks else ()))
    kinds = [next(i for i, what in enumerate(what_for) if f": {what}" in name) for name in names]
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=np.hstack([np.eye(len(what_for), dtype=np.float32)[kinds], nodes[machine.owners]]),
        feature_names=(*what_for, *_NODE),
        graph=Graph(nodes, _NODE, _edges(machine)),
        nodes=np.array(machine.owners, np.int32),
        parts=parts,
    )


def _members(machine: Machine) -> list[set[int]]:
    """Return sets of columns that interact: of each operator with its tensors, and of links with what they join."""
    columns = machine.columns
    members: list[set[int]] = []
    for op in range(machine.ops):
        own = {column for column, owner in enumerate(machine.owners) if owner == op}
        used = machine.net.tensors[op][machine.net.tensors[op] >= 0]
        tensors = {int(c) for t in used for c in (columns.resident[t], columns.store[t], columns.bank[t]) if c >= 0}
        members.append(own | tensors)
        if columns.link[op] >= 0:
            before = [columns.link[op - 1], *columns.stream[op - 1], *columns.block[op - 1]]
            members.append({int(columns.link[op]), *(int(c) for c in before if c >= 0)})
    return members


def _edges(machine: Machine) -> np.ndarray:
    made = {op.operands[-1].tensor: o for o, op in enumerate(machine.network.operators)}
    pairs = [
        (made[x.tensor], o)
        for o, op in enumerate(machine.network.operators)
        for x in op.operands[:-1]
        if machine.network.tensors[x.tensor].role in (Role.INTERMEDIATE, Role.OUTPUT)
    ]
    return np.array(pairs, np.int32).reshape(-1, 2)


def _nodes(machine: Machine) -> np.ndarray:
    work = machine.net.extents.astype(float).prod(axis=1)
    elements = machine.net.sizes.astype(float).prod(axis=1) * machine.net.bytes
    moved = np.where(machine.net.tensors >= 0, elements[machine.net.tensors], 0).sum(axis=1)
    return np.column_stack([np.log1p(work), np.log1p(moved), machine.net.moves]).astype(np.float32)


DEFAULTS = Path(__file__).with_name("defaults.json")
"""For each instance, what the passes of `compile` reach: made by it, since it takes minutes."""
_VERSION = "1"


class NetworkModel(Model):
    """The bytes that a network moves between DRAM and the scratchpad."""

    unit = "bytes"

    def __init__(self, instance: str) -> None:
        name, capacity, banks = split(instance)
        self.machine = Machine(NETWORKS[name](), capacity, banks)
        self.space = self.machine.space
        self._known: dict[str, Any] = json.loads(DEFAULTS.read_text(encoding="utf-8"))[instance]
        self.default = self.space.unpack(self._known["default"])
        self.content = f"{_VERSION}|{instance}|{self.machine.network}"
        self.groups = Groups(FEATURES, self.machine.ops, self._write_groups)
        self.bound = float(self.machine.network.compulsory(GRANULE))

    def write_costs(self, configs: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Write the bytes that each candidate moves."""
        evaluate(configs, values, self.machine.at)

    def _write_groups(self, configs: NDArray[np.int64], *arrays: NDArray) -> None:
        write_groups(configs, *arrays, self.machine.at)

    def structure(self) -> Structure:
        """Return which decisions interact."""
        return structure(self.machine, self.groups)

    def paste(self, config: NDArray) -> str:
        """Return a line for each group: its operators, its blocks, and the tiles and levels of each."""
        decode(config.astype(np.int64), self.machine.at)
        plan, operators = self.machine.plan, self.machine.network.operators
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
        staying = [self.machine.network.tensors[t].name + across.get(t, "") for t in resident]
        lines += [f"resident: {', '.join(staying)}"] if staying else []
        return "\n".join([*lines, self._pairs()])

    def _pairs(self) -> str:
        """Return how many loads of what was stored before the decoded plan avoids, the measure of Zheng et al."""
        net, plan, tensors = self.machine.net, self.machine.plan, self.machine.network.tensors
        reads = [
            (op, x)
            for op in range(self.machine.ops)
            for x in range(net.reads[op])
            if tensors[net.tensors[op, x]].role == Role.INTERMEDIATE
        ]
        left = [
            (op, x)
            for op, x in reads
            if not plan.gone[op]
            and tensors[plan.root[net.tensors[op, x]]].role == Role.INTERMEDIATE
            and (plan.served[op, x] == NORMAL or plan.clash[op, x])
        ]
        moves = sum(operator.moves for operator in self.machine.network.operators)
        return (
            f"{len(reads) - len(left)} of {len(reads)} loads of intermediate results are avoided, "
            f"{int(plan.gone.sum())} of {moves} transposes eliminated"
        )

    def usage(self) -> str:
        """Return that no real compiler reads it."""
        return "for reading only: the plan of a compiler that manages a scratchpad; no real one takes it"

    def facts(self) -> dict[str, str]:
        """Return the capacity and the least that any plan moves."""
        return {
            "capacity": f"{self.machine.capacity:,} bytes",
            **({"banks": f"{self.machine.banks:,}"} if self.machine.banks else {}),
            "operators": f"{self.machine.ops:,}",
            "compulsory traffic": f"{self.bound:,.0f} bytes: inputs, weights and outputs, once each; the bound",
        }

    def baselines(self) -> dict[str, float]:
        """Return the bytes of compilers that do less than the default."""
        return {name: float(value) for name, value in self._known["baselines"].items()}
