"""`fleet`."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from .app import AsLines, Plugins, Quiet, Results, app, count_option, json_line, key_values, seconds_option

if TYPE_CHECKING:
    from ..fleet.executors import Executor
    from ..fleet.library import LibraryLoader
    from ..fleet.study import FleetStudy


@app.command()
def fleet(
    kernels: Annotated[
        str, typer.Option(metavar="ID", help="The kernels that programs run: tpu/small, tpu/catalogue or tpu/large.")
    ] = "tpu/small",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="A policy: what is tuned each day, and how. May be repeated. Default: all that are quick.",
        ),
    ] = None,
    budget: Annotated[
        list[float] | None, seconds_option("Chip time for tuning a day, such as 8640 or 2.4h. May be repeated.")
    ] = None,
    days: Annotated[int, count_option("Days.")] = 30,
    repeats: Annotated[int, count_option("Fleets with other seeds.")] = 1,
    seed: Annotated[int, count_option("Seed of the first fleet.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of the fleet or a price, as key=value. May be repeated."),
    ] = None,
    study: Annotated[str | None, typer.Option(metavar="STUDY", help="Name of the study.")] = None,
    results: Results = Path("results"),
    jobs: Annotated[int, count_option("Processes that carry out jobs.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT",
            help="Carry out jobs on a Dask scheduler's workers: some with the resource COMPILE, some with CHIP.",
        ),
    ] = None,
    plugin: Plugins = None,
    as_json: AsLines = False,
    quiet: Quiet = False,
) -> None:
    """Tune the kernels of a simulated fleet day by day, and compare policies. The same command again resumes."""
    from ..core.options import parse
    from ..fleet.library import LibraryLoader, load_library
    from ..fleet.settings import FleetSettings
    from ..fleet.study import FleetStudy, policies
    from ..registry import Registry
    from ..report import fleet as report
    from ..runs.study_plan import check_name
    from ..store.folders import has_runs
    from .progress import counted
    from .tables import reserved

    registry = Registry(tuple(path.absolute() for path in plugin or ()))
    found: list[dict[str, Any]] = []
    with reserved(as_json):
        settings = parse(FleetSettings, key_values(option or []), "the fleet")
        chosen, budgets, seeds = policies(registry, policy), budget or [8640.0], list(range(seed, seed + repeats))
        name = study or _name(kernels, settings, chosen, budgets, days, seeds)
        check_name(name)
        folder = results / name
        if folder.exists() and has_runs(folder):
            raise UserError(f"{folder} is no study of a fleet, but of searches; choose another --study")
        with counted("fleet", len(chosen) * len(budgets) * len(seeds), quiet, "runs") as show:

            def shown(text: str) -> None:
                show(len(found), text)

            library = load_library(registry, kernels, shown)
            made = FleetStudy(folder, kernels, library, settings, chosen, budgets, days, seeds)
            with closing(_executor(made, LibraryLoader(registry, kernels), jobs, cluster)) as executor:
                for run in made.run(executor, shown):
                    found.append(run)
    for run in found if as_json else ():
        print(json_line(run))
    if not as_json:
        _table(found)
        print(report.write(folder))


def _name(*content: Any) -> str:  # noqa: ANN401 - all that makes the study differ from others
    """Return the name of a study that was given none."""
    kernels, settings, chosen, *rest = content
    text = json.dumps([kernels, str(settings), sorted(chosen), *rest])
    return f"fleet-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _executor(study: FleetStudy, load: LibraryLoader, jobs: int, cluster: str | None) -> Executor:
    from ..fleet.executors import Cluster, InProcess, Processes

    if cluster:
        return Cluster(load, study.settings, cluster)
    return InProcess(study.library, study.settings) if jobs == 1 else Processes(load, study.settings, jobs)


def _table(found: list[dict[str, Any]]) -> None:
    from .tables import fitting_table, wide_console

    console = wide_console()
    caption = (
        "saved: share of the fleet's chip time, mean after day 10; of the best: of what the best settings would save"
        "; regret: savings missed against an oracle; recovery: days after a release until 90 % of the savings are back"
    )
    console.print(
        fitting_table([_cells(run) for run in found], ("seed", "live kernels", "lost"), console.width, caption)
    )


def _cells(run: dict[str, Any]) -> dict[str, str]:
    ratio, recovery, regret = run["savings_over_cost"], run["days_to_recover"], run["regret"]
    return {
        "policy": run["policy"],
        "budget a day": f"{run['budget']:,.0f}",
        "seed": str(run["seed"]),
        "live kernels": f"{run['live']:,}",
        "saved": f"{run['saved']:.2%}",
        "of the best": f"{run['saved'] / run['potential']:.1%}" if run["potential"] else "-",
        "kernels a day": f"{run['kernels_a_day']:,.1f}",
        "cost a day": f"{run['cost'] / run['days']:,.0f}",
        "savings/cost": "-" if ratio is None else f"{ratio:,.0f}",
        "lost": f"{run['lost']:.3%}",
        "regret": "-" if regret is None else f"{regret:.1%}",
        "recovery": "-" if recovery is None else str(recovery),
    }
