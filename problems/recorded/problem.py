"""A space of recorded measurements as a problem."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Kind, Problem, Space
from bbo_suite.core.constraint import listed, table
from bbo_suite.recording.files import Measurements, t4_result

from .files import read

FOLDER = Path(__file__).parent / "spaces"
_SUFFIX = ".json.gz"
_FORMAT = 1
"""Increase it when the costs of a file change."""


class RecordedProblem(Problem):
    """Configurations that were measured before: `recorded/NAME`, or `recorded:FILE` for your own file.

    A file is a Kernel Tuner cache, T4, KTT output, a CATBench table, an npz of TpuGraphs, or written by `record`;
    plain or gzipped. A parameter has the values that occur in the file, ordered if they are numbers. A configuration
    that was not measured is forbidden, and one that failed then fails again. The optimum is the lowest cost. The
    default is the one that the file names, otherwise the configuration of median cost. What compiling tells is known
    if the file has it.
    """

    variant_marks: ClassVar[str] = ""
    instances: ClassVar[tuple[str, ...]] = tuple(
        sorted(p.name.removesuffix(_SUFFIX) for p in FOLDER.glob(f"*{_SUFFIX}"))
    )

    reads_files = True
    decision = "as recorded"
    costs = "as recorded"
    optimum_known = "yes"
    time_per_candidate = "2 µs"

    def __init__(self, instance: str | Path) -> None:
        """Read the measurements.

        Args:
          instance: the name of a space that ships, or the `Path` of a user's file.

        Raises:
          UserError: the file cannot be read, its format is unknown, or it is damaged.
        """
        recorded = read(instance if isinstance(instance, Path) else FOLDER / f"{instance}{_SUFFIX}")
        sizes = np.array([len(values) for values in recorded.values])
        complete = len(recorded.rows) == math.prod(sizes.tolist())
        kinds = np.where(recorded.ordered, Kind.SCALE, Kind.CHOICE)
        constraints = [] if complete else [listed(recorded.rows)]
        self.unit = recorded.unit  # type: ignore[misc]
        self.space = Space(sizes, kinds, constraints=constraints, names=recorded.names, values=recorded.values)
        self._table = self.space.components[0] if constraints else table(range(len(sizes)), recorded.rows, sizes)
        order = np.argsort(self._table.places(recorded.rows))
        self._costs, self._status = recorded.costs[order], recorded.status[order]
        self._reasons = [recorded.reasons[i] for i in order.tolist()]
        self.statistics = tuple(recorded.statistics)
        self._told = np.array([*recorded.statistics.values()]).reshape(-1, len(order)).T[order]
        self.default = recorded.rows[recorded.default]
        self.optimum = float(self._costs.min())
        self._recorded = recorded

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the recorded costs of `(n, d)` configurations."""
        places = self._table.places(configs)
        status = self._status[places]
        reasons = {i: self._reasons[places[i]] for i in np.flatnonzero(status).tolist()}
        return Evaluations(self._costs[places], status, reasons)

    def compile(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, k)` recorded statistics of `(n, d)` configurations."""
        return self._told[self._table.places(configs)]

    def paste(self, config: NDArray) -> str:
        """Return the measurement as a T4 result, on one line of JSON."""
        result = self.evaluate(config[None])
        outcome = (float(result.values[0]), int(result.status[0]), result.reasons.get(0, ""))
        measurements = Measurements(
            self.space, range(len(self.space)), config[None], [outcome], {}, self.unit, self.default
        )
        return json.dumps(t4_result(measurements, *measurements.described(), 0))

    def usage(self) -> str:
        """Return that it is a measurement."""
        return (
            "one measurement in the T4 format: `configuration` has the values by name. It was taken where the file was"
            " recorded; measure it again on your machine"
        )

    def fingerprint(self) -> str:
        """Return a text that changes with the costs, not with what compiling tells or the format of the file."""
        recorded = self._recorded
        words = (_FORMAT, self.space.digest(), recorded.names, recorded.values, recorded.unit, self.default.tolist())
        content = repr(words).encode() + self._costs.tobytes() + self._status.tobytes()
        return hashlib.sha256(content).hexdigest()[:16]

    def facts(self) -> dict[str, str]:
        """Return the format, what was measured, the noise, and where the default comes from."""
        return dict(self._recorded.facts)
