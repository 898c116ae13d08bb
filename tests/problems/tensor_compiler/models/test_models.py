from __future__ import annotations

import gzip

import jax
import pytest
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.models import LOWERED, MODELS, SHIPPED
from bbo_problems.tensor_compiler.models.lower import VERSIONS, made_by, main, read_versions


def shipped_text(name, folder=SHIPPED):
    return gzip.decompress((folder / f"{name}.hlo.gz").read_bytes()).decode()


def test_exactly_the_listed_models_ship():
    texts = {f"{name}.hlo.gz" for name in MODELS}
    assert {path.name for path in SHIPPED.iterdir()} == texts | {VERSIONS, LOWERED}
    assert {path.name for path in (SHIPPED / LOWERED).iterdir()} == texts
    assert read_versions(SHIPPED).keys() == MODELS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_shipped_texts_are_what_the_script_lowers(name, tmp_path):
    if read_versions(SHIPPED)[name] != made_by():
        pytest.skip("other versions made the program")
    main([name], tmp_path)
    for folder in ("", LOWERED):
        assert shipped_text(name, SHIPPED / folder) == shipped_text(name, tmp_path / folder)


@pytest.mark.parametrize("name", MODELS)
def test_xla_parses_the_shipped_texts(name):
    text = shipped_text(name, SHIPPED / LOWERED)
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
    assert read_versions(tmp_path / "first") == {"rnn": made_by()}


def test_resnet_does_the_published_work():
    # torchvision's resnet50: 4.09 billion multiply-adds an image. XLA leaves out those that meet padding and counts
    # elementwise work besides.
    function, arguments = MODELS["resnet50"]()
    flops = jax.jit(function).lower(*arguments).cost_analysis()["flops"]
    assert flops / 32 / 2 == pytest.approx(4.09e9, rel=0.03)
