"""Where two pictures of a program differ: kernels that became others, in groups that stand on their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy.cluster.hierarchy import DisjointSet

from ..core.program import Kernel, Program

_SAME = 1e-6
"""The largest relative difference in cost that is not shown."""


@dataclass(frozen=True)
class Region:
    """Kernels that became others.

    Attributes:
      before, after: the kernels' numbers in the two programs, ascending.
      gain: the cost before minus the cost after, in the problem's unit.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    gain: float


def regions(before: Program, after: Program) -> list[Region]:
    """Return the regions in which two programs differ.

    A kernel belongs to the region of the kernel of the same name. If there is none, it belongs to those that compute
    the instruction that it stores.
    """
    old, new = ({kernel.name: i for i, kernel in enumerate(program.kernels)} for program in (before, after))
    joined = DisjointSet(name for name in old | new if _differs(before, after, old.get(name), new.get(name)))
    for here, there, program in ((old, new, after), (new, old, before)):
        computed = _computed(program)
        for name in here.keys() - there.keys():
            for kernel in filter(joined.__contains__, computed[name]):
                joined.merge(name, kernel)
    return [_region(before, after, sorted(old[n] for n in names if n in old), sorted(new[n] for n in names if n in new))
            for names in joined.subsets()]  # fmt: skip


def alike(before: Program, after: Program, found: list[Region]) -> list[list[Region]]:
    """Return the regions in groups with the same costs and sizes, such as one in each layer; the largest gain first."""
    groups: dict[tuple, list[Region]] = defaultdict(list)
    for region in found:
        sides = ((before, region.before), (after, region.after))
        groups[tuple(tuple(_form(program.kernels[i]) for i in side) for program, side in sides)].append(region)
    ordered = [sorted(group, key=lambda region: region.before or region.after) for group in groups.values()]
    return sorted(ordered, key=lambda group: (-len(group) * group[0].gain, group[0].before, group[0].after))


def _form(kernel: Kernel) -> tuple[str, int]:
    return f"{kernel.cost:.4g}", len(kernel.members)


def _differs(before: Program, after: Program, old: int | None, new: int | None) -> bool:
    if old is None or new is None:
        return True
    a, b = before.kernels[old], after.kernels[new]
    return set(a.members) != set(b.members) or dict(a.settings) != dict(b.settings) or _apart(a.cost, b.cost)


def _apart(first: float, second: float) -> bool:
    return abs(first - second) > _SAME * max(abs(first), abs(second))


def _computed(program: Program) -> dict[str, list[str]]:
    """Return the names of the kernels that compute each instruction."""
    kernels: dict[str, list[str]] = defaultdict(list)
    for kernel in program.kernels:
        for member in kernel.members:
            kernels[member].append(kernel.name)
    return kernels


def _region(before: Program, after: Program, old: list[int], new: list[int]) -> Region:
    gain = sum(before.kernels[i].cost for i in old) - sum(after.kernels[i].cost for i in new)
    return Region(tuple(old), tuple(new), gain)


def neighbours(program: Program, inside: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the kernels outside that some kernels read, and those that read them."""
    chosen = set(inside)
    pairs = [(a, b) for a, b in program.edges.tolist() if (a in chosen) != (b in chosen)]
    return _unique(a for a, b in pairs if b in chosen), _unique(b for a, b in pairs if a in chosen)


def _unique(numbers: Iterator[int]) -> list[int]:
    return sorted(set(numbers))
