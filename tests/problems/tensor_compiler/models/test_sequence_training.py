"""Steps of training lower the loss, and the optimizers' steps are those of their papers."""

import numpy as np
import pytest
from tiny_models import BERT, DLRM, GPT2, MOE, NMT, TRANSLATE, WAVERNN, tiny, zeros

from bbo_problems.tensor_compiler.models import bert, dlrm, gpt2, moe, nmt, sequence, translate, wavernn

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do

STEPS = 30

# Name: module, sizes, arguments that start from zero, step number that training starts at, the loss of an untrained
# network. The schedules of BERT and of the translating transformer begin with rates of almost nothing.
TRAINING = {
    "gpt2": (gpt2, GPT2 | {"depth": 1}, (1, 2), 0, np.log(11)),
    "bert": (bert, BERT | {"depth": 1}, (1, 2), 10_000, np.log(11) + np.log(2)),
    "translate": (translate, TRANSLATE | {"depth": 1}, (1, 2), 4000, np.log(11)),
    "nmt": (nmt, NMT | {"depth": 3}, (1, 2), 0, np.log(11)),
    "wavernn": (wavernn, WAVERNN | {"training": True}, (1, 2, 4), 0, 2 * np.log(256)),
    "dlrm": (dlrm, DLRM, (), 0, np.log(2)),
    "dlrm-adagrad": (dlrm, DLRM | {"adagrad": True}, (1,), 0, np.log(2)),
    "moe": (moe, MOE | {"depth": 2}, (1,), 0, np.log(11) + moe.BALANCE),
}
SLOW = {"bert", "nmt", "moe"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in TRAINING])
def test_training_lowers_the_loss_and_keeps_every_shape(name, train):
    module, sizes, empty, time, untrained = TRAINING[name]
    step, arguments = tiny(module, **sizes)
    arguments = [zeros(a) if i in empty else a for i, a in enumerate(arguments)]
    arguments = [np.float32(time) if getattr(a, "shape", None) == () else a for a in arguments]
    if module is dlrm:
        arguments[-1] = np.float32(np.arange(sizes["batch"]) % 2)
    losses = train(step, arguments, STEPS)
    assert losses[0] == pytest.approx(untrained, rel=0.5)
    assert losses[-1] < 0.99 * losses[0]


def test_adam_decays_matrices_separately_from_the_step():
    adam = sequence.Adam(rate=lambda time: 0.1 / time, epsilon=0.0, decay=0.5)
    weights = {"matrix": np.full((2, 2), 3.0, np.float32), "vector": np.full(2, 3.0, np.float32)}
    state = weights, zeros(weights), zeros(weights), np.float32(0)
    for rate in (0.1, 0.05):  # a gradient that stays the same makes a step of the rate's size
        before, state = state[0], adam.step(*state, {"matrix": -weights["matrix"], "vector": weights["vector"]})
        np.testing.assert_allclose(state[0]["matrix"], before["matrix"] * (1 - rate * 0.5) + rate, rtol=1e-5)
        np.testing.assert_allclose(state[0]["vector"], before["vector"] - rate, rtol=1e-5)
