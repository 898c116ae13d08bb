"""Models: their sizes as published, and how they are lowered."""

from __future__ import annotations

import gzip

import jax
import pytest
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.models import (
    LOWERED,
    MODELS,
    SHIPPED,
    bert,
    dlrm,
    gpt2,
    mobilenet,
    moe,
    nmt,
    resnet,
    resnet_v2,
    rnn,
    ssd,
    transformer,
    translate,
    unet,
)
from bbo_problems.tensor_compiler.models.lower import VERSIONS, made_by, main, read_versions

SMALL = {"depth": 12, "width": 768, "heads": 12, "hidden": 3072, "sequence": 1024, "vocabulary": 50257}
LARGE = {"depth": 24, "width": 1024, "heads": 16}


def count(tree, *names):
    """The number of elements of all arrays of these names; of all arrays if there are none."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return sum(leaf.size for path, leaf in leaves if not names or path[-1].key in names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "sizes", "parameters"),
    [
        # torchvision's resnet18, 34, 50, 101 and 152.
        (resnet, {"depths": (2, 2, 2, 2), "bottleneck": False, "training": True}, 11_689_512),
        (resnet, {"depths": (3, 4, 6, 3), "bottleneck": False, "training": True}, 21_797_672),
        (resnet, {"depths": (3, 4, 6, 3), "training": True}, 25_557_032),
        (resnet, {"depths": (3, 4, 23, 3), "training": True}, 44_549_160),
        (resnet, {"depths": (3, 8, 36, 3), "training": True}, 60_192_808),
        # Keras's ResNet50V2, 101V2 and 152V2, less the biases that they give the stem and each block's last convolution
        # and shortcut.
        (resnet_v2, {"depths": (3, 4, 6, 3)}, 25_568_360 - 19_008),
        (resnet_v2, {"depths": (3, 4, 23, 3)}, 44_577_896 - 36_416),
        (resnet_v2, {"depths": (3, 8, 36, 3)}, 60_236_904 - 51_776),
        # torchvision's mobilenet_v2, and its ssd300_vgg16, whose classes are 91.
        (mobilenet, {}, 3_504_872),
        (ssd, {"backbone": "vgg16", "classes": 91}, 35_641_826),
        # As OpenAI released them: https://huggingface.co/openai-community/gpt2 and gpt2-medium.
        (gpt2, {}, 124_439_808),
        (gpt2, LARGE, 354_823_168),
        (transformer, SMALL, 124_439_808),
        # BertForPreTraining of bert-base-uncased and bert-large-uncased in Hugging Face's transformers.
        (bert, {}, 110_106_428),
        (bert, LARGE, 336_226_108),
    ],
)
def test_parameters_are_those_of_published_code(module, sizes, parameters):
    assert count(module.build(**sizes)[1][0]) == parameters


@pytest.mark.parametrize(
    ("module", "sizes", "millions", "error"),
    [
        # Appendix B of the paper: 35.7 million for CIFAR-10, 114 million for LSUN and CelebA-HQ.
        (unet, {}, 35.7, 5e-3),
        (unet, {"image": 256, "multiples": (1, 1, 2, 2, 4, 4)}, 114, 5e-3),
        # The medium and large LSTM of Zaremba et al. as Merity et al. (2016) count them.
        (rnn, {"hidden": 650, "vocabulary": 10_000}, 20, 0.03),
        (rnn, {"hidden": 1500, "vocabulary": 10_000}, 66, 0.01),
        # Table 3 of Vaswani et al.; the vocabulary is "about 37000".
        (translate, {}, 65, 0.04),
        (translate, {"width": 1024, "heads": 16}, 213, 0.04),
        # Wu et al. as Shazeer et al., Outrageously Large Neural Networks, 2017, count it.
        (nmt, {}, 278, 0.02),
        # MLPerf's model has 24 billion (about 96 GB).
        (dlrm, {}, 24_000, 0.02),
        # Table 9 of Fedus et al. has 7 billion for Switch-Base, almost all of them in 12 layers of 128 experts.
        (moe, {}, 7000, 0.07),
    ],
)
def test_parameters_are_about_those_of_the_papers(module, sizes, millions, error):
    assert count(module.build(**sizes)[1][0]) / 1e6 == pytest.approx(millions, rel=error)


@pytest.mark.parametrize(("sizes", "encoder"), [({}, 109_482_240), (LARGE, 335_141_888)])
def test_the_encoder_of_bert_has_the_published_parameters(sizes, encoder):
    # BertModel in Hugging Face's transformers.
    assert count(bert.build(**sizes)[1][0]["encoder"]) == encoder


def test_statistics_of_batch_norms_are_those_of_published_code():
    # Keras's ResNet50V2 and MobileNetV2.
    assert count(resnet_v2.build(training=False)[1][0], "mean", "variance") == 45_440
    assert count(mobilenet.build()[1][2]) == 34_112


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


@pytest.mark.slow
def test_the_script_always_writes_the_same_bytes(tmp_path):
    main(["rnn"], tmp_path / "first")
    main(["rnn"], tmp_path / "second")
    written = [(tmp_path / folder / "rnn.hlo.gz").read_bytes() for folder in ("first", "second")]
    assert written[0] == written[1]
    assert read_versions(tmp_path / "first") == {"rnn": made_by()}


@pytest.mark.slow
def test_resnet_does_the_published_work():
    # torchvision's resnet50: 4.09 billion multiply-adds an image. XLA leaves out those that meet padding and counts
    # elementwise work besides.
    function, arguments = MODELS["resnet50"]()
    flops = jax.jit(function).lower(*arguments).cost_analysis()["flops"]
    assert flops / 32 / 2 == pytest.approx(4.09e9, rel=0.03)
