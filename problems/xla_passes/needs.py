"""What a module must contain for a pass to change anything; without it, the pass need not run."""

from __future__ import annotations

import re

_DOT = r" dot\("
_LOOP = r" while\("
_BRANCH = r" conditional\("
_GATHER = r" gather\("
_SCATTER = r" scatter\("
_NEEDS = {
    "zero_sized_hlo_elimination": r"\[(?:\d+,)*0[,\]]",
    "conditional-to-select": _BRANCH,
    "map-inline": r" map\(",
    "call-inliner": r" call\(",
    "batch-dot-simplification": _DOT,
    "simplify-sorts": r" sort\(",
    "while-loop-invariant-code-motion": _LOOP,
    "tuple-simplifier": r" get-tuple-element\(",
    "while-loop-constant-sinking": _LOOP,
    "simplify-while-loops": _LOOP,
    "simplify-conditional": _BRANCH,
    "transpose-folding": r" transpose\(",
    "dot_decomposer": _DOT,
    "float-normalization-bf16": r"\bbf16\[",
    "convolution-canonicalization": r" convolution\(",
    "gather_expander": _GATHER,
    "gather_simplifier": _GATHER,
    "select_and_scatter_expander": r" select-and-scatter\(",
    "scatter_expander": _SCATTER,
    "scatter_simplifier": _SCATTER,
    "gemv-rewriter": _DOT,
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _NEEDS.items()}


def has_work(name: str, text: str) -> bool:
    """True if a pass may change a module in HLO text."""
    return name not in _PATTERNS or bool(_PATTERNS[name].search(text))
