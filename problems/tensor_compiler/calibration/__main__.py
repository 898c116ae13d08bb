"""Compares the hardware model with the XLA:TPU compiler: `python -m bbo_problems.tensor_compiler.calibration`.

The figures and tables are statistics over many kernels; none of the compiler's own output is published.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import pandas as pd
import typer
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from rich.progress import track

from bbo_suite.errors import UserError
from bbo_suite.figures.style import SETTINGS, looks, title

from ..hardware.machine import MACHINES
from .comparison import compare, counts, half, scores
from .compiler import Compiler
from .flops import ratios
from .kernels import KINDS
from .programs import names
from .whole import compare_whole

COMMAND = "python -m bbo_problems.tensor_compiler.calibration --out results/simulator_vs_xla"


def write(
    frames: dict[str, pd.DataFrame],
    flops: dict[str, dict[str, float]],
    counts: dict[str, pd.DataFrame],
    folder: Path,
    libtpu: str,
) -> None:
    """Write `report.md`, `summary.csv` and a figure for each machine.

    Args:
      frames: for each machine, the result of `compare`.
      flops: for each machine, the result of `flops.ratios`.
      counts: for each machine, the result of `comparison.counts`.
      folder: created if missing.
      libtpu: version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        (machine, side): scores(frame[frame["half"] == side], MACHINES[machine].launch)
        for machine, frame in frames.items()
        for side in ("report", "fit")
    }
    summary = pd.concat(tables, names=["machine", "half"]).reset_index(level=[0, 1]).reset_index(drop=True)
    summary.to_csv(folder / "summary.csv", index=False, float_format="%.4f")
    (folder / "report.md").write_text(_text(frames, tables, flops, counts, libtpu))
    with mpl.rc_context(SETTINGS):
        for machine, frame in frames.items():
            _scatter(frame[frame["half"] == "report"], machine).savefig(folder / f"{machine}.png")


def _text(
    frames: dict[str, pd.DataFrame],
    tables: dict[tuple[str, str], pd.DataFrame],
    flops: dict[str, dict[str, float]],
    counts: dict[str, pd.DataFrame],
    libtpu: str,
) -> str:
    parts = [
        "# The hardware model against the XLA:TPU compiler's own estimates",
        f"Command: `{COMMAND} --machines {','.join(frames)}`; libtpu {libtpu}.",
        "Both sides are models: no TPU was measured. The constants of the hardware model were fitted on the kernels of"
        " one half of the programs; the tables show the other half. `beyond launch` is Spearman's correlation over"
        " kernels that take 5 % more than a launch: many do little else, and their estimates differ by single cycles."
        " Error is |model / XLA - 1|; `same steps` is the share of kernels whose walk over tiles has as many steps as"
        " the one that XLA chose. Estimates of up to 100 cycles per step, and endless ones, are placeholders and are"
        " left out. The model knows which operands are already in the scratchpad or in v4's common memory. XLA"
        " estimates one core; for v4 and v5p, whose two cores work as one, the model uses half of the machine.",
    ]
    for machine, frame in frames.items():
        programs = frame[frame["half"] == "report"]["program"].nunique()
        parts += [
            f"## {machine}: {programs} programs",
            _table(tables[machine, "report"]),
            _flops(flops[machine]),
            _kernels(counts[machine]),
            f"![{machine}]({machine}.png)",
        ]
    return "\n\n".join(parts) + "\n"


def _flops(ratios: dict[str, float]) -> str:
    held_out = [ratio for name, ratio in ratios.items() if half(name) == "report"]
    near = sum(abs(ratio - 1) <= 0.02 for ratio in held_out)
    return f"Floating point operations within 2 % of XLA's own count: {near} of {len(held_out)} programs."


def _kernels(counts: pd.DataFrame) -> str:
    held_out, shares = counts[counts["half"] == "report"], []
    for what in ("flops", "bytes"):
        counted = held_out[held_out[f"xla {what}"] > 0]
        near = (counted[what] / counted[f"xla {what}"] - 1).abs() <= 0.02
        shares.append(f"{what} {100 * near.mean():.1f} % of {len(counted)}")
    return f"Kernels within 2 % of XLA's own cost analysis of each alone: {', '.join(shares)}."


def _table(table: pd.DataFrame) -> str:
    lines = ["| " + " | ".join(table.columns) + " |", "|---" * len(table.columns) + "|"]
    for kind, count, rank, large, *shares in table.itertuples(index=False):
        lines.append(
            f"| {kind} | {count} | {rank:.3f} | {large:.3f} | " + " | ".join(f"{100 * s:.1f} %" for s in shares) + " |"
        )
    return "\n".join(lines)


def _scatter(frame: pd.DataFrame, machine: str) -> Figure:
    """Return the model's cycles of each kernel over the compiler's, both logarithmic."""
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    ax = figure.subplots()
    for kind, look in looks(KINDS).items():
        part = frame[frame["kind"] == kind]
        points: Any = {"s": 12, "alpha": 0.5, "linewidths": 0, "color": look.colour, "marker": look.marker}
        ax.scatter(part["xla cycles"], part["cycles"], label=kind, **points)
    ends = [frame["xla cycles"].min(), frame["xla cycles"].max()] if len(frame) else [1, 10]
    ax.plot(ends, ends, color="0.4", linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="cycles by XLA:TPU's estimate", ylabel="cycles by the hardware model")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda cycles, _: f"{cycles:,.0f}"))
    title(ax, f"{machine}: {len(frame):,} kernels of programs not used for fitting")
    ax.legend(title="kind of kernel")
    return figure


def _write_whole(frames: tuple[pd.DataFrame, pd.DataFrame], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for frame, name in zip(frames, ("whole.csv", "slow.csv"), strict=True):
        frame.to_csv(folder / name, index=False, float_format="%.4g")
    both = frames[0].dropna()
    ratio, rank = both["seconds"] / both["xla seconds"], both["seconds"].corr(both["xla seconds"], method="spearman")
    moved = both["moved"].sum() / both["xla moved"].sum()
    print(f"{len(both)} programs: ratio {ratio.median():.2f} (median), rank correlation {rank:.3f}, moved {moved:.2f}")


def main(
    out: Annotated[Path, typer.Option(help="Folder for the report.")],
    machines: Annotated[str, typer.Option(help="Machines, separated by commas.")] = "v5e,v6e,v4",
    whole: Annotated[
        list[str] | None, typer.Option(metavar="PROGRAM", help="Compare whole programs: a task's, or a file. Repeat.")
    ] = None,
) -> None:
    """Compile programs for each machine (results are cached) and report how well the model agrees with XLA.

    With --whole, `whole.csv` has our default beside XLA:TPU's schedule, `slow.csv` the default's slow kernels.
    """
    if unknown := sorted(set(machines.split(",")) - set(MACHINES)):
        raise typer.BadParameter(f"no machine {', '.join(unknown)}; there are {', '.join(MACHINES)}")
    try:
        compiler = Compiler()
    except UserError as error:
        sys.exit(str(error))
    if whole:
        _write_whole(compare_whole(machines.partition(",")[0], track(whole, "whole programs"), compiler.text), out)
        compiler.close()
        return
    programs = names()
    frames = {machine: compare(machine, track(programs, machine), compiler.text) for machine in machines.split(",")}
    flops = {machine: ratios(machine, track(programs, f"{machine}, flops"), compiler.text) for machine in frames}
    alone = {machine: counts(machine, track(programs, f"{machine}, each kernel"), compiler.text) for machine in frames}
    compiler.close()
    write(frames, flops, alone, out, version("libtpu"))


if __name__ == "__main__":
    typer.run(main)
