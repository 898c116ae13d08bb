"""A sandbox for the global random state that other libraries use."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.random import Generator


class Sandbox:
    """Separate global generators of numpy and Python, and no warnings.

    Some libraries draw from global generators, or make generators without a seed. Inside the sandbox these continue a
    stream that only the seed determines; outside nothing changes.
    """

    def __init__(self, seed: int) -> None:
        self._numpy = np.random.RandomState(seed).get_state()
        self._python = random.Random(seed).getstate()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Use the sandbox's global generators and silence warnings inside the block."""
        outside, make = (np.random.get_state(), random.getstate()), np.random.default_rng  # noqa: NPY002
        np.random.set_state(self._numpy)  # noqa: NPY002
        random.setstate(self._python)
        np.random.default_rng = functools.partial(_seeded, make)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they are meant for direct users of the library
                yield
        finally:
            np.random.default_rng = make
            self._numpy, self._python = np.random.get_state(), random.getstate()  # noqa: NPY002
            np.random.set_state(outside[0])  # noqa: NPY002
            random.setstate(outside[1])


def _seeded(make: Callable[..., Generator], seed: Any = None) -> Generator:  # noqa: ANN401 - numpy's signature
    return make(np.random.randint(2**31) if seed is None else seed)  # noqa: NPY002
