"""What the tests of all models share."""

import jax
import numpy as np
import pytest


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
