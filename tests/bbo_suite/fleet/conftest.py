"""A small library of kernels with known optima, and fleets on it."""

from pathlib import Path

import numpy as np
import pytest

from bbo_suite import Evaluations, Kind, Problem, Space
from bbo_suite.fleet.executors import InProcess
from bbo_suite.fleet.library import Groups, KernelLibrary
from bbo_suite.fleet.settings import FleetSettings
from bbo_suite.fleet.store import ResultStore
from bbo_suite.fleet.study import Fleet, policies
from bbo_suite.registry import Registry

SIDE, KERNELS, PROGRAMS = 6, 120, 6


class ToyTask(Problem):
    """Both settings of one kernel."""

    def __init__(self, library, version, kernel):
        self.space, self.default = Space([SIDE, SIDE], [Kind.SCALE] * 2), np.zeros(2, int)
        self._timed = lambda configs: library.seconds(version, np.full(len(configs), kernel), configs.astype(float))

    def evaluate(self, configs):
        return Evaluations.of(self._timed(configs))


class ToyKernels(KernelLibrary):
    """Two settings of six values each; the further from a kernel's own best values, the slower."""

    instances = ("toy",)
    machine = "toy"
    strategies = Registry()
    trained_on = 1000

    def __init__(self):
        rng = np.random.default_rng(0)
        self.content = rng.integers(1, 2**63, KERNELS).astype(np.uint64)
        self.base, self.best = rng.lognormal(0, 1, KERNELS), rng.integers(0, SIDE, (2, KERNELS, 2))
        self.steep = rng.choice([0.0, 0.02, 0.1], KERNELS)
        self.family, self.features = rng.integers(0, 3, KERNELS), rng.random((KERNELS, 2)).astype(np.float32)
        self.counts = np.full((KERNELS, 2), SIDE)
        own = KERNELS // 2 // PROGRAMS
        self.programs = Groups(
            np.arange(PROGRAMS + 1) * own, np.arange(own * PROGRAMS), rng.integers(1, 9, own * PROGRAMS).astype(float)
        )
        self.variants = Groups(np.arange(PROGRAMS + 1) * own, np.arange(own * PROGRAMS) + own * PROGRAMS)
        self.predicted = 1 - self.default_seconds(0) ** 0 / (1 + self._far(0, np.arange(KERNELS), self.defaults(0)))

    def _far(self, version, kernels, settings):
        return self.steep[kernels] * np.abs(settings - self.best[version, kernels]).sum(axis=1)

    def fingerprint(self):
        return "toy"

    def defaults(self, version, kernels=slice(None)):
        return np.zeros((KERNELS, 2))[kernels]

    def seconds(self, version, kernels, settings):
        found = self.base[kernels] * (1 + self._far(version, kernels, settings))
        return np.where(settings[:, 0] == SIDE - 1, np.inf, found)  # this one never compiles

    def default_seconds(self, version):
        return self.seconds(version, np.arange(KERNELS), self.defaults(version))

    def tunable(self, version):
        return np.arange(KERNELS) > 2

    def compiled(self, version, kernels, given, stage):
        n = SIDE - (stage == 0)
        settings = np.repeat(given, n, axis=0)
        settings[:, stage] = np.tile(np.arange(n), len(given))
        return np.arange(len(given) + 1) * n, settings

    def problem(self, version, kernel):
        return ToyTask(self, version, kernel)

    def settings_of(self, version, kernel, configs):
        return configs.astype(float)

    def picks(self, kernels, given, stage):
        settings = np.repeat(given[:, None], 2, axis=1)
        settings[:, 0, stage] = self.best[0, kernels, stage]
        settings[:, 1, stage] = 1
        return settings

    def adapted(self, kernels, settings):
        return settings


@pytest.fixture(scope="session")
def library():
    return ToyKernels()


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


SETTINGS = FleetSettings(programs=30, chips=0.01, release=8, noise=0.01, margin=0.0)


@pytest.fixture
def fleet(tmp_path, library, own_cache):
    """Return a function that runs a fleet and returns its days."""

    def run(policy="saving", days=12, budget=100.0, settings=SETTINGS, folder="store", executor=None, stop=None):
        made = policies(Registry(), [policy])[policy]() if isinstance(policy, str) else policy
        with ResultStore(Path(tmp_path / folder), {"policy": str(policy), "settings": str(settings)}) as store:
            worker = executor or InProcess(library, settings)
            days = Fleet(library, settings, made, "mine", budget, 0, store, worker).run(days)
            return [day for day, _ in zip(days, range(stop or 10**6), strict=False)]

    return run
