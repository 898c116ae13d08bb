"""All passes of XLA:CPU in four groups, and those of them that any target runs before layouts and fusion.

Names are those of jaxlib 0.10.2. XLA:CPU runs about ninety passes before it fuses operations. The groups are

- `PASSES`: optional. A program is valid and ready for code generation without them;
- `LOWERINGS`: code generation needs each of them once, at any time;
- `PREPARATION`: lowerings of operations that few programs have;
- `NEVER`: passes that XLA runs from layout assignment on, and `tree_reduction_rewriter`, which adds operations for
  accuracy in every round.
"""

from __future__ import annotations

import hashlib

PASSES = (
    "dce",
    "zero_sized_hlo_elimination",
    "conditional-to-select",
    "map-inline",
    "call-inliner",
    "batch-dot-simplification",
    "dynamic-dimension-simplifier",
    "algsimp",
    "simplify-sorts",
    "while-loop-invariant-code-motion",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "simplify-while-loops",
    "reshape-mover",
    "constant_folding",
    "simplify-conditional",
    "transpose-folding",
    "cse",
)
LOWERINGS = (
    "dot_decomposer",
    "float-normalization-bf16",
    "convolution-canonicalization",
    "gather_expander",
    "gather_simplifier",
    "select_and_scatter_expander",
    "scatter_expander",
    "scatter_simplifier",
    "gemv-rewriter",
)
PREPARATION = (
    "all-reduce-promotion",
    "all_to_all_decomposer",
    "associative-scan-rewriter",
    "async-collective-replacer",
    "batched_gather_scatter_normalizer",
    "batchnorm_expander",
    "bitcast_dtypes_expander",
    "change-op-data-type",
    "cholesky_expander",
    "comparison-expander",
    "conditional-canonicalizer",
    "control-dep-rewriter",
    "convolution-group-converter",
    "cse_barrier_expander",
    "dynamic-index-splitter",
    "dynamic_padder",
    "eigh_expander",
    "float-normalization-f4e2m1fn",
    "float-normalization-f8e3m4",
    "float-normalization-f8e4m3",
    "float-normalization-f8e4m3b11fnuz",
    "float-normalization-f8e4m3fn",
    "float-normalization-f8e4m3fnuz",
    "float-normalization-f8e5m2",
    "float-normalization-f8e5m2fnuz",
    "float-normalization-f8e8m0fnu",
    "float-normalization-s4",
    "float-normalization-u4",
    "literal-canonicalizer",
    "logistic-expander",
    "operand_upcaster",
    "qr_expander",
    "reduce-window-resizer",
    "reduce-window-rewriter",
    "result_caster",
    "rng-bit-generator-expander",
    "rng-expander",
    "scan_expander",
    "shape-canonicalizer",
    "sharding-remover",
    "shardy-xla",
    "stochastic_convert_decomposer",
    "strip-memory-placement-annotations",
    "sub-byte-size-setter",
    "topk-decomposer",
    "topk-rewriter",
    "triangular_solve_expander",
    "while-loop-trip-count-annotator",
)
NEVER = (
    "broadcast_canonicalizer",
    "copy-insertion",
    "cpu-all-reduce-combiner",
    "cpu-parallel-task-assigner",
    "dot-library-rewriter",
    "flatten-call-graph",
    "fusion",
    "fusion-wrapper",
    "layout-assignment",
    "optimize_input_output_buffer_alias",
    "propagate-call-metadata",
    "reduce-decomposer",
    "reshape-decomposer",
    "simplification after layout assignment",
    "small-while-loop-hoisting",
    "tree_reduction_rewriter",
)
"""`simplification after layout assignment` is a nested pipeline; it would create bitcasts, which block later passes."""
EVERY = (*PASSES, *LOWERINGS, *PREPARATION, *NEVER)
_EXPANDERS = ("batchnorm_expander", "dynamic_padder")  # the first asks for sizes, which the second knows
SIMPLIFICATIONS = tuple(
    name
    for name in (*PASSES, *_EXPANDERS, "while-loop-trip-count-annotator")
    if name not in ("simplify-sorts", "transpose-folding", "while-loop-constant-sinking")
)
"""Passes after which a program is as XLA:TPU's layouts and fusion find it.

`dot_decomposer` and `transpose-folding` are not among them: they fit matrix products to the routines of a CPU, and the
first one made a language model 25 % dearer. A layout makes such transposes free.
"""
FLATTEN = "sdy-flatten-call-graph"
"""Runs before them, on StableHLO: it copies functions, so that each is called once. XLA inlines only such calls."""
RECIPE = hashlib.sha256(" ".join((FLATTEN, *SIMPLIFICATIONS)).encode()).hexdigest()[:8]
"""Names these passes."""
