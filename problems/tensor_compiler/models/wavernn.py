"""WaveRNN (Kalchbrenner et al., Efficient Neural Audio Synthesis, 2018), training and sampling.

A GRU whose state has two halves gives the coarse and then the fine 8 bits of each 16-bit sample. The paper does not
specify the conditioning; here each frame of a mel spectrogram is projected and added to the gates of its samples.
Frames and the samples of a frame are scanned in nested loops. Training is by Adam, with weights in float32 and compute
in bfloat16; inference has all weights in bfloat16.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, cross_entropy, dense, dense_weights, softmax
from .sequence import Adam, abstract_as

LEVELS = 256  # of each half of a sample
HALVES = ("coarse", "fine")
ADAM = Adam(rate=2e-4)


def _half_weights(half: int, inputs: int) -> Tree:
    """The abstract weights of the gates' inputs and the output layers of one half of the state."""
    return {
        "inputs": dense_weights(inputs, 3 * half),
        "hidden": dense_weights(half, half),
        "output": dense_weights(half, LEVELS),
    }


def _weights(units: int, bands: int) -> Tree:
    """The abstract weights of the network; the fine half also sees the coarse bits of its own sample."""
    return {
        "recurrent": abstract(units, 3 * units),
        "conditioning": dense_weights(bands, 3 * units),
        "coarse": _half_weights(units // 2, 2),
        "fine": _half_weights(units // 2, 3),
    }


def _scaled(bits: jax.Array) -> jax.Array:
    """Bits from 0 to 255 scaled to -1 to 1: [...] of int32 -> [...] of bfloat16."""
    return (bits.astype(jnp.float32) * (2 / (LEVELS - 1)) - 1).astype(jnp.bfloat16)


def _split(gates: jax.Array) -> Tree:
    """The gates of each half of the state: [batch, 3 * units] -> [batch, 3, units / 2] each."""
    parts = gates.reshape(gates.shape[0], 3, 2, -1)
    return {name: parts[:, :, number] for number, name in enumerate(HALVES)}


def _gates(weights: Tree, state: Tree, conditioning: jax.Array) -> Tree:
    """The gates of a sample from the last state, and from the conditioning, [batch, 3 * units]."""
    recurrent = jnp.concatenate([state[name] for name in HALVES], axis=-1) @ weights["recurrent"]
    return {"recurrent": _split(recurrent), "conditioning": _split(conditioning)}


def _gru(half: Tree, gates: Tree, name: str, state: jax.Array, inputs: list[jax.Array]) -> jax.Array:
    """Half of the state after one sample: [batch, units / 2] and inputs of [batch] each -> [batch, units / 2]."""
    recurrent = gates["recurrent"][name]
    inputs_gates = (
        dense(jnp.stack(inputs, axis=-1), half["inputs"]).reshape(recurrent.shape) + gates["conditioning"][name]
    )
    update = lax.logistic(recurrent[:, 0] + inputs_gates[:, 0])
    reset = lax.logistic(recurrent[:, 1] + inputs_gates[:, 1])
    candidate = jnp.tanh(reset * recurrent[:, 2] + inputs_gates[:, 2])
    return update * state + (1 - update) * candidate


def _logits(half: Tree, state: jax.Array) -> jax.Array:
    """Scores of the 256 values of the bits from half of the state: [..., units / 2] -> [..., 256]."""
    return dense(jnp.maximum(dense(state, half["hidden"]), 0), half["output"])


def _drawn(logits: jax.Array, chance: jax.Array) -> jax.Array:
    """Bits drawn with uniform random numbers: [batch, 256] and [batch] -> [batch] of int32.

    Cumulative probabilities are a product with a triangular matrix.
    """
    sums = softmax(logits) @ jnp.triu(jnp.ones((LEVELS, LEVELS), jnp.float32))
    return jnp.minimum((sums < chance[:, None]).sum(axis=-1), LEVELS - 1)


def _draw(weights: Tree, conditioning: jax.Array, carry: Tree, chances: jax.Array) -> tuple[Tree, jax.Array]:
    """The next sample: chances [batch, 2] -> the state and the sample's bits, and the latter as [batch, 2] of int32."""
    state = carry["state"]
    gates = _gates(weights, state, conditioning)
    inputs = [_scaled(carry["sample"][:, number]) for number in range(2)]
    following, bits = {}, []
    for number, name in enumerate(HALVES):
        following[name] = _gru(weights[name], gates, name, state[name], inputs)
        bits.append(_drawn(_logits(weights[name], following[name]), chances[:, number]))
        inputs = [*inputs, _scaled(bits[-1])]
    sample = jnp.stack(bits, axis=-1)
    return {"state": following, "sample": sample}, sample


def _draw_frame(weights: Tree, carry: Tree, frame: tuple[jax.Array, jax.Array]) -> tuple[Tree, jax.Array]:
    """The samples of a frame: its conditioning [batch, 3 * units] and chances [hop, batch, 2] -> [hop, batch, 2]."""
    conditioning, chances = frame
    return lax.scan(partial(_draw, weights, conditioning), carry, chances)


def draw(weights: Tree, carry: Tree, mel: jax.Array, chances: jax.Array) -> tuple[Tree, jax.Array]:
    """The state and the last sample, and all samples' coarse and fine bits: [frames, hop, batch, 2] of int32.

    The spectrogram is [frames, batch, bands], the uniform random numbers are [frames, hop, batch, 2].
    """
    return lax.scan(partial(_draw_frame, weights), carry, (dense(mel, weights["conditioning"]), chances))


def _follow(weights: Tree, conditioning: jax.Array, state: Tree, samples: Tree) -> tuple[Tree, Tree]:
    """The state at a sample that is known, as is the last one: [batch, 2] of bfloat16 each."""
    gates = _gates(weights, state, conditioning)
    inputs = [samples["last"][:, 0], samples["last"][:, 1], samples["now"][:, 0]]
    following = {
        "coarse": _gru(weights["coarse"], gates, "coarse", state["coarse"], inputs[:2]),
        "fine": _gru(weights["fine"], gates, "fine", state["fine"], inputs),
    }
    return following, following


def _follow_frame(weights: Tree, state: Tree, frame: tuple[jax.Array, Tree]) -> tuple[Tree, Tree]:
    """The states at the samples of a frame: its conditioning [batch, 3 * units] and samples [hop, batch, 2]."""
    conditioning, samples = frame
    return lax.scan(partial(_follow, weights, conditioning), state, samples)


def _loss(weights: Tree, state: Tree, mel: jax.Array, samples: jax.Array) -> tuple[jax.Array, Tree]:
    """The cross-entropy of the bits of all samples but the first, and the last state, for the next part."""
    frames = mel.shape[0]
    weights = jax.tree.map(lambda weight: weight.astype(jnp.bfloat16), weights)
    by_frame = (frames, -1, *samples.shape[1:])
    known = {"last": _scaled(samples[:-1]).reshape(by_frame), "now": _scaled(samples[1:]).reshape(by_frame)}
    conditioning = dense(mel, weights["conditioning"])
    last, states = lax.scan(partial(_follow_frame, weights), state, (conditioning, known))
    labels = samples[1:].reshape(by_frame)
    losses = [cross_entropy(_logits(weights[n], states[n]), labels[..., i]) for i, n in enumerate(HALVES)]
    return losses[0] + losses[1], last


def train_step(
    weights: Tree, first: Tree, second: Tree, time: jax.Array, state: Tree, mel: jax.Array, samples: jax.Array
) -> tuple[Tree, Tree, Tree, jax.Array, Tree, jax.Array]:
    """Weights, moments and step number after one step, the state after the samples, and the loss on them before it.

    The spectrogram is [frames, batch, bands] of bfloat16, the samples' bits are [1 + frames * hop, batch, 2] of int32.
    """
    (loss, state), gradients = jax.value_and_grad(_loss, has_aux=True)(weights, state, mel, samples)
    return *ADAM.step(weights, first, second, time, gradients), state, loss


def build(
    *,
    batch: int = 1,
    frames: int = 80,
    hop: int = 300,
    units: int = 896,
    bands: int = 80,
    training: bool = False,
) -> Program:
    """Sampling of frames of sound, or a training step on them; by default 80 frames, a second at 24 kHz."""
    weights = _weights(units, bands)
    mel = abstract(frames, batch, bands, dtype=jnp.bfloat16)
    state = {name: abstract(batch, units // 2, dtype=jnp.bfloat16) for name in HALVES}
    if training:
        samples = abstract(1 + frames * hop, batch, 2, dtype=jnp.int32)
        return train_step, (weights, weights, weights, abstract(), state, mel, samples)
    carry = {"state": state, "sample": abstract(batch, 2, dtype=jnp.int32)}
    return draw, (abstract_as(weights, jnp.bfloat16), carry, mel, abstract(frames, hop, batch, 2))
