"""Small modules, and a function that runs them: passes must not change what a program computes."""

import jax
import numpy as np
from jaxlib import _jax  # compilation without XLA's passes is private

from bbo_problems.tensor_compiler.hlo.passes import LOWERINGS, PASSES, PREPARATION
from bbo_problems.tensor_compiler.hlo.xla import stablehlo

CHAIN = """HloModule chain, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

half {
  x = f32[4]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[4]{0} broadcast(two), dimensions={}
  ROOT y = f32[4]{0} divide(x, twos)
}

ENTRY main {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} call(a), to_apply=half
  c = f32[4]{0} call(a), to_apply=half
  d = f32[4]{0} exponential(b)
  e = f32[4]{0} exponential(c)
  ROOT f = f32[4]{0} multiply(d, e)
}
"""
FLOW = """HloModule flow, entry_computation_layout={(f32[8]{0}, s32[])->f32[]}

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

test {
  t = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  t = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8]{0} get-tuple-element(t), index=1
  y = f32[8]{0} sine(x)
  z = f32[8]{0} cosine(y)
  ROOT r = (s32[], f32[8]{0}) tuple(j, z)
}

left {
  x = f32[8]{0} parameter(0)
  ROOT y = f32[8]{0} negate(x)
}

right {
  x = f32[8]{0} parameter(0)
  y = f32[8]{0} abs(x)
  ROOT z = f32[8]{0} exponential(y)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[8]{0}) tuple(zero, x)
  loop = (s32[], f32[8]{0}) while(start), condition=test, body=body
  y = f32[8]{0} get-tuple-element(loop), index=1
  z = f32[8]{0} conditional(i, y, y), branch_computations={left, right}
  nought = f32[] constant(0)
  ROOT sum = f32[] reduce(z, nought), dimensions={0}, to_apply=plus
}
"""
BFLOAT = """HloModule bfloat, entry_computation_layout={(bf16[4,6]{1,0}, bf16[3,6]{1,0}, f32[3]{0})->f32[3]{0}}

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = bf16[4,6]{1,0} parameter(0)
  w = bf16[3,6]{1,0} parameter(1)
  b = f32[3]{0} parameter(2)
  y = bf16[4,3]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  half = bf16[] constant(0.5)
  halves = bf16[4,3]{1,0} broadcast(half), dimensions={}
  z = bf16[4,3]{1,0} multiply(y, halves)
  e = bf16[4,3]{1,0} tanh(z)
  f = f32[4,3]{1,0} convert(e)
  zero = f32[] constant(0)
  s = f32[3]{0} reduce(f, zero), dimensions={0}, to_apply=plus
  four = f32[] constant(4)
  fours = f32[3]{0} broadcast(four), dimensions={}
  m = f32[3]{0} divide(s, fours)
  ROOT r = f32[3]{0} add(m, b)
}
"""


def computed(text, inputs, lowered=False):
    """Return what a module computes; a lowered one only goes through the stages after the count."""
    behind = [*PASSES, *LOWERINGS, *PREPARATION, "tree_reduction_rewriter"] if lowered else []
    options = _jax.CompileOptions()
    options.executable_build_options.debug_options.xla_disable_hlo_passes = ",".join(behind)
    device = jax.devices("cpu")[0]
    devices = _jax.DeviceList((device,))
    program = device.client.compile_and_load(stablehlo(text), devices, options)
    return [np.asarray(result, np.float64) for result in program.execute([jax.device_put(x) for x in inputs])]
