"""What the tests of all models share; `tiny.py` is importable as `tiny_models`, without a folder on the path."""

import importlib.util
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

spec = importlib.util.spec_from_file_location("tiny_models", Path(__file__).with_name("tiny.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["tiny_models"] = module
spec.loader.exec_module(module)


@pytest.fixture(scope="session")
def train():
    """Return a function that trains a model, checks that no shape or type changes, and returns the losses."""

    def losses_of(step, arguments, steps):
        losses = []
        for _ in range(steps):
            *state, loss = step(*arguments)
            following = [*state, *arguments[len(state) :]]
            assert _shapes(following) == _shapes(arguments)
            arguments = following
            losses.append(float(loss))
        assert all(np.isfinite(np.asarray(leaf, np.float32)).all() for leaf in jax.tree.leaves(arguments))
        return losses

    return losses_of


def _shapes(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
