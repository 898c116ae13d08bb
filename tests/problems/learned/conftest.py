import numpy as np
import pytest

from bbo_problems.learned.dataset import generate


@pytest.fixture(scope="session")
def kernels():
    return generate(["rnn"], "v5e", 60, 6, np.random.default_rng(0), lambda name, count: None)
