"""Values for the arguments of tiny programs, steps of their training, and how their results are compared."""

import jax
import jax.numpy as jnp
import numpy as np

LABELS = 10  # drawn integers are from 1 to below this: smaller than every number of classes, and never padding
SIGNAL = np.linspace(1, 0.01, 21)  # of the U-Net
CLOSE = 0.03  # the relative difference, in norms, allowed between two ways to compute a value in bfloat16
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def for_sequences(path, leaf, generator):
    """Values for an abstract argument: labels, flags that are set, or weights scaled by their fan-in."""
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        return generator.integers(1, LABELS, leaf.shape).astype(leaf.dtype)
    if leaf.dtype == bool or getattr(path[-1], "key", None) == "scale":
        return np.ones(leaf.shape, leaf.dtype)
    if len(leaf.shape) < 2:
        return np.zeros(leaf.shape, leaf.dtype)
    return (generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[-2])).astype(leaf.dtype)


def for_images(path, leaf, generator):
    """Values for an abstract argument: labels or key, weights scaled by their fan-in, images, the signal or boxes."""
    name = getattr(path[-1], "key", None)
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        return np.asarray(generator.integers(1, LABELS, leaf.shape), leaf.dtype)
    if name in ("scale", "variance"):
        return np.ones(leaf.shape, leaf.dtype)
    if leaf.shape == SIGNAL.shape:
        return np.asarray(SIGNAL, leaf.dtype)
    if len(leaf.shape) < 2:
        return np.zeros(leaf.shape, leaf.dtype)
    if name is None and len(leaf.shape) == 3:
        return np.asarray(generator.uniform(0.2, 0.6, leaf.shape), leaf.dtype)
    fan_in = 1 if name is None else np.prod(leaf.shape[:-1])
    return np.asarray(generator.normal(size=leaf.shape) / np.sqrt(fan_in), leaf.dtype)


def tiny(build, draw=None, **sizes):
    """The tiny program and concrete arguments for it."""
    function, abstract = build(**sizes)
    generator, draw = np.random.default_rng(0), draw or for_sequences
    arguments = jax.tree_util.tree_map_with_path(lambda path, leaf: draw(path, leaf, generator), abstract)
    return quick(function), list(arguments)


def losses_of(step, arguments, steps):
    """Train a model, check that no shape or type changes, and return the losses."""
    losses = []
    for _ in range(steps):
        *state, loss = step(*arguments)
        following = [*state, *arguments[len(state) :]]
        assert shapes(following) == shapes(arguments)
        arguments = following
        losses.append(float(loss))
    assert finite(arguments)
    return losses


def zeros(tree):
    return jax.tree.map(np.zeros_like, tree)


def shapes(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


def finite(tree):
    return all(np.isfinite(np.asarray(leaf, np.float32)).all() for leaf in jax.tree.leaves(tree))


def quick(function, **options):
    """The function, compiled quickly; it returns when all is computed, so that its arguments may be changed then."""
    compiled = jax.jit(function, compiler_options=QUICK, **options)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def far(one, other):
    one, other = (np.asarray(values, np.float32) for values in (one, other))
    return np.linalg.norm(one - other) > CLOSE * np.linalg.norm(other)


def assert_close(one, other):
    assert shapes(one) == shapes(other)
    assert not any(map(far, jax.tree.leaves(one), jax.tree.leaves(other)))
