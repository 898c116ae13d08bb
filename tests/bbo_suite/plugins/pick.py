from dataclasses import dataclass
from typing import Literal

from bbo_suite import Strategy, option


@dataclass(frozen=True)
class PickOptions:
    size: int = option(3, "how many", low=1, high=10)
    rate: float = option(0.5, "how fast")
    bold: bool = option(False, "whether to be bold")
    mode: Literal["near", "far"] = option("near", "where to look")


class Pick(Strategy):
    """Uniform candidates."""

    Options = PickOptions

    def ask(self, n):
        return self.task.space.sample(n, self.rng)
