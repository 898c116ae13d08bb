"""From the computations of a module to one graph: calls inlined, tuples resolved, loops entered once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bbo_suite import UserError

from ..hlo.calls import LARGEST_INLINED, inlined, inlined_size
from ..hlo.library_calls import computed
from ..hlo.module import FAULTS, Computation, Instruction, Malformed, Module, Shape, Unfit
from ..hlo.opcodes import Kind, asynchronous, bytes_of, kind_of
from ..hlo.result_shapes import check_size
from .layouts import LANES, SUBLANES, Layout, minor_dims
from .trips import DEEPEST_CALL, number, steps, trip_count

LARGEST_GRAPH = LARGEST_INLINED // 2
MOST_USES = 10 * LARGEST_GRAPH
"""Most operands of all operations together: a tuple that holds itself twice, again and again, has as many leaves."""

Value = Any
"""The value of an instruction: the number of a node, or a list of values for a tuple."""

_PASSED_ON = ("add-dependency", "domain", "copy")
_SHARDINGS = ('"Sharding"', '"xla.sdy.FuncResultSharding"')
_PARTS = (
    '"SPMDFullToShardShape"',
    '"SPMDShardToFullShape"',
    '"xla.sdy.GlobalToLocalShape"',
    '"xla.sdy.LocalToGlobalShape"',
)
"""Custom calls that take a device's part of an array for the whole, or the whole for its part: nothing moves."""
_EFFECTS = ("infeed", "outfeed", "recv", "rng", "rng-get-and-update-state", "send")
_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
_STARTED_EFFECTS = ("all-gather", "all-reduce", "collective-permute")
"""Collectives that XLA keeps if they are asynchronous, even if nothing uses their results."""
_TILE_BYTES = 4 * LANES * SUBLANES
_FOLDS = 8
"""Operations in a row that are followed from the first state of a loop back to constants."""


@dataclass(slots=True)
class Operation:
    """One operation of the flattened program.

    Attributes:
      operands: numbers of nodes.
      inputs: their shapes.
      layout: in which it lies in memory before the program, None if that is free.
    """

    name: str
    opcode: str
    kind: Kind
    shape: Shape
    operands: list[int]
    inputs: list[Shape]
    weight: float
    source: Instruction | None
    output: bool = False
    layout: Layout | None = None


