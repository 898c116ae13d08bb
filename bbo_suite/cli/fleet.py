"""`fleet`."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import AsLines, Plugins, Quiet, Results, app, count_option, json_line, key_values, seconds_option

if TYPE_CHECKING:
    from ..fleet.executors import Executor
    from ..fleet.study import FleetStudy
    from ..registry import LibraryLoader, Registry


@app.command()
def fleet(
    kernels: Annotated[
        str, typer.Option(metavar="ID", help="The kernels that programs run: tpu/small, tpu/catalogue or tpu/large.")
    ] = "tpu/small",
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A policy: what is tuned each day, and how. May be repeated. Default: all."),
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
    from ..registry import LibraryLoader, Registry
    from .tables import reserved

    registry = Registry(tuple(path.absolute() for path in plugin or ()))
    with reserved(as_json), _progress(quiet) as shown:
        seeds = range(seed, seed + repeats)
        made = _study(kernels, policy, budget, days, seeds, option, study, results, registry, shown)
        executor = _executor(made, LibraryLoader(registry, kernels), jobs, cluster)
        try:
            found = list(made.run(executor, shown))
        finally:
            executor.close()
    for run in found if as_json else ():
        print(json_line(run))
    if not as_json:
        _table(found)
        print(_page(made.folder))


def _study(
    kernels: str,
    policies: list[str] | None,
    budgets: list[float] | None,
    days: int,
    seeds: range,
    options: list[str] | None,
    study: str | None,
    results: Path,
    registry: Registry,
    shown: Any,  # noqa: ANN401 - a function
) -> FleetStudy:
    from ..core.options import parse
    from ..fleet.settings import FleetSettings
    from ..fleet.study import FleetStudy
    from ..runs.study_name import check_name

    settings = parse(FleetSettings, key_values(options or []), "the fleet")
    known = sorted(
        registry.policies(), key=lambda name: (name != "oracle", name)
    )  # its savings give the regret of others
    chosen = {name: registry.policy(name) for name in policies or known}
    amounts = budgets or [8640.0]
    if study is None:
        text = json.dumps([kernels, str(settings), sorted(chosen), amounts, days, list(seeds)])
        study = f"fleet-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    check_name(study)
    library = registry.kernel_library(kernels, shown)
    return FleetStudy(results / study, kernels, library, settings, chosen, amounts, days, list(seeds))


def _executor(study: FleetStudy, load: LibraryLoader, jobs: int, cluster: str | None) -> Executor:
    from ..errors import UserError
    from ..fleet.executors import InProcess, Processes

    if jobs < 1:
        raise UserError(f"jobs must be 1 or more, not {jobs}")
    if cluster:
        from ..fleet.cluster import Cluster
        from ..runs.cluster import check_address

        check_address(cluster)
        return Cluster(load, study.settings, cluster)
    return Processes(load, study.settings, jobs) if jobs > 1 else InProcess(study.library, study.settings)


class _progress:
    """Shows sentences on standard error: in one line of a terminal, or one every few seconds in a file."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __enter__(self) -> Any:  # noqa: ANN401 - a function
        from rich.console import Console

        from .progress import is_live

        if self._quiet:
            return lambda text: None
        self._status = Console(stderr=True).status("") if is_live() else None
        if self._status is None:
            return _Plain()
        self._status.start()
        return self._status.update

    def __exit__(self, *error: object) -> None:
        if not self._quiet and self._status is not None:
            self._status.stop()


class _Plain:
    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, text: str) -> None:
        import time

        if time.monotonic() - self._last > 5:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)


def _page(folder: Path) -> Path:
    from ..report import fleet

    return fleet.write(folder)


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
