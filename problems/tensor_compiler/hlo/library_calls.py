"""Calls of cuBLAS and cuDNN, in modules that XLA has optimised for a GPU, as the operations that they compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .module import Instruction, Shape, Unfit
from .windows import Axis, axes

_PRODUCTS = ("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8")
_FORWARD = ("__cudnn$convForward", "__cudnn$convBiasActivationForward")
_OF_INPUT, _OF_FILTER = "__cudnn$convBackwardInput", "__cudnn$convBackwardFilter"
_DIMENSIONS = {
    "lhs_batch_dims": "lhs_batch_dimensions",
    "rhs_batch_dims": "rhs_batch_dimensions",
    "lhs_contracting_dims": "lhs_contracting_dimensions",
    "rhs_contracting_dims": "rhs_contracting_dimensions",
}
"""The attributes of a product, and where a call has them."""


def computed(call: Instruction, inputs: Sequence[Shape]) -> Instruction | None:
    """Return the product or convolution of a call's first two operands; None if it calls nothing that is known.

    Labels and window of a call for a gradient are those of the convolution whose gradient it is.

    Args:
      inputs: the shapes of the operands.
    """
    target = call.attributes.get("custom_call_target", "").strip('"')
    result = call.shape.elements[0] if call.shape.dtype == "tuple" and call.shape.elements else call.shape
    if target in _PRODUCTS:
        dimensions = {ours: _numbers(call, theirs) for ours, theirs in _DIMENSIONS.items()}
        known = dimensions["lhs_contracting_dims"] is not None
        return _as(call, "dot", result, dimensions) if known else None
    if target in (*_FORWARD, _OF_INPUT, _OF_FILTER):
        return _as(call, "convolution", result, _convolution(call, target, inputs, result))
    return None


def _as(call: Instruction, opcode: str, result: Shape, attributes: dict[str, str | None]) -> Instruction:
    kept = {key: text for key, text in call.attributes.items() if key in ("metadata", "feature_group_count")}
    own = {key: text for key, text in attributes.items() if text}
    return replace(call, opcode=opcode, shape=result, operands=call.operands[:2], attributes=kept | own)


def _numbers(call: Instruction, name: str) -> str | None:
    """Return a list of the call's JSON as an attribute such as `{0,1}`; numbers may be strings there."""
    found = re.search(rf'{name}"?\s*:\s*\[([^\]]*)\]', call.attributes.get("backend_config", "").replace("\\", ""))
    return f"{{{','.join(re.findall(r'[0-9]+', found[1]))}}}" if found else None


def _convolution(call: Instruction, target: str, inputs: Sequence[Shape], result: Shape) -> dict[str, str | None]:
    """Return the attributes of the convolution that a call computes: a gradient is one of the other two arrays."""
    left, right, out = re.split("_|->", call.attributes["dim_labels"])
    if target in _FORWARD:
        return {key: call.attributes.get(key) for key in ("window", "dim_labels")}
    whole, some = (result, inputs[0]) if target == _OF_INPUT else (inputs[0], inputs[1])
    found = [(axis, _size(whole, left, n), _size(some, out, n)) for n, axis in enumerate(axes(call))]
    if target == _OF_INPUT:
        labels, window = f"{out}_{_swapped(right, 'io')}->{left}", [_of_input(*each) for each in found]
        return {"window": _written(window), "dim_labels": labels}
    labels = f"{_swapped(left, 'bf')}_{out.translate(_AS_FILTER)}->{right.translate(_AS_RESULT)}"
    groups = {"feature_group_count": "1", "batch_group_count": call.attributes.get("feature_group_count")}
    return {"window": _written([_of_filter(*each) for each in found]), "dim_labels": labels} | groups


_AS_FILTER, _AS_RESULT = str.maketrans("bf", "io"), str.maketrans("io", "bf")
"""What the dimensions of an output and of a filter are called where they are those of a filter and of an output."""


def _of_input(axis: Axis, whole: int, some: int) -> Axis:
    """Return the window of the gradient of an input of `whole` pixels, from one of `some`."""
    reach = (axis.size - 1) * axis.rhs_dilate
    low = reach - axis.low
    high = whole + reach - (some - 1) * axis.stride - 1 - low
    return Axis(axis.size, 1, low, high, axis.stride, axis.rhs_dilate)


def _of_filter(axis: Axis, whole: int, some: int) -> Axis:
    """Return the window of the gradient of a filter, over an input of `whole` pixels, of `some` pixels."""
    high = (axis.size - 1) * axis.rhs_dilate + (some - 1) * axis.stride + 1 - whole - axis.low
    return Axis(some, axis.rhs_dilate, axis.low, high, 1, axis.stride)


def _size(shape: Shape, labels: str, axis: int) -> int:
    if len(labels) != len(shape.dims):
        raise Unfit("it has other labels than dimensions")
    return shape.dims[labels.index(str(axis))]


def _swapped(labels: str, pair: str) -> str:
    return labels.translate(str.maketrans(pair, pair[::-1]))


def _written(window: Sequence[Axis]) -> str:
    columns = {key: [getattr(axis, key) for axis in window] for key in ("size", "stride", "lhs_dilate", "rhs_dilate")}
    columns["pad"] = [f"{axis.low}_{axis.high}" for axis in window]
    parts = [f"{key}={'x'.join(map(str, column))}" for key, column in columns.items()]
    return f"{{{' '.join(parts)}}}" if window else ""
