"""What single changes of the default cost to evaluate, as annealing proposes them: one after the other, and anew."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import Counter, Known
from bbo_problems.tensor_compiler.graph.build import build, read_graph
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.tasks.programs import program

PROGRAMS = ["resnet50", "transformer", "mobilenet", 1_000, 10_000, 100_000, 500_000]
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


def layers(nodes: int) -> ProgramGraph:
    """Return a program of about so many nodes; one broadcast is shared by all layers."""
    count = max(1, nodes // _NODES)
    body = "".join(_LAYER.format(i=i, next=i + 1) for i in range(count))
    text = f"HloModule layers\n\n{_SUMS}\nENTRY main {{{_PARAMETERS}{body}\n  ROOT last = X negate(x{count})\n}}\n"
    return build(hlo.parse(text.replace("X", "f32[1024,1024]{1,0}")), "layers")


@cache
def prepared(which: str | int) -> tuple[Fusion, np.ndarray]:
    """Return the pass on a program, and its default."""
    graph = read_graph(program(which)) if isinstance(which, str) else layers(which)
    layout = LayoutPass(graph, MACHINES["v5e"])
    fusion = Fusion(layout.apply(layout.default()), MACHINES["v5e"])
    return fusion, fusion.default()


def changed(default: np.ndarray, rows: int, columns: int) -> np.ndarray:
    rng, configs = np.random.default_rng(0), np.repeat(default[None], rows, axis=0)
    for config in configs:
        config[rng.choice(len(default), columns, replace=False)] ^= 1
    return configs


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize("which", PROGRAMS)
def test_updates(benchmark, which: str | int, columns: int) -> None:
    """100 candidates with one change of the default (annealing) or 20 (evolution)."""
    fusion, default = prepared(which)
    benchmark.pedantic(fusion.seconds, (changed(default, 100, columns),), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("which", PROGRAMS)
def test_sweeps(benchmark, which: str | int) -> None:
    """10 of these candidates, with nothing known of the ones before."""
    fusion, default = prepared(which)
    configs = changed(default, 10, 1)

    def anew() -> None:
        for config in configs:
            fusion.state.counter[Counter.KNOWN] = Known.NOTHING
            fusion.seconds(config[None])

    benchmark.pedantic(anew, rounds=5, warmup_rounds=1)