@dataclass
class Flattener:
    """Walks a module once, in the order of its text, and collects nodes in topological order.

    Attributes:
      module: what it walks.
      nodes: those found so far.
      unknown_loops: names of loops that count once, because nothing says how often they run.
      idle_loops: names of loops that never run; their bodies are left out.
      conditionals: names of those whose branches count alike, because nothing says which of them runs.
      unknown_calls: what custom calls call whose work is not known.
    """

    module: Module
    nodes: list[Operation] = field(default_factory=list)
    unknown_loops: list[str] = field(default_factory=list)
    idle_loops: list[str] = field(default_factory=list)
    conditionals: list[str] = field(default_factory=list)
    unknown_calls: list[str] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    _outputs: list[int] = field(default_factory=list)
    _kept: list[int] = field(default_factory=list)  # what runs even if nothing uses it
    _uses: int = 0

    def entry(self) -> tuple[list[Operation], list[int]]:
        """Return the nodes of the program and the numbers of what must run: first the entry's results, in order.

        Raises:
          UserError: the program is too large after inlining.
        """
        if inlined_size(self.module) > LARGEST_INLINED:
            raise UserError(f"it has more than {LARGEST_INLINED:,} instructions after inlining; take a part of it")
        computation = self.module.computations[self.module.entry]
        own = [each for each in computation.instructions if each.opcode == "parameter"]
        taken = {each.parameter_number or 0: self._operation(each, [], 1.0) for each in own}
        result = self._walk(computation, taken, 1.0, 0)
        self._fix_layouts([taken[number] for number in sorted(taken)], self.module.parameters)
        self._mark_output(result)
        return self.nodes, [*leaves(result), *self._outputs, *self._kept]

    def _fix_layouts(self, value: Value, shape: Shape) -> None:
        """Note the layouts in which the module wants arrays; row-major is what it says if it wants none."""
        if isinstance(value, list):
            for part, element in zip(value, shape.elements, strict=False):
                self._fix_layouts(part, element)
        elif shape.layout and shape.dims == self.nodes[value].shape.dims:
            self.nodes[value].layout = minor_dims(shape, shape.layout)

    def _walk(self, computation: Computation, arguments: Mapping[int, Value], weight: float, depth: int) -> Value:
        if depth > DEEPEST_CALL:
            raise UserError(
                f"calls nest more than {DEEPEST_CALL} deep at computation {computation.name!r}; check the program"
            )
        values: list[Value] = []
        for instruction in computation.instructions:
            try:
                operands = [values[i] for i in instruction.operands]
                if instruction.opcode == "parameter":
                    values.append(_argument(instruction, computation, arguments))
                else:
                    values.append(self._instruction(instruction, operands, weight, depth))
                    if not isinstance(values[-1], list):  # a wrong size may come through tuples and calls
                        check_size(instruction.shape, self.nodes[values[-1]].shape.dims)
            except FAULTS as error:
                raise Malformed(instruction.name, instruction.opcode, error) from error
        return values[computation.root]

    def _instruction(self, instruction: Instruction, operands: list[Value], weight: float, depth: int) -> Value:
        opcode, stage = asynchronous(instruction.opcode)
        target = instruction.attributes.get("custom_call_target")
        if stage == "start":
            return self._start(instruction, opcode, operands, weight, depth)
        if stage:
            return operands[0] if stage == "update" else _finished(opcode, operands[0])
        if opcode == "send":
            return self._send(instruction, operands, weight)
        if opcode == "tuple":
            return operands
        if opcode == "get-tuple-element" and isinstance(operands[0], list):
            return operands[0][int(instruction.attributes["index"])]
        if opcode == "after-all":  # data that a token waits for must be computed
            self._mark_output([node for node in leaves(operands) if self.nodes[node].shape.dtype != "token"])
        if opcode in _PASSED_ON or target in _SHARDINGS:
            return operands[0]
        if opcode == "reshape" and math.prod(self.nodes[operands[0]].shape.dims) != math.prod(instruction.shape.dims):
            raise Unfit("it changes the number of elements")
        if opcode == "bitcast":
            return self._bitcast(instruction, operands, weight)
        if opcode == "opt-barrier" or target in _PARTS:  # users read what was written before, and are not fused with it
            self._mark_output(operands)
            return self._sources(instruction.name, "get-tuple-element", instruction.shape, leaves(operands), weight)
        if (called := inlined(instruction)) is not None:
            return self._walk(self.module.computations[called], dict(enumerate(operands)), weight, depth + 1)
        if opcode == "while":
            return self._loop(instruction, operands[0], weight, depth)
        if opcode == "conditional":
            return self._branches(instruction, operands, weight, depth)
        if opcode == "custom-call":
            return self._custom_call(instruction, operands, weight)
        return self._operation(instruction, operands, weight)

    def _custom_call(self, instruction: Instruction, operands: list[Value], weight: float) -> Value:
        """Add the operation that a library computes, and a sum if it adds an array; other results are its scratch."""
        arrays = [operand for operand in operands if not isinstance(operand, list)]
        known = computed(instruction, [self.nodes[node].shape for node in arrays])
        if known is None:
            target = instruction.attributes.get("custom_call_target", "").strip('"')
            self.unknown_calls += [] if _allocates(instruction) else [target]
            return self._operation(instruction, operands, weight)
        value = self._operation(known, arrays[:2], weight)
        for other in arrays[2:]:
            if self.nodes[other].shape.dims == known.shape.dims:
                name = f"{instruction.name}.sum"
                value = self._add(name, "add", Kind.ELEMENTWISE, known.shape, [value, other], weight, None)
            else:
                self._mark_output(other)  # a row of it, or a scale: it is computed before
        if instruction.shape.dtype != "tuple":
            return value
        return [value, *self._sources(instruction.name, "get-tuple-element", instruction.shape, [], weight)[1:]]

    def _start(self, instruction: Instruction, opcode: str, operands: list[Value], weight: float, depth: int) -> Value:
        """Compute an operation where it starts, as its synchronous twin; the value has the parts of its shape."""
        parts, place = instruction.shape.elements, 0 if opcode == "copy" else 1
        whole = opcode == "all-reduce" or len(parts) <= place  # its shape is that of the result
        done = replace(instruction, opcode=opcode, shape=instruction.shape if whole else parts[place])
        result = self._instruction(done, operands, weight, depth)
        if opcode in _STARTED_EFFECTS:
            self._keep(result)
        if whole:
            return result
        given = operands if parts[1 - place].dtype == "tuple" else operands[0]
        pair = [result, given] if opcode == "copy" else [given, result]
        return [*pair, *(self._sources(instruction.name, "get-tuple-element", part, [], weight) for part in parts[2:])]

    def _send(self, instruction: Instruction, operands: list[Value], weight: float) -> Value:
        """Add an operation that reads its operand and writes only a token."""
        token = instruction.shape.elements[2]
        sent = self._operation(replace(instruction, shape=token), operands, weight)
        return [operands[0], sent, sent]

    def _operation(self, instruction: Instruction, operands: list[Value], weight: float) -> Value:
        value = self._value(instruction, operands, weight)
        effect = instruction.attributes.get("custom_call_has_side_effect") == "true"
        if effect or instruction.opcode in _EFFECTS:
            self._mark_output(value)
        elif self._always_runs(instruction):
            self._keep(value)
        return value

    def _keep(self, value: Value) -> None:
        """Note what runs even if nothing uses its result; several results are always kept."""
        self._kept += [] if isinstance(value, list) else [value]

    def _always_runs(self, collective: Instruction) -> bool:
        """Return whether XLA keeps a collective that nothing uses: other devices, or other programs, wait for it."""
        if collective.opcode not in _COLLECTIVES:
            return collective.opcode == "collective-broadcast"
        texts = collective.attributes
        across = "channel_id" in texts and not self.module.partitioned and "use_global_device_ids" not in texts
        return across or texts.get("constrain_layout") == "true"

    def _value(self, instruction: Instruction, operands: list[Value], weight: float) -> Value:
        inputs = [node for operand in operands for node in leaves(operand)]
        shape, kind = instruction.shape, kind_of(instruction.opcode)
        if _allocates(instruction) or _is_stored(instruction):
            kind = Kind.SOURCE  # memory that nobody has written yet, or that was written with the program
        folds = kind in (Kind.BROADCAST, Kind.ELEMENTWISE) or instruction.opcode in ("reshape", "transpose", "slice")
        if folds and inputs and all(self.nodes[i].kind is Kind.FREE for i in inputs):
            kind = Kind.FREE
        if shape.dtype != "tuple":
            return self._add(instruction.name, instruction.opcode, kind, shape, inputs, weight, instruction)
        if kind in (Kind.SOURCE, Kind.FREE):
            return self._sources(instruction.name, instruction.opcode, shape, inputs, weight)
        # Several results: the operation writes them all, and each is read from memory.
        whole = self._add(instruction.name, instruction.opcode, Kind.OPAQUE, shape, inputs, weight, instruction)
        self._mark_output(whole)
        return self._sources(instruction.name, "get-tuple-element", shape, [whole], weight)

    def _bitcast(self, instruction: Instruction, operands: list[Value], weight: float) -> Value:
        """Add the operation whose work XLA saved by its choice of layouts, if there is one: layouts are chosen here."""
        if isinstance(operands[0], list):
            return operands[0]
        known = unlaid(instruction, self.nodes[operands[0]].shape)
        return operands[0] if known is None else self._operation(known, operands, weight)

    def _loop(self, instruction: Instruction, state: Value, weight: float, depth: int) -> Value:
        nodes = leaves(state)
        start = [self._number(node) for node in nodes]
        change = steps(self.module, instruction, start)
        count = trip_count(self.module, instruction, start, change)
        if count == 0:
            self.idle_loops.append(instruction.name)
            return state
        if count is None:
            self.unknown_loops.append(instruction.name)
        body = self.module.computations[instruction.attributes["body"]]
        flat = state == nodes  # in nested tuples, the place of a part is not the number of its array
        turned = {i: chain for i, node in enumerate(nodes) if flat and (chain := self._turns(node, body, i))}
        before = [turned[i][-1] if i in turned else node for i, node in enumerate(nodes)]
        self._mark_output(before)
        trips = weight * (count or 1)
        inside = self._sources(f"{instruction.name}.state", "parameter", instruction.shape, [], trips)
        stored = self._turn_inside(turned, inside, f"{instruction.name}.state", trips)
        self._numbers |= {
            node: number
            for node, number, step in zip(leaves(inside), start, change, strict=True)
            if number is not None and step == 0
        }
        self._test(instruction, inside, trips, depth)
        after = leaves(self._walk(body, {0: inside}, trips, depth + 1))
        self._mark_output([stored.get(node, node) for node in after])
        return self._sources(instruction.name, "while", instruction.shape, before, weight)

    def _test(self, loop: Instruction, state: Value, weight: float, depth: int) -> None:
        """Enter a loop's condition if it works on arrays: one on numbers runs on the scalar unit and costs nothing."""
        said = (self.unknown_loops, self.idle_loops, self.conditionals, self.unknown_calls)
        first, lengths = len(self.nodes), [*map(len, said)]
        result = self._walk(self.module.computations[loop.attributes["condition"]], {0: state}, weight, depth + 1)
        added = [node for node in self.nodes[first:] if node.kind > Kind.FREE]
        if any(shape.dims for node in added for shape in (node.shape, *node.inputs)):
            self._mark_output(result)
            return
        for names, length in zip(said, lengths, strict=True):
            del names[length:]

    def _turns(self, node: int, body: Computation, place: int) -> list[int]:
        """Return a part of a loop's state, and before it what it turns, if the loop may turn its slices instead.

        A chain of transposes, and of reshapes that only add or drop dimensions of size 1, leads to the last node.
        """
        chain = [node]
        while (operation := self.nodes[chain[-1]]).opcode in ("transpose", "reshape"):
            if operation.opcode == "reshape" and _real(operation.shape) != _real(operation.inputs[0]):
                break
            chain += operation.operands
        return chain if len(chain) > 1 and _only_sliced(body, place) else []

    def _turn_inside(
        self, turned: Mapping[int, Sequence[int]], state: list[int], name: str, weight: float
    ) -> dict[int, int]:
        """Turn parts of a loop's state in its body, and return for each such part the node that is stored."""
        stored = {}
        for place, chain in turned.items():
            shape = self.nodes[chain[-1]].shape
            kept = node = self._add(f"{name}.{place}", "parameter", Kind.SOURCE, shape, [], weight, None)
            for turn in map(self.nodes.__getitem__, reversed(chain[:-1])):
                node = self._add(turn.name, turn.opcode, turn.kind, turn.shape, [node], weight, turn.source)
            state[place], stored[node] = node, kept
        return stored

    def _number(self, node: int, folds: int = _FOLDS) -> int | None:
        """Return the integer that a node computes from constants, None if that is not known."""
        operation = self.nodes[node]
        if node in self._numbers or operation.source is None or not folds or len(operation.operands) > 2:
            return self._numbers.get(node)
        return number(operation.source, [self._number(operand, folds - 1) for operand in operation.operands])

    def _branches(self, instruction: Instruction, operands: list[Value], weight: float, depth: int) -> Value:
        """Enter every branch; all are assumed to run equally often."""
        called = instruction.called_computations
        self.conditionals += [instruction.name] if len(called) > 1 else []
        results: list[int] = []
        for operand in operands:
            self._mark_output(operand)
        for name, argument in zip(called, operands[1:], strict=False):
            result = self._walk(self.module.computations[name], {0: argument}, weight / len(called), depth + 1)
            self._mark_output(result)
            results += leaves(result)
        return self._sources(instruction.name, "conditional", instruction.shape, results, weight)

    def _sources(self, name: str, opcode: str, shape: Shape, operands: list[int], weight: float) -> Value:
        """Add a node in memory for each leaf of a shape."""
        if shape.dtype != "tuple":
            return self._add(name, opcode, Kind.SOURCE, shape, operands, weight, None)
        parts = enumerate(shape.elements)
        return [self._sources(f"{name}.{i}", opcode, part, operands, weight) for i, part in parts]

    def _add(
        self,
        name: str,
        opcode: str,
        kind: Kind,
        shape: Shape,
        operands: list[int],
        weight: float,
        source: Instruction | None,
    ) -> int:
        if len(self.nodes) >= LARGEST_GRAPH:
            raise UserError(f"it has more than {LARGEST_GRAPH:,} operations after inlining; take a part of it")
        self._count_uses(operands)
        inputs = [self.nodes[operand].shape for operand in operands]
        self.nodes.append(Operation(name, opcode, kind, shape, operands, inputs, weight, source))
        return len(self.nodes) - 1

    def _mark_output(self, value: Value) -> None:
        nodes = leaves(value)
        self._count_uses(nodes)
        for node in nodes:
            self.nodes[node].output = True
        self._outputs += nodes

    def _count_uses(self, uses: list[int]) -> None:
        self._uses += len(uses)
        if self._uses > MOST_USES:
            raise UserError(f"its operations have more than {MOST_USES:,} operands; take a part of it")


