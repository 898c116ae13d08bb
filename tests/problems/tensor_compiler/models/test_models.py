from __future__ import annotations

import gzip

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.lib import xla_client
from tiny_models import QUICK, concrete

from bbo_problems.tensor_compiler.models import MODELS, SHIPPED, mobilenet
from bbo_problems.tensor_compiler.models.lower import VERSIONS, hlo_text, main, read_versions

TINY = {
    "resnet50": {"batch": 2, "image": 32, "depths": (1, 2, 1, 1), "width": 8, "classes": 10},
    "transformer": {"batch": 2, "sequence": 8, "depth": 2, "width": 16, "heads": 2, "hidden": 32, "vocabulary": 11},
    "mobilenet": {"batch": 8, "image": 32, "width": 0.1, "classes": 10},
    "rnn": {"batch": 2, "sequence": 5, "depth": 2, "hidden": 8, "vocabulary": 11},
}
ZERO = {"transformer": (1, 2), "mobilenet": (1,), "rnn": (1,)}  # arguments that training starts from zero
STEPS = 30


def shipped_text(name):
    return gzip.decompress((SHIPPED / f"{name}.hlo.gz").read_bytes()).decode()


def tiny(name):
    """The tiny program and concrete arguments for it."""
    function, abstract = MODELS[name](**TINY[name])
    arguments = concrete(abstract)
    for position in ZERO.get(name, ()):
        arguments[position] = jax.tree.map(jnp.zeros_like, arguments[position])
    return jax.jit(function, compiler_options=QUICK), arguments


def test_exactly_the_listed_models_ship():
    assert {path.name for path in SHIPPED.iterdir()} == {f"{name}.hlo.gz" for name in MODELS} | {VERSIONS}
    assert read_versions(SHIPPED).keys() == MODELS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_shipped_text_is_what_the_script_lowers(name):
    if read_versions(SHIPPED)[name] != jax.__version__:
        pytest.skip("another version of JAX made the program")
    assert shipped_text(name) == hlo_text(MODELS[name]())


@pytest.mark.parametrize("name", MODELS)
def test_xla_parses_the_shipped_text(name):
    text = shipped_text(name)
    module = xla_client.hlo.hlo_module_from_text(text)
    assert len(list(module.computations())) == text.count("\n}")


def test_rnn_ships_loops_whose_trip_count_can_be_read():
    text = shipped_text("rnn")
    assert text.count(" while(") == 4  # forward and backward of two layers
    assert text.count("s32[] constant(64)") >= 4
    assert text.count("direction=LT") >= 4


def test_the_script_always_writes_the_same_bytes(tmp_path):
    main(["rnn"], tmp_path / "first")
    main(["rnn"], tmp_path / "second")
    written = [(tmp_path / folder / "rnn.hlo.gz").read_bytes() for folder in ("first", "second")]
    assert written[0] == written[1]
    assert read_versions(tmp_path / "first") == {"rnn": jax.__version__}


SLOW = {"mobilenet"}  # compiling its gradients takes long


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in ZERO])
def test_training_lowers_the_loss_and_keeps_every_shape(name, train, monkeypatch):
    monkeypatch.setattr(mobilenet, "LEARNING_RATE", 0.005)  # at its own, one so tiny diverges on some processors
    step, arguments = tiny(name)
    losses = train(step, arguments, STEPS)
    classes = TINY[name].get("vocabulary", TINY[name].get("classes"))
    assert losses[0] == pytest.approx(np.log(classes), rel=0.5)  # the loss of an untrained network
    assert losses[-1] < 0.95 * losses[0]


def test_resnet_does_the_published_work():
    # torchvision's resnet50: 4.09 billion multiply-adds an image. XLA leaves out those that meet padding and counts
    # elementwise work besides.
    function, arguments = MODELS["resnet50"]()
    flops = jax.jit(function).lower(*arguments).cost_analysis()["flops"]
    assert flops / 32 / 2 == pytest.approx(4.09e9, rel=0.03)
