"""What can be decided about a program: flags, orders of dimensions, barriers; and what a candidate decides.

About seventy publicly documented flags for performance were tried. Those that change the estimate of small programs are
here, and some that only change the code. Flags that choose the compiler's cost model are left out, because they change
what is measured. Values are around the published ones. The compiler's own value is the first, or in its place on a
scale.

Where a flag is documented:
O  https://openxla.org/xla/flags_guidance
M  MaxText, the flags that it lists as autotuned and those of its run scripts, https://github.com/AI-Hypercomputer/maxtext
S  the flags of serving in Saxml, https://github.com/google/saxml
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Graph, Space, Structure, choice, product, scale
from bbo_suite.core.space import Parameter

DEFAULT = "default"
"""The value of a flag that is not set."""


@dataclass(frozen=True)
class Flag:
    """A flag; its `values` are texts, those of an ordered flag from small to large."""

    name: str
    values: tuple[str, ...]
    ordered: bool = False


def _off(name: str) -> Flag:
    return Flag(name, (DEFAULT, "false"))


def _on(name: str) -> Flag:
    return Flag(name, (DEFAULT, "true"))


def _scale(name: str, *values: str) -> Flag:
    return Flag(name, values, ordered=True)


FLAGS = (
    _scale(
        "xla_tpu_scoped_vmem_limit_kib", "4096", "8192", "12288", DEFAULT, "24576", "32768", "65536", "98304"
    ),  # O M S
    _off("xla_tpu_dot_dot_fusion"),  # O M S
    _on("xla_tpu_dot_dot_fusion_duplicated"),  # M S
    _on("xla_tpu_dot_dot_fusion_separable_convs_only"),  # M
    _off("xla_jf_enable_multi_output_fusion"),  # O M
    _off("xla_tpu_rwb_fusion"),  # O M S
    _off("xla_jf_conv_input_fusion"),  # M
    _off("xla_jf_conv_output_fusion"),  # M S
    _scale("xla_tpu_copy_fusion_pad_unpad_ratio", "0", "5.7", DEFAULT, "183"),  # M S
    _scale("xla_tpu_async_copy_bandwidth_scaling_factor", "0.05", "0.3", "0.7", DEFAULT, "1.5", "3"),  # O M S
    _on("xla_tpu_enforce_prefetch_fifo_order"),  # M S
    _scale("xla_tpu_prefetch_interval_picker_size_override", DEFAULT, "20000", "100000", "963616", "405728676"),  # M S
    _scale("xla_vf_vmem_max_outstanding_prefetches", "1", "4", "11", DEFAULT, "143"),  # S
    _scale("xla_vf_vmem_min_overlap_to_async_copy_ratio", "0.1", "0.19", "0.5", DEFAULT, "1.5"),  # S
    _scale("xla_vf_vmem_preferred_overlap_to_async_copy_ratio", "0.002", DEFAULT, "3.3", "8.3"),  # S
    _scale("xla_vf_vmem_max_overlap_to_mem_size_async_copy_ratio", "0.0047", "0.1", DEFAULT, "16"),  # S
    _on("xla_tpu_scavenge_vmem_for_fusions"),  # M
    Flag("xla_memory_scheduler", (DEFAULT, "list", "dfs", "post_order")),  # O
    _off("xla_tpu_order_dot_after_layout"),  # M S
    _on("xla_tpu_enable_aggressive_broadcast_priority_update"),  # M S
    _scale("xla_tpu_vector_load_fusion_window", "64", "555", DEFAULT, "2246"),  # M S
    _on("xla_tpu_use_lp_llo_scheduler_for_dot_dot_fusions"),  # M
    _on("xla_tpu_prefer_latch_optimized_rhs_layouts"),  # M
)


Order = tuple[int, ...]
"""The dimensions of an array in memory, major to minor."""


@dataclass(frozen=True)
class Value:
    """An array: its name, shape and dtype, and the source line that makes it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    where: str = ""


@dataclass(frozen=True)
class Description:
    """What a search can decide about a program.

    Attributes:
      arguments, results: its arguments and results, in order.
      marks: values inside it.
      flows: pairs (from, to) of these that flow into each other, numbered arguments first, then marks, then results.
      digest: changes with the program.
    """

    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    marks: tuple[Value, ...]
    flows: tuple[tuple[int, int], ...]
    digest: str


@dataclass(frozen=True)
class Decisions:
    """What a candidate changes.

    Attributes:
      flags: names and values of flags.
      arguments, results: numbers of arguments and results, and their orders.
      layouts: names of values inside, and their orders.
      barriers: names of values that are not fused into their users.
    """

    flags: tuple[tuple[str, str], ...] = ()
    arguments: tuple[tuple[int, Order], ...] = ()
    results: tuple[tuple[int, Order], ...] = ()
    layouts: tuple[tuple[str, Order], ...] = ()
    barriers: tuple[str, ...] = ()


