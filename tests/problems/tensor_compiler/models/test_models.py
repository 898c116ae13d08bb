from __future__ import annotations

import gzip

import jax
import pytest
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.models import MODELS, SHIPPED
from bbo_problems.tensor_compiler.models.lower import VERSIONS, hlo_text, main, read_versions


def shipped_text(name):
    return gzip.decompress((SHIPPED / f"{name}.hlo.gz").read_bytes()).decode()


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


def test_resnet_does_the_published_work():
    # torchvision's resnet50: 4.09 billion multiply-adds an image. XLA leaves out those that meet padding and counts
    # elementwise work besides.
    function, arguments = MODELS["resnet50"]()
    flops = jax.jit(function).lower(*arguments).cost_analysis()["flops"]
    assert flops / 32 / 2 == pytest.approx(4.09e9, rel=0.03)
