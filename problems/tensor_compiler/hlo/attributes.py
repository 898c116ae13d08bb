"""What XLA asks of HLO instructions: the grammar of attributes, which ones an opcode needs, and how many operands."""

from __future__ import annotations

import re
from collections.abc import Collection

_N, _SIGNED, _COUNT = r"\d{1,18}", r"-?\d{1,18}", r"0*+[1-9]\d{0,17}"
_COMMA = r"\s*+,\s*+"


def _several(part: str, separator: str) -> str:
    return rf"{part}(?:{separator}{part})*+"


def _braced(part: str) -> str:
    return rf"\{{\s*+(?:{_several(part, _COMMA)}\s*+)?\}}"


_NUMBERS, _LIST = _several(_N, _COMMA), _braced(_N)
_PADS = _several(rf"{_SIGNED}_{_SIGNED}", "x")
_FIELDS = (
    rf"(?:size|stride|lhs_dilate|rhs_dilate)=\s*+{_several(_COUNT, 'x')}",
    rf"pad=\s*+{_PADS}",
    rf"rhs_reversal=\s*+{_several('[01]', 'x')}",
)
_GRAMMAR = {
    "a list of numbers such as `{0,1}`": (
        _LIST,
        """dimensions lhs_batch_dims rhs_batch_dims lhs_contracting_dims rhs_contracting_dims rhs_group_dims
        lhs_ragged_dims offset_dims collapsed_slice_dims start_index_map slice_sizes update_window_dims
        inserted_window_dims scatter_dims_to_operand_dims operand_batching_dims start_indices_batching_dims
        input_batching_dims scatter_indices_batching_dims dynamic_slice_sizes fft_length""",
    ),
    "a number": (
        _N,
        "channel_id index iota_dimension index_vector_dim feature_index k exponent_bits mantissa_bits",
    ),
    "a number above 0": (_COUNT, "feature_group_count batch_group_count"),
    "`true` or `false`": (
        "true|false",
        """is_stable indices_are_sorted unique_indices use_global_device_ids custom_call_has_side_effect
        constrain_layout lower left_side unit_diagonal largest is_host_transfer""",
    ),
    "a window such as `{size=3x3 pad=1_1x1_1}`": (
        rf"\{{\s*+(?:(?:{'|'.join(_FIELDS)})(?:\s++|(?=\}})))*+\}}",
        "window",
    ),
    "labels such as `b01f_01io->b01f`": (r"[\dbf?]++_[\dio?]++->[\dbf?]++", "dim_labels"),
    "a padding such as `0_0x1_1_0`": (_several(rf"{_SIGNED}_{_SIGNED}(?:_{_N})?", "x"), "padding"),
    "a list of ranges such as `{[0:8], [0:128:2]}`": (
        _braced(rf"\[\s*+{_N}\s*+:\s*+{_N}(?:\s*+:\s*+{_N})?\s*+\]"),
        "slice",
    ),
    "groups such as `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['a'=2] {'a'}`": (
        rf"{_braced(_LIST)}|\[{_NUMBERS}\]\s*+<=\s*+\[{_NUMBERS}\](?:T\({_NUMBERS}\))?|mesh\[.*",
        "replica_groups",
    ),
    "pairs such as `{{0,1},{1,0}}`": (_braced(rf"\{{\s*+{_N}{_COMMA}{_N}\s*+\}}"), "source_target_pairs"),
    "a direction such as `LT`": ("EQ|NE|GE|GT|LE|LT", "direction"),
}
_KNOWN = {
    key: (re.compile(pattern, re.DOTALL), words) for words, (pattern, keys) in _GRAMMAR.items() for key in keys.split()
}


_NEEDED = {
    "dimensions": "all-gather broadcast concatenate get-dimension-size reverse transpose",
    "dimensions to_apply": "reduce reduce-scatter sort",
    "to_apply": "all-reduce call map reduce-window",
    "calls": "fusion",
    "condition body": "while",
    "select scatter": "select-and-scatter",
    "custom_call_target": "custom-call",
    "dim_labels": "convolution",
    "direction": "compare",
    "dynamic_slice_sizes": "dynamic-slice",
    "fft_length": "fft",
    "index": "get-tuple-element",
    "offset_dims collapsed_slice_dims start_index_map index_vector_dim slice_sizes": "gather",
    "padding": "pad",
    "slice": "slice",
    "to_apply update_window_dims inserted_window_dims scatter_dims_to_operand_dims index_vector_dim": "scatter",
}
_OPERANDS = {
    0: "iota partition-id replica-id",
    1: """abs acos acosh asin asinh atanh bitcast bitcast-convert broadcast cbrt ceil cholesky convert copy cosh cosine
        count-leading-zeros erf exponential exponential-minus-one fft floor get-dimension-size get-tuple-element imag
        is-finite log log-plus-one logistic negate not popcnt real reduce-precision reshape reverse round-nearest-afz
        round-nearest-even rsqrt sign sine sinh slice sqrt tan tanh transpose while""",
    2: """add and atan2 compare complex convolution divide gather maximum minimum multiply or pad power remainder
        set-dimension-size shift-left shift-right-arithmetic shift-right-logical stochastic-convert subtract
        triangular-solve xor""",
    3: "batch-norm-training clamp select select-and-scatter",
    5: "batch-norm-grad batch-norm-inference",
}
_NEEDS = {name: keys.split() for keys, names in _NEEDED.items() for name in names.split()}
_COUNTS = {name: count for count, names in _OPERANDS.items() for name in names.split()}


def lacking(opcode: str, operands: int, attributes: Collection[str]) -> str:
    """Return what an instruction has too little or too much of, in words; empty if it has what XLA asks for."""
    missing = [key for key in _NEEDS.get(opcode, ()) if key not in attributes]
    if missing:
        return f"has no {missing[0]}"
    count = _COUNTS.get(opcode, operands)
    return "" if operands == count else f"has {operands} operands where it should have {count}"


def expected(key: str, value: str) -> str:
    """Return what an attribute should be, in words; empty if it is well-formed or not listed."""
    pattern, words = _KNOWN.get(key, (None, ""))
    return "" if pattern is None or pattern.fullmatch(value) else words
