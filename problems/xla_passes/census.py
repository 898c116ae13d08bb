"""Counts the operations of a module in canonical text."""

from __future__ import annotations

import re
from collections import Counter

FREE = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})
"""Instructions that compute nothing."""
_OPCODE = re.compile(r" = (?:\([^()]*\)|\S+) ([a-z][\w-]*)\(")
_FLOW = re.compile(
    r"(?:condition|body|true_computation|false_computation|branch_computations)=\{?$| call\(.* to_apply=$"
)


def census(text: str) -> Counter[str]:
    """Return the number of operations of each kind in the entry, and in its loops, branches and calls.

    The function that a reduction, a scatter or a sort applies to single numbers is part of that operation and does not
    count. A function that is called twice counts twice; the body of a loop counts once.
    """
    counts: Counter[str] = Counter()
    runs, before = [True], ""  # for each open brace: whether its content counts
    for line in map(str.strip, text.splitlines()[1:]):
        if line.startswith("}"):
            runs.pop()
        if runs[-1] and (operation := _OPCODE.search(line)) and operation[1] not in FREE:
            counts[operation[1]] += 1
        if line.endswith("={"):  # a list of branches
            runs.append(runs[-1] and bool(_FLOW.search(line)))
        elif line == "{":
            listed = before == "}," or before.endswith("={")
            runs.append(runs[-1] and (listed or bool(_FLOW.search(before))))
        elif line.endswith("{"):
            runs.append(True)
        before = line
    return counts
