"""The base class of all adapters: the optimizer of another library behind ask and tell, in a sandbox of its own."""

from __future__ import annotations

import functools
import io
import random
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Problem, Space, Strategy, Task
from bbo_suite.core.constraint import Component

_BATCH = 20  # as in our own strategies: an optimizer that is told 100 candidates at once learns late


class Adapter(Strategy):
    """An optimizer of another library.

    The default is its first candidate. The library is told costs as multiples of the default's, so that none of its
    tolerances depends on the unit. A failed candidate counts as twice the worst cost so far: a library that is told no
    cost, or an infinite one, learns nothing from it or breaks.

    Attributes:
      name: name of the optimizer in its library.
    """

    has_variants: ClassVar[bool] = True
    name: ClassVar[str]

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        super().__init__(task, budget, rng, options)
        self.coding = Coding(task.space, task.default)
        self.seed = int(rng.integers(2**31))
        self._sandbox = Sandbox(int(rng.integers(2**31)))
        self._unit, self._worst = 0.0, 0.5
        self._started = False

    def ask(self, n: int) -> NDArray:
        """Return at most `n` and at most 20 candidates that the optimizer proposes, the default before all others."""
        n = min(n, _BATCH)
        if not len(self.coding.sizes):
            return np.repeat(self.task.default[None], n, axis=0)
        with self._sandbox.entered():
            if not self._started:
                self.start(n)
                self._started = True
            return self.coding.decode(self.propose(n))

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Tell the optimizer the costs of the batch."""
        if len(self.coding.sizes):
            with self._sandbox.entered():
                self.learn(self._relative(values))

    def _relative(self, values: NDArray[np.float64]) -> list[float]:
        good = np.isfinite(values)
        if not self._unit and good.any():
            self._unit = values[good][0] or 1.0
        costs = values / (self._unit or 1.0)
        self._worst = max(self._worst, costs[good].max(initial=0.0))
        return np.where(good, costs, 2 * self._worst).tolist()

    @abstractmethod
    def start(self, batch: int) -> None:
        """Make the optimizer, which will be asked for `batch` candidates at a time."""

    @abstractmethod
    def propose(self, n: int) -> NDArray:
        """Return `(k, w)` free indices with k <= n; the first of the first batch are the default's."""

    @abstractmethod
    def learn(self, costs: list[float]) -> None:
        """Tell the optimizer the costs of what it proposed last."""


def one_of(adapter: type[Adapter], library: str, name: str, **attributes: Any) -> type[Strategy]:  # noqa: ANN401
    """Return the subclass of an adapter for one named optimizer."""
    doc = f"{library}'s {name}.\n\n" + (adapter.__doc__ or "").partition("\n\n")[2]
    return type(name, (adapter,), {"name": name, "has_variants": False, "__doc__": doc, **attributes})


class Coding:
    """Converts between the candidates of a space and the independent indices that a library optimizes.

    Libraries optimize products of independent parameters. Parameters that cannot change are left out. The indices of
    a permutation are read as sort keys: each slot takes the rank of its key, so a permutation decodes to itself. Values
    that a constraint forbids are replaced by the row of its table that differs in the fewest parameters; of several
    such rows, by the one with the smallest differences of indices. The library is told the cost of the replacement.

    Attributes:
      sizes: `(w,)` number of values of each free parameter.
      kinds: `(w,)` the `Kind` of each free parameter.
      default: `(w,)` indices of the default.
      names: of the free parameters, for libraries that want some.
    """

    def __init__(self, space: Space, default: NDArray) -> None:
        self._space, self._base = space, default.astype(space.dtype)
        self._columns = Moves(space).movable
        self.sizes, self.kinds = space.sizes[self._columns], space.kinds[self._columns]
        self.default = default[self._columns].astype(np.int64)
        self.names = [f"x{i:06d}" for i in range(len(self.sizes))]

    def decode(self, indices: NDArray) -> NDArray:
        """Return the `(n, d)` allowed candidates of `(n, w)` indices; indices out of range are clipped."""
        configs = np.repeat(self._base[None], len(indices), axis=0)
        configs[:, self._columns] = np.clip(indices, 0, self.sizes - 1)
        for start, stop in self._space.free_permutations:
            order = configs[:, start:stop].argsort(axis=1, kind="stable")
            configs[:, start:stop] = order.argsort(axis=1)
        for component in self._space.components:
            _repair(configs, component)
        return configs


class Benchmark:
    """A problem for a library that searches it itself: named parameters, and costs over the cost of the default.

    Attributes:
      parameters: the values of each free parameter, by its name.
      ordered: names of the parameters that a library knows by the places of their values, since these have an order:
        scales, and the sort keys of a permutation.
      default: the place of the compiler's own choice, by name; it costs 1.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        space, row = problem.space, problem.default_row()
        self._coding = Coding(space, row)
        columns = Moves(space).movable
        names = [space.name(i) for i in columns]
        unique = len(set(names)) == len(names)
        names = names if unique else [f"{name} ({i})" for name, i in zip(names, columns, strict=True)]
        values = [[v if isinstance(v, (bool, int, str)) else str(v) for v in space.values(i)] for i in columns]
        self.parameters = dict(zip(names, values, strict=True))
        self.ordered = {
            name
            for name, i in zip(names, columns, strict=True)
            if space.kinds[i] == Kind.SCALE or space.groups[i] in space.permutations
        }
        self.default = dict(zip(names, self._coding.default.tolist(), strict=True))
        self._unit = float(problem.evaluate(row[None]).values[0])

    def cost(self, places: dict[str, int]) -> float:
        """Return the cost over the default's of places of values by name; inf for a candidate that fails.

        What a constraint forbids is replaced by the nearest candidate that it allows.
        """
        row = self._coding.decode(np.array([[places[name] for name in self.parameters]]))
        return float(self._problem.evaluate(row).values[0]) / self._unit


def _repair(configs: NDArray, component: Component) -> None:
    """Replace what the table does not allow by its nearest row, in place."""
    scale = 1 + component.sizes.sum()
    for place in np.flatnonzero(~component.allows(configs)):
        distances = np.abs(component.rows - configs[place, component.columns])
        nearest = (distances > 0).sum(axis=1) + distances.sum(axis=1) / scale
        configs[place, component.columns] = component.rows[nearest.argmin()]


class Sandbox:
    """Separate global generators of numpy and Python, no warnings, and nothing on standard output.

    Some libraries draw from global generators, or make generators without a seed. Inside the sandbox these continue a
    stream that only the seed determines; outside nothing changes.
    """

    def __init__(self, seed: int) -> None:
        self._numpy = np.random.RandomState(seed).get_state()
        self._python = random.Random(seed).getstate()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Use the sandbox's global generators, and silence the library, inside the block."""
        outside, make = (np.random.get_state(), random.getstate()), np.random.default_rng  # noqa: NPY002
        np.random.set_state(self._numpy)  # noqa: NPY002
        random.setstate(self._python)
        np.random.default_rng = functools.partial(_seeded, make)
        try:
            with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")  # they are meant for direct users of the library
                yield
        finally:
            np.random.default_rng = make
            self._numpy, self._python = np.random.get_state(), random.getstate()  # noqa: NPY002
            np.random.set_state(outside[0])  # noqa: NPY002
            random.setstate(outside[1])


def _seeded(make: Callable[..., Generator], seed: Any = None) -> Generator:  # noqa: ANN401 - numpy's signature
    return make(np.random.randint(2**31) if seed is None else seed)  # noqa: NPY002
