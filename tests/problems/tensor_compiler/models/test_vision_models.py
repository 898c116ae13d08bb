from __future__ import annotations

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_models import QUICK, concrete

from bbo_problems.tensor_compiler.models import convdraw, mobilenet, resnet, resnet_v2, ssd, unet, vision

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do

CLASSES = 10
RESNET = {"batch": 8, "image": 32, "depths": (1, 2), "width": 8, "classes": CLASSES}
TINY = {
    "resnet": partial(resnet.build, **RESNET),
    "resnet-basic": partial(resnet.build, **RESNET, bottleneck=False),
    "resnet_v2": partial(resnet_v2.build, **RESNET),
    "mobilenet": partial(mobilenet.build, batch=4, image=32, width=0.1, classes=CLASSES),
    "ssd-resnet34": partial(ssd.build, batch=1, image=260, width=4, classes=CLASSES),
    "ssd-vgg16": partial(ssd.build, batch=1, image=260, width=4, classes=CLASSES, backbone="vgg16"),
    "unet": partial(unet.build, batch=8, image=8, width=32, multiples=(1, 2), blocks=1, attention=4, steps=20),
    "convdraw": partial(convdraw.build, batch=4, image=8, steps=3, hidden=8, latent=2),
    "convdraw-unrolled": partial(convdraw.build, batch=4, image=8, steps=3, hidden=8, latent=2, unroll=3),
}
BOXES = 6766  # default boxes of an image of 260
SLOW = {"ssd-resnet34", "ssd-vgg16", "unet", "convdraw"}  # compiling their gradients takes long
UNTRAINED = {"mobilenet", "convdraw-unrolled"}  # trained by test_models, or the same as another
TRAINED = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in TINY if name not in UNTRAINED
]
STEPS = 12
HASTE = {ssd: 0.02, convdraw: 0.01}  # learning rates that show within these steps


def tiny(name, training):
    """The tiny program and concrete arguments for it; what belongs to an optimiser starts from zero."""
    function, abstract = TINY[name](training=training)
    arguments = concrete(abstract)
    if training:
        arguments[1] = jax.tree.map(jnp.zeros_like, arguments[1])
    if name == "unet" and training:
        arguments[2] = jax.tree.map(jnp.zeros_like, arguments[2])
    return jax.jit(function, compiler_options=QUICK), arguments


@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_training_step_keeps_every_shape(name):
    function, arguments = TINY[name](training=True)
    *state, loss = jax.eval_shape(function, *arguments)
    assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, list(arguments[: len(state)]))
    assert loss.shape == ()


@cache
def result(name):
    """What the tiny model infers; it is finite."""
    function, arguments = tiny(name, training=False)
    value = function(*arguments)
    assert all(np.isfinite(leaf).all() and leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(value))
    return value


@pytest.mark.parametrize("name", TRAINED)
def test_training_lowers_the_loss_and_keeps_every_shape(name, train, monkeypatch):
    for module, rate in HASTE.items():
        monkeypatch.setattr(module, "LEARNING_RATE", rate)
    step, arguments = tiny(name, training=True)
    losses = train(step, arguments, STEPS)
    assert losses[0] > 0
    assert np.mean(losses[-3:]) < 0.98 * losses[0]


@pytest.mark.parametrize("name", ["resnet-basic", "resnet_v2", "mobilenet"])
def test_classifiers_give_probabilities(name):
    probabilities = result(name)
    assert probabilities.shape == (TINY[name].keywords["batch"], CLASSES)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    assert not np.allclose(probabilities[0], probabilities[1])


@pytest.mark.parametrize("name", ["ssd-resnet34", "ssd-vgg16"])
def test_detectors_give_probabilities_and_boxes(name):
    probabilities, boxes = result(name)
    assert probabilities.shape == (1, BOXES, CLASSES)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    assert boxes.shape == (1, BOXES, 4)
    assert (boxes[..., :2] < boxes[..., 2:]).all()


@pytest.mark.parametrize("name", ["unet", "convdraw", "convdraw-unrolled"])
def test_generators_give_images(name):
    assert result(name).shape == (TINY[name].keywords["batch"], 8, 8, 3)


def test_unrolling_changes_no_result():
    np.testing.assert_allclose(result("convdraw"), result("convdraw-unrolled"), atol=0.1)


def test_batch_norm_moves_the_statistics_that_inference_uses():
    x = jnp.asarray(np.random.default_rng(0).normal(3, 2, (8, 4, 4, 5)), jnp.float32)
    norm, seen = {"scale": jnp.ones(5), "offset": jnp.zeros(5)}, []
    trained = vision.batch_norm(x, norm, seen)
    np.testing.assert_allclose(vision.batch_norm(x, norm | seen[0], seen), trained, rtol=1e-5)
    np.testing.assert_allclose(trained.mean(axis=(0, 1, 2)), 0, atol=1e-5)
    assert len(seen) == 1
    (moved,) = vision.moving_average([{"mean": jnp.zeros(5), "variance": jnp.ones(5)}], seen)
    np.testing.assert_allclose(moved["mean"], 0.1 * x.mean(axis=(0, 1, 2)), rtol=1e-5)
