"""Makes data, trains models and says how good they are: `python -m bbo_problems.learned`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bbo_suite.core.versions import content
from bbo_suite.errors import UserError

from ..tensor_compiler.hardware.machine import DEFAULT_MACHINE

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)
Seed = Annotated[int, typer.Option(help="Seed of the random generator.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file made by `train`.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A file made by `data`.")]


@app.command()
def data(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A program of the catalogue, as in fusion/NAME. May be repeated."),
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Take the programs that scores are reported on.")
    ] = False,
    machine: Annotated[str, typer.Option(help="The machine that the kernels run on.")] = DEFAULT_MACHINE,
    kernels: Annotated[int, typer.Option(help="Most kernels of one program.")] = 1000,
    settings: Annotated[int, typer.Option(help="Tiles, and flags, of each kernel.")] = 16,
    seed: Seed = 0,
) -> None:
    """Write a data set of kernels with random layouts, fusions, tiles and flags."""
    from ..tensor_compiler.hardware.machine import MACHINES
    from .dataset import HELD_OUT, TRAINING, generate, save

    if machine not in MACHINES:
        raise UserError(f"there is no machine {machine!r}; choose one of {', '.join(MACHINES)}")
    names = program or (list(HELD_OUT.values()) if held_out else TRAINING)
    made = generate(names, machine, kernels, settings, np.random.default_rng(seed), _show)
    save(made, out)
    print(f"{out}: {len(made):,} kernels of {len(made.programs)} programs")


@app.command("data-xla-tpu")
def data_xla_tpu(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    programs: Annotated[int, typer.Option(help="Programs of each family of models and operations.", min=1)] = 5,
    variants: Annotated[int, typer.Option(help="Compilations of each program: itself, and others.", min=1)] = 4,
    machine: Annotated[str, typer.Option(help="The machine to compile for.")] = DEFAULT_MACHINE,
    seconds: Annotated[float, typer.Option(help="A compilation that takes longer is given up.")] = 60.0,
) -> None:
    """Write a data set of the real XLA:TPU compiler's kernels with its own estimates; compilations are cached.

    Variants of a program have random barriers and random flags of fusion. The file holds what the compiler said, so
    do not publish it.
    """
    from ..tensor_compiler.calibration.compiler import TOPOLOGIES
    from .dataset import save
    from .xla_tpu import compiler, generate
    from .xla_tpu_programs import names

    if machine not in TOPOLOGIES:
        raise UserError(f"XLA:TPU does not compile for {machine!r} here; choose one of {', '.join(TOPOLOGIES)}")
    with closing(compiler(seconds)) as real:
        made, report = generate(names(programs), variants, machine, real.text, _show)
    save(made, out)
    print(f"{out}: {len(made):,} kernels of {len(np.unique(made.program)):,} programs; {report}")


@app.command()
def train(
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    epochs: Annotated[int, typer.Option(help="Times that each kernel is seen.", min=1)] = 30,
    reduction: Annotated[
        str, typer.Option(help="How nodes become a kernel: mean, max, sum, lstm, transformer.")
    ] = "mean",
    unlike: Annotated[
        Path | None, typer.Option(metavar="DATA", help="Held-out data: kernels that it has, too, are not learned.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Train the three models of kernels on a data set."""
    from .dataset import load
    from .model import REDUCTIONS, save
    from .training import fit

    if reduction not in REDUCTIONS:
        raise UserError(f"there is no reduction {reduction!r}; choose one of {', '.join(REDUCTIONS)}")
    kernels = load(data).without(load(unlike)) if unlike else load(data)
    if not len(kernels.tiles.seconds):
        raise UserError(f"{data} has no tiles and flags to learn from, as data of XLA:TPU; use data made by `data`")
    model = fit(kernels, epochs, reduction, np.random.default_rng(seed), lambda *seen: _show(*seen))
    save(model, out)
    print(f"{out}: trained on {len(model.programs)} programs, for {model.machine}")


@app.command()
def evaluate(model: Model, data: Data) -> None:
    """Print how well a model predicts the kernels of programs that it was not trained on, beside the compiler's own."""
    from .dataset import load
    from .model import load as load_model
    from .training import lines

    for line in lines(load_model(content(str(model))[1], str(model)), load(data)):
        print(line)


def _show(*numbers: object) -> None:
    print(*(f"{number:.5f}" if isinstance(number, float) else number for number in numbers), file=sys.stderr)


if __name__ == "__main__":
    try:
        app()
    except UserError as error:
        sys.exit(f"error: {error}")
