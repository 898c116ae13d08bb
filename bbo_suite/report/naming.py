"""What is not the same does not share a name: problems whose content differs, strategies whose settings differ."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class Naming:
    """Names of problems and strategies, with a number or a hash where one name stands for several."""

    def __init__(self, heads: list[dict[str, Any]]) -> None:
        self._contents: dict[str, list[str]] = defaultdict(list)
        self._settings: dict[str, list[str]] = defaultdict(list)
        for head in heads:
            for known, name, what in (
                (self._contents, head["problem"], str(head["fingerprint"])),
                (self._settings, head["strategy"], _text(head["options"])),
            ):
                if what not in known[name]:
                    known[name].append(what)

    def problem(self, head: dict[str, Any]) -> str:
        """Return a problem's id, with its fingerprint if the study holds several of that id."""
        name, fingerprint = str(head["problem"]), str(head["fingerprint"])
        return f"{name} [{fingerprint}]" if len(self._contents[name]) > 1 else name

    def strategy(self, head: dict[str, Any]) -> str:
        """Return a strategy's id, with a number if the study holds several settings of it."""
        name, known = str(head["strategy"]), self._settings[head["strategy"]]
        return f"{name} #{known.index(_text(head['options'])) + 1}" if len(known) > 1 else name

    def applied(self, frame: pd.DataFrame, places: dict, heads: Iterable[dict[str, Any]]) -> pd.DataFrame:
        """Return the frame of a study under these names.

        Args:
          places: the rows of each run, by problem, strategy and seed.
        """
        if max(map(len, [*self._contents.values(), *self._settings.values()]), default=1) == 1:
            return frame
        problems, strategies = frame["problem"].astype(object), frame["strategy"].astype(object)
        for head in heads:
            rows = places.get((head["problem"], head["strategy"], head["seed"]), [])
            problems.iloc[rows], strategies.iloc[rows] = self.problem(head), self.strategy(head)
        return frame.assign(problem=problems.astype("category"), strategy=strategies.astype("category"))


def _text(options: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return json.dumps(options, sort_keys=True)
