"""Layers against their definitions, padding, and parameters that come from a file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bbo_problems.learned
import bbo_problems.pass_order
import bbo_strategies
from bbo_suite import nets
from bbo_suite.nets import (
    SEGMENT,
    MaxSage,
    SegmentedAttention,
    attention,
    averages,
    clipped_objective,
    padded,
    parameters,
    with_parameters,
)

KEY, WIDTH = jax.random.key(0), 16
RNG = np.random.default_rng(0)


@pytest.mark.slow
def test_the_order_of_nodes_does_not_matter_to_sage():
    layer = MaxSage(WIDTH, KEY)
    h, edges = RNG.normal(size=(30, WIDTH)).astype(np.float32), RNG.integers(0, 30, (70, 2))
    order = RNG.permutation(30)
    place = np.argsort(order)
    assert np.allclose(layer(h, edges)[order], layer(h[order], place[edges]), atol=1e-5)


@pytest.mark.slow
def test_sage_takes_the_largest_message_of_each_direction():
    layer = MaxSage(WIDTH, KEY)
    h, edges = RNG.normal(size=(4, WIDTH)).astype(np.float32), np.array([[0, 2], [1, 2]])
    down, up = np.split(np.maximum(np.asarray(jax.vmap(layer.pool)(h)), 0), 2, axis=1)
    below, above = np.zeros_like(h), np.zeros_like(h)
    below[2], above[0], above[1] = np.maximum(down[0], down[1]), up[2], up[2]
    joined = np.hstack([h, below, above])
    wanted = jax.vmap(layer.norm)(h + jax.nn.relu(jax.vmap(layer.update)(joined)))
    assert np.allclose(layer(h, edges), wanted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("known", [SEGMENT, 100])
def test_attention_is_that_of_jax(known):
    q, k, v = RNG.normal(size=(3, SEGMENT, 4, 8)).astype(np.float32)
    mask = np.arange(SEGMENT) < known
    wanted = jax.nn.dot_product_attention(q[None], k[None], v[None], mask=mask[None, None, None])[0]
    assert np.allclose(attention(q, k, v, mask if known < SEGMENT else None), wanted, atol=1e-5)


@pytest.mark.slow
def test_a_segment_sees_the_one_before_it_and_none_further():
    layer = SegmentedAttention(WIDTH, KEY)
    layer = eqx.tree_at(lambda own: own.gate.weight, layer, jnp.zeros_like(layer.gate.weight))  # which sees the mean
    h = RNG.normal(size=(3 * SEGMENT, WIDTH)).astype(np.float32)
    real = np.ones(len(h), bool)
    other = h.copy()
    other[:SEGMENT] += RNG.normal(size=(SEGMENT, WIDTH))
    change = np.abs(np.asarray(layer(h, real) - layer(other, real))).max(axis=1)
    assert change[SEGMENT : 2 * SEGMENT].min() > 0
    assert change[2 * SEGMENT :].max() == 0


@pytest.mark.slow
def test_neighbours_are_averaged_and_padding_is_none():
    below, above = averages(jnp.array([[[0, 2], [1, 2], [3, 3]]]), 3)
    assert np.allclose(below[0], [[0, 0, 0], [0, 0, 0], [0.5, 0.5, 0]])
    assert np.allclose(above[0], [[0, 0, 1], [0, 0, 1], [0, 0, 0]])


def test_padding_comes_after_the_rows():
    assert padded(np.array([[1, 2]]), 3, 7).tolist() == [[1, 2], [7, 7], [7, 7]]
    assert padded(np.array([True]), 2).tolist() == [True, False]


def test_the_objective_of_ppo_gains_nothing_from_leaving_the_range():
    logs = np.log(np.array([0.5, 0.9, 1.1, 2.0]))
    zeros = np.zeros(4)
    assert clipped_objective(logs, zeros, np.ones(4), 0.2) == pytest.approx([0.5, 0.9, 1.1, 1.2], rel=1e-5)
    assert clipped_objective(logs, zeros, -np.ones(4), 0.2) == pytest.approx([-0.8, -0.9, -1.1, -2.0], rel=1e-5)


@pytest.mark.parametrize(("library", "name"), [(jax, "jit"), (eqx, "filter_jit")])
def test_compiled_code_uses_one_thread(library, name, monkeypatch):
    """With several threads sums are split by the number of cores, and a run does not repeat on another machine."""
    monkeypatch.setattr(library, name, lambda function, **options: options)
    assert getattr(nets, name)(abs) == {"compiler_options": {"xla_cpu_multi_thread_eigen": False}}


@pytest.mark.parametrize("module", [bbo_strategies, bbo_problems.learned, bbo_problems.pass_order])
def test_no_other_code_of_networks_is_compiled_with_many_threads(module):
    files = list(Path(module.__path__[0]).rglob("*.py"))
    assert files and not [file for file in files if re.search(r"jax\.jit|eqx\.filter_jit", file.read_text())]


@pytest.fixture(scope="module")
def layer():
    return eqx.nn.Linear(3, 2, key=KEY)


@pytest.fixture(scope="module")
def shape():
    return eqx.filter_eval_shape(lambda key: eqx.nn.Linear(3, 2, key=key), KEY)


def test_parameters_come_back_as_they_were(layer, shape):
    back = with_parameters(shape, parameters(layer))
    assert np.array_equal(back.weight, layer.weight) and np.array_equal(back.bias, layer.bias)


@pytest.mark.parametrize(
    "damage",
    [
        {"1": None},
        {"2": np.zeros(1, np.float32)},
        {"0": np.zeros((3, 2), np.float32)},
        {"0": np.zeros((2, 3))},
        {"1": np.array([1, np.nan], np.float32)},
    ],
)
def test_parameters_of_another_model_are_refused(layer, shape, damage):
    arrays = {name: array for name, array in (parameters(layer) | damage).items() if array is not None}
    with pytest.raises(ValueError, match="array"):
        with_parameters(shape, arrays)


@pytest.mark.slow
def test_compiled_code_is_in_the_cache_of_the_user(tmp_path):
    code = "import jax\nimport bbo_suite.nets\nprint(jax.config.jax_compilation_cache_dir, jax.config.jax_platforms)"

    def settings(**more):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
        own = environment | {"XDG_CACHE_HOME": str(tmp_path), **more}
        return subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True).stdout.split()

    folder, platform = settings()
    assert Path(folder).is_dir() and Path(folder).is_relative_to(tmp_path / "bbo_suite") and platform == "cpu"
    assert settings(JAX_COMPILATION_CACHE_DIR="/elsewhere")[0] == "/elsewhere"


@pytest.mark.slow
@pytest.mark.parametrize(
    "damaged", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: bytes(len(data))]
)
def test_damaged_compiled_code_is_compiled_again(tmp_path, damaged):
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    code = "from bbo_suite.nets import jit\nprint(jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8))))"
    command = [
        sys.executable,
        "-c",
        f"import jax; jax.config.update('jax_persistent_cache_min_entry_size_bytes', -1)\n{code}",
    ]
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "512.0\n")
        entries = list(tmp_path.glob("*-cache"))
        for file in entries:
            file.write_bytes(damaged(file.read_bytes()))
    assert entries