FLAG, ARGUMENT, RESULT, LAYOUT, BARRIER = (field.name for field in fields(Decisions))
"""What a parameter decides: a field of `Decisions`."""


@dataclass(frozen=True)
class Decision:
    """One parameter.

    Attributes:
      kind: what it decides.
      key: the flag or value: its name, or its number among arguments or results.
      values: possible values; one of them is `default`.
      value: number of the value in the description's flows, -1 for a flag.
      name: for users.
      ordered: whether the values are a scale.
    """

    kind: str
    key: str | int
    values: tuple[str | Order, ...]
    value: int
    name: str
    ordered: bool = False

    def parameter(self) -> Parameter:
        """Return it as a parameter of a space."""
        return (scale if self.ordered else choice)(self.name, self.values)


def decisions_of(description: Description, flags: Sequence[Flag] = FLAGS) -> list[Decision]:
    """Return all parameters for a program."""
    return [*(Decision(FLAG, f.name, f.values, -1, f.name, f.ordered) for f in flags), *_of_values(description)]


def _of_values(description: Description) -> Iterator[Decision]:
    groups = ((ARGUMENT, description.arguments), (LAYOUT, description.marks), (RESULT, description.results))
    number = 0
    for kind, values in groups:
        for place, value in enumerate(values):
            key = value.name if kind == LAYOUT else place
            if len(orders := _orders(value)) > 1:
                yield Decision(kind, key, (DEFAULT, *orders), number, f"layout {value.name}")
            if kind == LAYOUT:
                yield Decision(BARRIER, value.name, (DEFAULT, "barrier"), number, f"barrier {value.name}")
            number += 1


def _orders(value: Value) -> list[Order]:
    """Return orders of an array's dimensions: the order of its shape, and all orders with one dimension moved."""
    rank = len(value.shape)
    found: dict[Order, None] = {tuple(range(rank)): None}
    for taken in range(rank):
        rest = [i for i in range(rank) if i != taken]
        found |= {(*rest[:place], taken, *rest[place:]): None for place in range(rank)}
    return list(found)


def space_of(decisions: Sequence[Decision]) -> tuple[Space, NDArray[np.int64]]:
    """Return the space of the parameters and the default row."""
    space = product(*(decision.parameter() for decision in decisions))
    return space, np.array([decision.values.index(DEFAULT) for decision in decisions])


def decisions_of_row(decisions: Sequence[Decision], config: NDArray) -> Decisions:
    """Return the decisions of a `(d,)` row, without those that are the default."""
    chosen: dict[str, list] = {field.name: [] for field in fields(Decisions)}
    for decision, index in zip(decisions, config.tolist(), strict=True):
        value = decision.values[index]
        if value != DEFAULT:
            chosen[decision.kind].append(decision.key if decision.kind == BARRIER else (decision.key, value))
    return Decisions(**{kind: tuple(values) for kind, values in chosen.items()})


_KINDS = (FLAG, ARGUMENT, RESULT, LAYOUT, BARRIER)
_NODE = ("is argument", "is inside", "is result", "log elements", "rank", "inputs", "users")
_FEATURES = (*(f"is {kind}" for kind in _KINDS), "values", *_NODE)


def declare(description: Description, decisions: Sequence[Decision]) -> Structure:
    """Return the structure: two parameters interact if they have the same value, or values with a flow between them.

    Flags interact with everything, because they affect the whole program; so none of these interactions is declared.
    """
    from ..tensor_compiler.graph.interactions import interactions  # it imports scipy, which is slow

    edges = np.array(description.flows, np.int32).reshape(-1, 2)
    nodes = _nodes(description, edges)
    of = np.array([decision.value for decision in decisions], np.int32)
    places, parameters = [], []
    for place, ends in enumerate([*((i, i) for i in range(len(nodes))), *description.flows]):
        meeting = np.flatnonzero(np.isin(of, ends))
        parameters.append(meeting)
        places.append(np.full(len(meeting), place))
    starts, neighbours = interactions(np.concatenate(places), np.concatenate(parameters), len(decisions))
    kinds = np.array([[decision.kind == kind for kind in _KINDS] for decision in decisions])
    counts = np.array([[len(decision.values)] for decision in decisions])
    own = np.where(of[:, None] >= 0, nodes[of], 0.0)
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=np.hstack([kinds, counts, own]).astype(np.float32),
        feature_names=_FEATURES,
        graph=Graph(nodes, _NODE, edges),
        nodes=of,
    )


def _nodes(description: Description, edges: np.ndarray) -> np.ndarray:
    groups: tuple[tuple[Value, ...], ...] = (description.arguments, description.marks, description.results)
    values = [value for group in groups for value in group]
    kinds = np.repeat(np.eye(3), [len(group) for group in groups], axis=0)
    sizes = [[np.log1p(np.prod(value.shape, dtype=float)), len(value.shape)] for value in values]
    degrees = [np.bincount(edges[:, side], minlength=len(values)) for side in (1, 0)]
    return np.column_stack([kinds, np.array(sizes), *degrees]).astype(np.float32)
