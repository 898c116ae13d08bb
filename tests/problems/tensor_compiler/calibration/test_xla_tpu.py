"""Kernels read from hand-written text in XLA:TPU's format, their rows, and a report of made-up numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bbo_problems.tensor_compiler.calibration.__main__ import write
from bbo_problems.tensor_compiler.calibration.comparison import counts, half
from bbo_problems.tensor_compiler.calibration.compiler import Compiler
from bbo_problems.tensor_compiler.calibration.flops import counted, ratios
from bbo_problems.tensor_compiler.calibration.kernels import KINDS, Buffer, kernels, row
from bbo_problems.tensor_compiler.calibration.whole import compare_whole
from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel
from bbo_suite import UserError

LIBTPU = importlib.util.find_spec("libtpu") is not None


def config(cycles: int, tile: str = '"64","1"', steps: str = '"2","1"') -> str:
    window = f'"output_window_bounds":[{tile}],"estimated_cycles":"{cycles}","iteration_bounds":[{steps}]'
    return f'backend_config={{"window_config":{{{window},"buffering_level":"2"}}}}'


TEXT = f"""HloModule made_up, is_scheduled=true

%product (a: bf16[512,100], b: f32[512]) -> bf16[512,200] {{
  %a = bf16[512,100]{{1,0:T(8,128)(2,1)}} parameter(0)
  %w = bf16[100,200]{{1,0:T(8,128)(2,1)S(1)}} parameter(1)
  %d = bf16[512,200]{{1,0:T(8,128)(2,1)}} convolution(%a, %w), dim_labels=bf_io->bf
  ROOT %t = bf16[512,200]{{1,0:T(8,128)(2,1)}} tanh(%d)
}}

%sum (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}}

ENTRY %main (p: bf16[512,100], q: bf16[100,200], r: f32[256,1000]) -> f32[256] {{
  %p = bf16[512,100]{{1,0:T(8,128)(2,1)}} parameter(0)
  %q = bf16[100,200]{{1,0:T(8,128)(2,1)S(1)}} parameter(1)
  %r = f32[256,1000]{{1,0:T(8,128)}} parameter(2)
  %zero = f32[] constant(0)
  %f = bf16[512,200]{{1,0:T(8,128)(2,1)}} fusion(%p, %q), kind=kOutput, calls=%product, {config(5000)}
  %c = f32[256,1000]{{0,1:T(8,128)S(1)}} copy(%r), {config(7000)}
  %n = f32[256,1000]{{1,0:T(8,128)}} negate(%r), {config(80)}
  %g = f32[256,1000]{{1,0:T(8,128)}} negate(%n), {config(2**63 - 1)}
  ROOT %s = f32[256]{{0:T(256)}} reduce(%r, %zero), dimensions={{1}}, to_apply=%sum, {config(3000)}
}}
"""


def found() -> dict[str, tuple[np.ndarray, str]]:
    return {kernel.name: row(kernel) for kernel in kernels(TEXT)}


def test_every_kernel_with_an_estimate_is_read_and_placeholders_are_not() -> None:
    read = {kernel.name: kernel for kernel in kernels(TEXT)}
    assert {name: kernel.cycles for name, kernel in read.items()} == {"f": 5000.0, "c": 7000.0, "s": 3000.0}
    assert read["f"].operands == (Buffer(512 * 128 * 2.0, False), Buffer(104 * 256 * 2.0, True))
    assert read["c"].results == (Buffer(256 * 1000 * 4.0, True),)
    assert (read["f"].tile, read["f"].steps, read["f"].buffers) == ((64, 1), 2, 2)


def test_a_product_reads_operands_that_are_not_in_the_scratchpad() -> None:
    numbers = found()["f"][0]
    assert numbers[Kernel.READ : Kernel.WORK].tolist() == [0, 512 * 128 * 2, 0]
    assert numbers[Kernel.GROUPS : Kernel.SUMS].tolist() == [1, 512, 200, 100, 1]
    assert numbers[Kernel.WRITTEN] == 512 * 256 * 2
    assert numbers[Kernel.WORK] > 0


@pytest.mark.parametrize(("pad", "stride", "dilate"), [(0, 1, 1), (1, 1, 1), (2, 2, 1), (1, 1, 2)])
def test_taps_on_padding_are_no_operations(pad: int, stride: int, dilate: int) -> None:
    size, taps = 7, 3
    spread = np.zeros((size - 1) * dilate + 1)
    spread[::dilate] = 1
    line = np.convolve(np.pad(spread, pad), np.ones(taps), "valid")[::stride]
    window = f"{{size=3 stride={stride} pad={pad}_{pad} lhs_dilate={dilate}}}"
    text = f"""HloModule one