def _argument(parameter: Instruction, computation: Computation, arguments: Mapping[int, Value]) -> Value:
    number = parameter.parameter_number or 0
    if number not in arguments:
        given = f"is given {len(arguments)} operand{'s' * (len(arguments) != 1)}"
        raise Unfit(f"computation {computation.name!r} {given} and has no operand {number}")
    return arguments[number]


def _only_sliced(body: Computation, place: int) -> bool:
    """Return whether a loop's body changes nothing in a part of its state and takes only slices of it.

    A slice is as cheap in front of a transpose as behind it, and so the loop may turn each slice instead.
    """
    of, root = body.instructions, body.instructions[body.root]
    parts = {
        i
        for i, one in enumerate(of)
        if one.opcode == "get-tuple-element"
        and of[one.operands[0]].opcode == "parameter"
        and one.attributes.get("index") == str(place)
    }
    users = [one for one in of if one is not root and not parts.isdisjoint(one.operands)]
    kept = root.opcode == "tuple" and place < len(root.operands) and root.operands[place] in parts
    return kept and all(one.opcode == "dynamic-slice" for one in users)


def _real(shape: Shape) -> list[int]:
    return [size for size in shape.dims if size != 1]


def _allocates(instruction: Instruction) -> bool:
    return instruction.attributes.get("custom_call_target") == '"AllocateBuffer"'


