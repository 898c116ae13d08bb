"""Random search: the baseline that every strategy has to beat."""

from __future__ import annotations

from numpy.typing import NDArray

from bbo_suite import Strategy


class RandomSearch(Strategy):
    """Draws uniform, independent candidates, the default first."""

    _started = False

    def ask(self, n: int) -> NDArray:
        """Return `n` allowed candidates."""
        configs = self.task.space.sample(n, self.rng)
        if not self._started:
            configs[0] = self.task.default
            self._started = True
        return configs