ENTRY %main (x: f32[2,{size},5], w: f32[3,5,4]) -> f32[2,{len(line)},4] {{
  %x = f32[2,{size},5] parameter(0)
  %w = f32[3,5,4] parameter(1)
  ROOT %c = f32[2,{len(line)},4] convolution(%x, %w), window={window}, dim_labels=b0f_0io->b0f
}}
"""
    assert counted(text) == 2 * 2 * 5 * 4 * line.sum()
    assert ratios("v5e", ["one"], lambda name, machine: f'// {{"flops": {counted(text)}}}\n' + text) == {"one": 1.0}


def test_a_kernel_counts_what_xlas_own_analysis_of_it_alone_does() -> None:
    frame = counts("v5e", ["one"], lambda name, machine: TEXT)
    assert frame["flops"].tolist() == frame["xla flops"].tolist() == [2 * 512 * 200 * 100, 0, 256 * 999]
    assert frame["bytes"].tolist()[1:] == frame["xla bytes"].tolist()[1:]
    assert frame["xla bytes"][0] == 2 * (512 * 100 + 100 * 200 + 512 * 200)
    assert frame["bytes"][0] == frame["xla bytes"][0]


@pytest.mark.parametrize(
    ("result", "window"),
    [
        pytest.param("8,15", "size=1x2 stride=1x2", id="pooling"),
        pytest.param("8,30", "size=1x3 pad=0_0x1_1", id="padded"),
        pytest.param("8,30", "size=1x30 pad=0_0x29_0", id="cumulative"),
        pytest.param("8,30", "size=1x59 pad=0_0x29_29", id="line"),
    ],
)
def test_windows_count_as_xla_counts_them(result: str, window: str) -> None:
    xla_client = pytest.importorskip("jax._src.lib").xla_client
    text = f"""HloModule windows

%max (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] maximum(%x, %y)
}}

ENTRY %main (p: f32[8,30]) -> f32[{result}] {{
  %p = f32[8,30] parameter(0)
  %low = f32[] constant(-inf)
  ROOT %r = f32[{result}] reduce-window(%p, %low), window={{{window}}}, to_apply=%max
}}
"""
    module, client = xla_client.hlo.hlo_module_from_text(text), xla_client.make_cpu_client()
    assert counted(text) == xla_client._xla.hlo_module_cost_analysis(client, module)["flops"]


@pytest.mark.slow
def test_the_report_shows_the_half_that_was_not_used_for_fitting(tmp_path: Path) -> None:
    rng, names = np.random.default_rng(0), [f"program {i}" for i in range(200)]
    truth = rng.uniform(2e3, 1e6, 200)
    halves = [half(name) for name in names]
    ours = np.where(np.array(halves) == "report", truth, 2 * truth)
    frame = pd.DataFrame({"program": names, "half": halves, "kind": rng.choice(KINDS, 200), "xla cycles": truth})
    frame = frame.assign(cycles=ours, steps=1, **{"xla steps": 2})
    alone = frame.assign(flops=ours, bytes=truth, **{"xla flops": 2 * ours, "xla bytes": truth})
    write({"v5e": frame}, {"v5e": {names[0]: 1.0}}, {"v5e": alone}, tmp_path, "0")
    assert f"flops 0.0 % of {halves.count('report')}, bytes 100.0 %" in (tmp_path / "report.md").read_text()
    assert "| all | " in (tmp_path / "report.md").read_text()
    assert " 100.0 % |" not in (tmp_path / "report.md").read_text()
    assert (tmp_path / "v5e.png").stat().st_size > 10_000
    summary = pd.read_csv(tmp_path / "summary.csv").set_index(["half", "kind"])
    assert summary.loc[("report", "all"), "median error"] == 0
    assert summary.loc[("fit", "all"), "median error"] == 1


@pytest.mark.slow
def test_whole_programs_are_compared_by_time_and_by_data_that_is_only_moved(tmp_path: Path) -> None:
    file, other = tmp_path / "small.hlo", tmp_path / "refused.hlo"
    file.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[256,1024]{1,0} parameter(0)\n"
        "  r = f32[256,1024]{1,0} reverse(p), dimensions={0}\n  n = f32[256,1024]{1,0} negate(p)\n"
        "  ROOT t = (f32[256,1024]{1,0}, f32[256,1024]{1,0}) tuple(r, n)\n}\n"
    )
    other.write_text(file.read_text())

    def text(name: str, machine: str) -> str:
        if name != str(file):
            raise RuntimeError("too large")
        return TEXT

    programs, slow = compare_whole("v5e", [str(file), str(other)], text)
    assert programs["program"].tolist() == ["small", "refused"]
    assert programs["moved"].tolist() == [2 * 256 * 1024 * 4] * 2 and programs["movers"].tolist() == [1, 1]
    assert programs["xla moved"][0] == (256 * 1024 + 1000 * 256) * 4 and programs["xla movers"][0] == 1
    assert 15_000 < programs["xla seconds"][0] * 1.5e9 < 25_000  # 5,000 + 7,000 + 3,000, and two kernels by their bytes
    assert programs["xla fetching"][0] == 0  # it has no copy in the background
    assert programs["xla seconds"].isna().tolist() == [False, True]
    assert (programs["roofline"] > 0.3).all() and slow.empty


def test_without_libtpu_one_sentence_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bbo_suite.core.libraries.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install .bbo_suite\[tpu\]"):
        Compiler()


@pytest.mark.slow
@pytest.mark.skipif(not LIBTPU, reason="libtpu is not installed")
def test_the_real_compiler_gives_kernels_and_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = Compiler(tmp_path)
    text = compiler.text("dot-0", "v5e")
    compiler.close()
    assert [kind for kernel in kernels(text) for kind in [row(kernel)[1]]].count("matrix") >= 4
    monkeypatch.setattr(compiler, "_started", None)
    assert compiler.text("dot-0", "v5e") == text