def _is_stored(instruction: Instruction) -> bool:
    """Return whether this is a constant of more than a tile, which lies in memory as weights of a program do."""
    size = math.prod(instruction.shape.dims) * bytes_of(instruction.shape.dtype)
    return instruction.opcode == "constant" and size > _TILE_BYTES


def leaves(value: Value) -> list[int]:
    """Return the nodes in a value, in order.

    Raises:
      UserError: the value has too many parts.
    """
    if not isinstance(value, list):
        return [value]
    found: list[int] = []
    waiting, seen = [value], 0
    while waiting:
        part = waiting.pop()
        seen += 1
        if not isinstance(part, list):
            found.append(part)
        elif seen + len(part) > LARGEST_GRAPH:
            raise UserError(f"one of its tuples has more than {LARGEST_GRAPH:,} parts; take a part of it")
        else:
            waiting += reversed(part)
    return found


def _finished(opcode: str, value: Value) -> Value:
    """Return the result of an asynchronous operation from the value of its start."""
    if opcode == "all-reduce" or not isinstance(value, list):
        return value
    if opcode == "recv":
        return [value[0], value[2]]
    return value[{"copy": 0, "send": 2}.get(opcode, 1)]


def unlaid(bitcast: Instruction, operand: Shape) -> Instruction | None:
    """Return the transpose or reshape that a bitcast was before layouts were chosen; None if it changes nothing."""
    order = _order(bitcast.shape, operand)
    if order is None:
        return None if bitcast.shape.dims == operand.dims else replace(bitcast, opcode="reshape")
    if order == sorted(order):
        return None
    dimensions = ",".join(map(str, order))
    return replace(bitcast, opcode="transpose", attributes=bitcast.attributes | {"dimensions": f"{{{dimensions}}}"})


def _order(result: Shape, operand: Shape) -> list[int] | None:
    """Return for each dimension of the result the same dimension of the operand; None if they are not the same ones."""
    if len(result.dims) != len(operand.dims):
        return None
    last_to_first = tuple(reversed(range(len(result.dims))))
    there = dict(zip(result.layout or last_to_first, operand.layout or last_to_first, strict=True))
    order = [there[d] for d in range(len(result.dims))]
    return order if tuple(operand.dims[d] for d in order) == result.dims else None
