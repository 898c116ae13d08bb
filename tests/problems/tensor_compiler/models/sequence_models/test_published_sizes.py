"""Models at their full sizes have as many parameters as was published."""

import jax
import pytest

from bbo_problems.tensor_compiler.models import bert, dlrm, gpt2, moe, nmt, translate, wavernn


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def test_gpt2_has_the_published_parameters():
    # As OpenAI released them: https://huggingface.co/openai-community/gpt2 and gpt2-medium.
    assert count(gpt2.build()[1][0]) == 124_439_808
    assert count(gpt2.build(depth=24, width=1024, heads=16)[1][0]) == 354_823_168


@pytest.mark.parametrize(
    ("sizes", "encoder", "all_weights"),
    [
        ({}, 109_482_240, 110_106_428),
        ({"depth": 24, "width": 1024, "heads": 16}, 335_141_888, 336_226_108),
    ],
)
def test_bert_has_the_published_parameters(sizes, encoder, all_weights):
    # BertModel and BertForPreTraining of bert-base-uncased and bert-large-uncased in Hugging Face's transformers; the
    # paper has 110 and 340 million.
    weights = bert.build(**sizes)[1][0]
    assert count(weights["encoder"]) == encoder
    assert count(weights) == all_weights


@pytest.mark.parametrize(("sizes", "millions"), [({}, 65), ({"width": 1024, "heads": 16}, 213)])
def test_translate_has_about_the_published_parameters(sizes, millions):
    # Table 3 of Vaswani et al.; the vocabulary is "about 37000".
    assert count(translate.build(**sizes)[1][0]) / 1e6 == pytest.approx(millions, rel=0.04)


def test_nmt_has_about_the_published_parameters():
    # Wu et al. as Shazeer et al., Outrageously Large Neural Networks, 2017, count it: 278 million.
    assert count(nmt.build()[1][0]) / 1e6 == pytest.approx(278, rel=0.02)


def test_wavernn_has_the_parameters_of_its_equations():
    # Equation 2 of the paper: one matrix R of 896 x 3 * 896, the inputs, of which c_t is seen by the fine half alone,
    # and O_1 to O_4; biases besides.
    weights = wavernn.build()[1][0]
    weights = {name: weights[name] for name in ("recurrent", "coarse", "fine")}
    matrices = 896 * 3 * 896 + 3 * 448 * (2 + 3) + 2 * (448 * 448 + 448 * 256)
    assert count(weights) == matrices + 3 * 896 + 2 * (448 + 256)


def test_dlrm_has_the_published_parameters():
    # Section 5 of the paper has 540 million for Kaggle with rows of 16; MLPerf's model has 24 billion (about 96 GB).
    kaggle = dlrm.build(data="kaggle", bottom=(512, 256, 64, 16), top=(512, 256))[1][0]
    assert round(count(kaggle["tables"]) / 1e6) == 540
    assert round(count(dlrm.build()[1][0]) / 1e9) == 24


def test_moe_has_about_the_published_parameters():
    # Table 9 of Fedus et al. has 7 billion for Switch-Base, almost all of them in 12 layers of 128 experts.
    assert round(count(moe.build()[1][0]) / 1e9) == 7
