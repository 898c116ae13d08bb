"""Estimates of a schedule, compared with numbers computed by hand."""

import math

import pytest

from bbo_problems.tensor_compiler.calibration.estimates import CHIP, estimates
from bbo_problems.tensor_compiler.hardware.machine import MACHINES, one_core

pytestmark = pytest.mark.usefixtures("own_cache")

MACHINE = one_core("v5e")


def kernel(name, shape, operands, cycles, word="add", calls=""):
    config = f'backend_config={{"window_config":{{"estimated_cycles":"{cycles}"}}}}'
    return f"  {name} = {shape} {word}({operands}){calls}, {config}\n"


STATE = "(s32[]{:T(128)}, f32[32,128]{1,0:T(8,128)S(1)}, f32[24,32,128]{2,1,0:T(8,128)})"
LOOP = f"""\
HloModule m, is_scheduled=true

%update (param.0: f32[24,32,128], param.1: f32[32,128], param.2: s32[]) -> f32[24,32,128] {{
  %param.0 = f32[24,32,128]{{2,1,0:T(8,128)}} parameter(0)
  %param.1 = f32[32,128]{{1,0:T(8,128)}} parameter(1)
  %param.2 = s32[]{{:T(128)}} parameter(2)
  %bitcast.1 = f32[1,32,128]{{2,1,0:T(8,128)}} bitcast(%param.1)
  %zero = s32[]{{:T(128)}} constant(0)
  ROOT %put = f32[24,32,128]{{2,1,0:T(8,128)}} dynamic-update-slice(%param.0, %bitcast.1, %param.2, %zero, %zero)
}}

%body (state: (s32[], f32[32,128], f32[24,32,128])) -> (s32[], f32[32,128], f32[24,32,128]) {{
  %state = {STATE} parameter(0)
  %i = s32[]{{:T(128)}} get-tuple-element(%state), index=0
  %x = f32[32,128]{{1,0:T(8,128)S(1)}} get-tuple-element(%state), index=1
  %all = f32[24,32,128]{{2,1,0:T(8,128)}} get-tuple-element(%state), index=2
{kernel("%y", "f32[32,128]{1,0:T(8,128)S(1)}", "%x, %x", 1000)}\
{kernel("%next", "f32[24,32,128]{2,1,0:T(8,128)}", "%all, %y, %i", 500, "fusion", ", kind=kLoop, calls=%update")}\
  ROOT %out = {STATE} tuple(%i, %y, %next)
}}

%condition (state.1: (s32[], f32[32,128], f32[24,32,128])) -> pred[] {{
  %state.1 = {STATE} parameter(0)
  %j = s32[]{{:T(128)}} get-tuple-element(%state.1), index=0
  %trips = s32[]{{:T(128)}} constant(24)
  ROOT %less = pred[]{{:T(512)}} compare(%j, %trips), direction=LT
}}

ENTRY %main (a: f32[32,128], b: f32[24,32,128]) -> f32[24,32,128] {{
  %a = f32[32,128]{{1,0:T(8,128)}} parameter(0)
  %b = f32[24,32,128]{{2,1,0:T(8,128)}} parameter(1)
  %start = s32[]{{:T(128)}} constant(0)
  %copy-start = (f32[32,128]{{1,0:T(8,128)S(1)}}, f32[32,128]{{1,0:T(8,128)}}, u32[]{{:S(2)}}) copy-start(%a)
  %copy-done = f32[32,128]{{1,0:T(8,128)S(1)}} copy-done(%copy-start)
{kernel("%strange", "f32[24,32,128]{2,1,0:T(8,128)}", "%b", 100, "copy")}\
  %first = {STATE} tuple(%start, %copy-done, %strange)
  %while = {STATE} while(%first), condition=%condition, body=%body, backend_config={{"known_trip_count":{{"n":"24"}}}}
  ROOT %result = f32[24,32,128]{{2,1,0:T(8,128)}} get-tuple-element(%while), index=2
}}
"""
ROW = 32 * 128 * 4.0
"""Bytes that one step of the loop works on."""


def test_loops_count_their_trips_and_updates_only_their_new_elements():
    found = estimates(LOOP, MACHINE, 7.0)
    copied = 2 * 24 * ROW / MACHINE.memory  # no estimate of its own, so its bytes count
    assert found.cycles == pytest.approx(24 * 1500 + copied)
    added = max(3 * ROW / CHIP / MACHINE.memory, 32 * 128 / MACHINE.matrix)  # two operands and a result on the chip
    updated = (ROW + 4) / MACHINE.memory  # a row is written, and a counter read, in main memory
    assert found.roofline == pytest.approx(copied + 24 * (added + updated), rel=1e-3)
    assert found.memory == 7.0 and found.unknown_loops == 0
    kernels = {name: (count, cycles) for name, _, count, cycles in found.kernels}
    assert kernels["add f32[32, 128]"] == (24, 1000) and kernels["fusion f32[24, 32, 128]"] == (24, 500)
    assert sum(count * cycles for count, cycles in kernels.values()) == pytest.approx(found.cycles, rel=1e-12)


def test_main_memory_bounds_what_runs_in_the_background():
    body = "".join(
        f"  %s.{i} = (f32[512,128]{{1,0:T(8,128)S(1)}}, f32[512,128]{{1,0:T(8,128)}}, u32[]{{:S(2)}}) copy-start(%a)\n"
        f"  %d.{i} = f32[512,128]{{1,0:T(8,128)S(1)}} copy-done(%s.{i})\n"
        for i in range(3)
    )
    text = f"""HloModule m, is_scheduled=true

ENTRY %main (a: f32[512,128]) -> f32[512,128] {{
  %a = f32[512,128]{{1,0:T(8,128)}} parameter(0)
{body}\
{kernel("ROOT %sum", "f32[512,128]{1,0:T(8,128)S(1)}", "%d.0, %d.1", 2000)}\
}}
"""
    found = estimates(text, MACHINE, 0.0)
    assert found.cycles == 2000.0
    assert found.roofline == pytest.approx(3 * 512 * 128 * 4 / MACHINE.memory)


def test_a_machine_of_two_cores_is_halved():
    assert one_core("v4").memory == MACHINES["v4"].memory / 2 and one_core("v5e") == MACHINES["v5e"]
    assert math.isclose(one_core("v5p").matrix * 2, MACHINES["v5p"].matrix)
