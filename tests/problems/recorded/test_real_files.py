"""Files of real tuners, if they are available, compared with published counts."""

from pathlib import Path

import numpy as np
import pytest

from bbo_suite import Enumeration, Status
from bbo_suite.registry import Registry

DATA = Path(__file__).parents[4] / "shared/data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real files are not here")

KNOWN = {
    "kernel_tuner/convolution_milo-A100.json.gz": (10240, 4362, 4201, 0.5536e-3, 1.834e-3),
    "kernel_tuner/convolution_milo-A100_T4.json.gz": (10240, 4362, 4201, 0.5536e-3, 1.834e-3),
    "kernel_tuner/dedispersion_milo-A100_T4.json.gz": (22272, 11130, 11130, 68.117e-3, 72.499e-3),
    "kernel_tuner/unused-kt_gemm-RTX_3090.json.gz": (82944, 17956, 17956, 5.6578e-3, 14.578e-3),
    "ktt/coulomb_2080_full_search_space.json.gz": (None, 210, 210, 769.696e-6, 2244.21e-6),
}


@pytest.mark.parametrize("name", KNOWN)
def test_counts_and_times_are_the_published_ones(name):
    product, measured, valid, best, median = KNOWN[name]
    problem = Registry().load(f"recorded:{DATA / name}")
    assert product is None or np.prod(problem.space.sizes) == product
    assert problem.space.cardinality == measured
    values = problem.evaluate(Enumeration(problem.space, np.random.default_rng(0)).rows(0, measured))
    assert (values.status == Status.OK).sum() == valid
    assert problem.optimum == pytest.approx(best, rel=1e-4)
    assert np.median(values.values[values.status == Status.OK]) == pytest.approx(median, rel=1e-3)


def test_two_formats_of_one_space_are_one_problem():
    first, second = (Registry().load(f"recorded:{DATA / name}") for name in list(KNOWN)[:2])
    assert first.fingerprint() == second.fingerprint()
