"""Programs of any size with a realistic mixture: layers of a transformer's feed-forward half, as HLO text."""

from __future__ import annotations

from bbo_problems.tensor_compiler import hlo
from bbo_problems.tensor_compiler.build import build
from bbo_problems.tensor_compiler.graph import Graph

_SUMS = "sums {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
_LAYER = """
  square{i} = X multiply(x{i}, x{i})
  sum{i} = f32[1024]{{0}} reduce(square{i}, zero), dimensions={{1}}, to_apply=sums
  mean{i} = f32[1024]{{0}} multiply(sum{i}, share)
  safe{i} = f32[1024]{{0}} add(mean{i}, share)
  root{i} = f32[1024]{{0}} rsqrt(safe{i})
  wide{i} = X broadcast(root{i}), dimensions={{0}}
  normed{i} = X multiply(x{i}, wide{i})
  scaled{i} = X multiply(normed{i}, scales)
  up{i} = X dot(scaled{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  bias{i} = X broadcast(b), dimensions={{1}}
  shifted{i} = X add(up{i}, bias{i})
  gate{i} = X tanh(shifted{i})
  half{i} = X multiply(shifted{i}, gate{i})
  down{i} = X dot(half{i}, u), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  x{next} = X add(x{i}, down{i})"""
_PARAMETERS = """
  zero = f32[] constant(0)
  half = f32[] constant(0.5)
  share = f32[1024]{0} broadcast(half), dimensions={}
  x0 = X parameter(0)
  w = X parameter(1)
  u = X parameter(2)
  b = f32[1024]{0} parameter(3)
  s = f32[1024]{0} parameter(4)
  scales = X broadcast(s), dimensions={1}"""
_NODES = _LAYER.count("=") - _LAYER.count("dims=") - _LAYER.count("dimensions=") - _LAYER.count("to_apply=")


def layers(nodes: int) -> Graph:
    """Return a program of about so many nodes; one broadcast is shared by all layers."""
    count = max(1, nodes // _NODES)
    body = "".join(_LAYER.format(i=i, next=i + 1) for i in range(count))
    text = f"HloModule layers\n\n{_SUMS}\nENTRY main {{{_PARAMETERS}{body}\n  ROOT last = X negate(x{count})\n}}\n"
    return build(hlo.parse(text.replace("X", "f32[1024,1024]{1,0}")), "layers")
