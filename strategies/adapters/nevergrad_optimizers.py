"""The optimizers of Nevergrad (Rapin and Teytaud 2018)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Strategy, UserError
from bbo_suite.libraries import require

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
"""The module and the package that the optimizers need whose names begin so."""

_CLOCK = "it seeds itself by the clock, so that its runs cannot be repeated"
_THREAD = "it draws from a global generator in a thread of its own, so that its runs cannot be repeated"
_PYMOO = "Nevergrad 1.0.12 imports for it what pymoo 0.6 has no more; use pymoo:CMAES and its likes"
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
"""What the registry calls parallel although it fails when asked for more candidates than one at a time.

CMA's variants do where a batch ends within a generation, which in large spaces is larger than a batch.
"""


class Nevergrad(Adapter):
    """The optimizers of Nevergrad; `show nevergrad` names them.

    All free parameters are one array whose element i lies in `[0, sizes[i])`, bounded by the normal distribution's
    function and cast to integers. That is how Nevergrad's own TransitionChoice codes an index, a standard normal draw
    being a uniform index, but without an object a parameter. The centre is the middle of every range and not the
    default, round which draws would then fall. Measured at 700 booleans and at 40 slots of 50 values: 0.5 ms a
    candidate instead of 7, with results as good or better for DiscreteLenglerOnePlusOne and TwoPointsDE. An array
    bounded by bouncing and centred at the default, as cheap, hardly gets away from there.

    An optimizer that Nevergrad cannot run in parallel is asked for one candidate at a time. One that cannot be told
    of a candidate that it did not propose does not learn what the default costs.
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
        made = nevergrad.optimizers.registry[self.name]
        self._optimizer = made(array, budget=self.budget, num_workers=1 if self.sequential else batch)
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
    """Let Nevergrad 1.0.12 take what a model predicts, an array of one number, for a number: numpy 2 refuses to."""
    import sklearn.ensemble  # noqa: F401 - imported in a run, it would draw numbers that a second run does not draw
    from nevergrad.optimization import metamodel

    vars(metamodel)["float"] = lambda predicted: np.asarray(predicted).item()
