"""Calls of GPU libraries are the products and convolutions that they compute."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import pytest

from bbo_problems.tensor_compiler.graph import shapes
from bbo_problems.tensor_compiler.graph.build import build, in_order
from bbo_problems.tensor_compiler.graph.flatten import Flattener
from bbo_problems.tensor_compiler.hlo import reader as hlo


def flat(text):
    """Return the operations of a program."""
    return in_order(*Flattener(hlo.parse(text)).entry())


def product(text):
    """Return the five numbers of the one product or convolution of a program."""
    (found,) = [node for node in flat(text) if node.opcode in ("dot", "convolution")]
    return shapes.matrix(found)


def lowered(function, *arguments):
    return jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text()


def call(result, target, inputs, attributes):
    """Return the text of a program that calls a library with arrays of some shapes."""
    given = "\n".join(f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(inputs))
    names = ", ".join(f"p{i}" for i in range(len(inputs)))
    called = f'c = ({result}, s8[4194304]{{0}}) custom-call({names}), custom_call_target="{target}", {attributes}'
    return f"HloModule m\n\nENTRY main {{\n{given}\n  {called}\n  ROOT r = {result} get-tuple-element(c), index=0\n}}\n"


def config(numbers=str, quoted=False, **dimensions):
    lists = {f"{key}_dimensions": [numbers(n) for n in each] for key, each in dimensions.items()}
    text = json.dumps({"alpha_real": 1, "beta": 0, "dot_dimension_numbers": lists, "epilogue": "DEFAULT"})
    return f"backend_config={json.dumps(text) if quoted else text}"


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"])
@pytest.mark.parametrize("form", [{}, {"numbers": int, "quoted": True}])
def test_a_call_of_cublas_is_a_product(target, form):
    dimensions = {"lhs_batch": [0], "rhs_batch": [0], "lhs_contracting": [2], "rhs_contracting": [1]}
    text = call("f32[4,64,16]{2,1,0}", target, ["f32[4,64,32]", "f32[4,32,16]"], config(**form, **dimensions))
    assert product(text) == (4, 64, 16, 32, 1)


def test_what_a_product_adds_is_read_and_what_it_scales_by_is_computed():
    inputs = ["f32[64,32]", "f32[32,16]", "f32[64,16]", "f32[16]"]
    dimensions = config(lhs_batch=[], rhs_batch=[], lhs_contracting=[1], rhs_contracting=[0])
    nodes = flat(call("f32[64,16]", "__cublas$lt$matmul", inputs, dimensions))
    assert [node.opcode for node in nodes if node.opcode != "parameter"] == ["dot", "add"]
    assert len([node for node in nodes if node.opcode == "parameter"]) == 4


def computes(strides, padding, groups):
    def function(x, filter):
        return jax.lax.conv_general_dilated(
            x, filter, strides, padding, dimension_numbers=("NHWC", "OHWI", "NHWC"), feature_group_count=groups
        )

    return function


CONVOLUTIONS = [
    ((2, 20, 24, 8), (16, 3, 3, 8), (1, 1), ((1, 1), (1, 1)), 1),
    ((2, 21, 24, 8), (16, 5, 3, 8), (2, 2), ((2, 1), (0, 1)), 1),
    ((4, 20, 24, 8), (16, 1, 1, 8), (2, 2), ((0, 0), (0, 0)), 1),
    ((4, 20, 24, 8), (8, 3, 3, 1), (1, 1), ((1, 1), (1, 1)), 8),
]


@pytest.mark.parametrize(("image", "filter", "strides", "padding", "groups"), CONVOLUTIONS)
def test_calls_of_cudnn_are_the_convolutions_of_jax(image, filter, strides, padding, groups):
    x, f = jnp.zeros(image), jnp.zeros(filter)
    function = computes(strides, padding, groups)
    y = jax.eval_shape(function, x, f)
    arrays = [f"f32[{','.join(map(str, each.shape))}]" for each in (x, f, y)]
    pads = "x".join(f"{low}_{high}" for low, high in padding)
    size, stride = ("x".join(map(str, each)) for each in (filter[1:3], strides))
    window = f"window={{size={size} stride={stride} pad={pads}}}, dim_labels=b01f_o01i->b01f"
    window += f", feature_group_count={groups}" if groups > 1 else ""
    found = [
        product(call(arrays[result], f"__cudnn$conv{name}", [arrays[i] for i in inputs], window))
        for name, result, inputs in (
            ("Forward", 2, (0, 1)),
            ("BackwardInput", 0, (2, 1)),
            ("BackwardFilter", 1, (0, 2)),
        )
    ]
    back = jnp.zeros(y.shape)
    expected = [
        product(lowered(function, x, f)),
        product(lowered(lambda x, f, y: jax.vjp(lambda x: function(x, f), x)[1](y), x, f, back)),
        product(lowered(lambda x, f, y: jax.vjp(lambda f: function(x, f), f)[1](y), x, f, back)),
    ]
    assert found == expected


def test_other_calls_are_named():
    text = call("f32[8,64]", "__cudnn$fmhaSoftmax", ["f32[8,64]"], "backend_config={}")
    assert build(hlo.parse(text), "test").not_counted() == {
        "calls of unknown work": "__cudnn$fmhaSoftmax; each costs what it takes to move its arrays"
    }
