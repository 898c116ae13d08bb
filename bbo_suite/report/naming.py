"""What is not the same does not share a name: problems whose content differs, strategies whose settings differ."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from ..store.frames import printable


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
        name, known = printable(head["problem"]), self._contents[head["problem"]]
        return f"{name} [{head['fingerprint']}]" if len(known) > 1 else name

    def strategy(self, head: dict[str, Any]) -> str:
        """Return a strategy's id, with a number if the study holds several settings of it."""
        name, known = printable(head["strategy"]), self._settings[head["strategy"]]
        return f"{name} #{known.index(_text(head['options'])) + 1}" if len(known) > 1 else name


def _text(options: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return json.dumps(options, sort_keys=True)
