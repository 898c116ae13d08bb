"""The optimizers of Nevergrad (Rapin and Teytaud 2018)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Strategy, UserError
from bbo_suite.core.libraries import require

from .adapter import Adapter, one_of

NEEDS: Mapping[str, tuple[str, str]] = {
    "AX": ("ax", "ax-platform"),
    "BOBYQA": ("pybobyqa", "Py-BOBYQA"),
    "BayesOptim": ("bayes_optim", "bayes-optim"),
    "FCMA": ("fcmaes", "fcmaes"),
    "NLOPT": ("nlopt", "nlopt"),
    "PCABO": ("bayes_optim", "bayes-optim"),
    "SMAC3": ("ConfigSpace", "smac"),
    "pysot": ("poap", "pysot"),
}
"""The module and the package that optimizers need, by the beginning of their names."""

_CLOCK = "it seeds itself by the clock, so its runs cannot be repeated"
_THREAD = "it draws from a global generator in another thread, so its runs cannot be repeated"
_PYMOO = "Nevergrad 1.0.12 needs an older pymoo than 0.6; use pymoo:CMAES or another pymoo strategy"
UNUSABLE: Mapping[str, str] = {
    **dict.fromkeys(("Carola10", "Carola13", "Carola8", "Carola9", "CmaFmin2", "MetaModelFmin2"), _CLOCK),
    **dict.fromkeys(("MultiDS",), _THREAD),
    **dict.fromkeys(("PymooBIPOP", "PymooCMAES", "PymooNSGA2"), _PYMOO),
}
"""Why an optimizer of the registry cannot be run."""

SEQUENTIAL = frozenset(
    {
        *("BAR4", "DS9", "MetaModelDSproba", "CMAL2", "CMAL3", "CMASL2", "CMASL3"),
        *("Neural1MetaModelE", "RF1MetaModelE", "SVM1MetaModelE"),
    }
)
"""Optimizers that the registry calls parallel although they fail when asked for several candidates at a time.

Variants of CMA fail if a batch ends within a generation, which is larger than a batch in large spaces.
"""


class Nevergrad(Adapter):
    """Optimizers of another library; `show nevergrad` names those of Nevergrad.

    All free parameters are one array whose element i lies in `[0, sizes[i])`, bounded by the distribution function of
    the normal distribution and cast to integers. Nevergrad's TransitionChoice codes an index in this way, too (a
    standard normal draw is a uniform index), but with an object per parameter. The centre is the middle of every range;
    if it were the default, draws would cluster around it. Measured with 700 booleans and with 40 slots of 50 values:
    0.5 ms a candidate instead of 7, with results as good or better for DiscreteLenglerOnePlusOne and TwoPointsDE. An
    array bounded by bouncing and centred at the default is as fast, but hardly leaves the default.

    An optimizer that Nevergrad cannot run in parallel is asked for one candidate at a time. An optimizer that cannot be
    told a candidate that it did not propose does not learn the cost of the default.
    """

    sequential: ClassVar[bool]

    @classmethod
    @functools.cache
    def variants(cls) -> tuple[str, ...]:
        """Return the names in Nevergrad's registry."""
        from nevergrad.optimization import registry

        return tuple(sorted(registry))

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy that is one optimizer."""
        from nevergrad.optimization import registry

        if name in UNUSABLE:
            raise UserError(f"strategy nevergrad:{name} cannot be used: {UNUSABLE[name]}")
        for start, (module, package) in NEEDS.items():
            if name.startswith(start):
                require(module, f"strategy nevergrad:{name}", package)
        _fix_metamodels()
        sequential = name in SEQUENTIAL or bool(registry[name].no_parallelization)
        return one_of(cls, "Nevergrad", name, sequential=sequential)

    def start(self, batch: int) -> None:
        """Make the optimizer and suggest the default to it."""
        import nevergrad

        sizes = self.coding.sizes.astype(float)
        array = nevergrad.p.Array(init=sizes / 2).set_bounds(np.zeros_like(sizes), sizes, method="gaussian")
        array = (array - 0.5).set_integer_casting()
        array.random_state = np.random.RandomState(self.seed)
        optimizer_class = nevergrad.optimizers.registry[self.name]
        self._optimizer = optimizer_class(array, budget=self.budget, num_workers=1 if self.sequential else batch)
        self._optimizer.suggest(self.coding.default)

    def propose(self, n: int) -> NDArray:
        """Ask the optimizer `n` times."""
        self._asked = [self._optimizer.ask() for _ in range(1 if self.sequential else n)]
        return np.array([candidate.value for candidate in self._asked], np.int64)

    def learn(self, costs: list[float]) -> None:
        """Tell the optimizer each cost."""
        from nevergrad.common.errors import TellNotAskedNotSupportedError

        for place, (candidate, cost) in enumerate(zip(self._asked, costs, strict=True)):
            try:
                self._optimizer.tell(candidate, cost)
            except TellNotAskedNotSupportedError:
                assert self._optimizer.num_tell <= 1 and place == 0  # only the default was not asked for


def _fix_metamodels() -> None:
    """Convert the predictions of Nevergrad 1.0.12's models, arrays of one number, to numbers: numpy 2 does not."""
    import sklearn.ensemble  # noqa: F401 - its first import draws random numbers, so two runs would differ
    from nevergrad.optimization import metamodel

    vars(metamodel)["float"] = lambda predicted: np.asarray(predicted).item()
