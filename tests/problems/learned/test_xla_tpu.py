"""Kernels of XLA:TPU as a data set: from hand-written text in its format, and from the compiler where it is there."""

import importlib.util

import numpy as np
import pytest

from bbo_problems.learned.__main__ import train as train_command
from bbo_problems.learned.dataset import load, save
from bbo_problems.learned.kernels import NODE_FEATURES, OPCODES
from bbo_problems.learned.training import Recipe, log_mse, train
from bbo_problems.learned.xla_tpu import ON_CHIP, compiler, generate, graph_of
from bbo_problems.learned.xla_tpu_programs import FLAGS, SIZES, names, program, variant
from bbo_problems.tensor_compiler.calibration.kernels import kernels
from bbo_suite import UserError

LIBTPU = importlib.util.find_spec("libtpu") is not None


def config(cycles):
    window = f'"output_window_bounds":["64","1"],"estimated_cycles":"{cycles}","iteration_bounds":["2","1"]'
    return f'backend_config={{"window_config":{{{window},"buffering_level":"2"}}}}'


def scheduled(cycles):
    return f"""HloModule made_up, is_scheduled=true

%fused (a: f32[512,256], b: f32[512,256]) -> f32[512,256] {{
  %a = f32[512,256]{{1,0:T(8,128)}} parameter(0)
  %b = f32[512,256]{{1,0:T(8,128)S(1)}} parameter(1)
  %c = f32[512,256]{{1,0:T(8,128)}} add(%a, %b)
  ROOT %t = f32[512,256]{{1,0:T(8,128)S(1)}} tanh(%c)
}}

ENTRY %main (p: f32[512,256], q: f32[512,256]) -> f32[512,256] {{
  %p = f32[512,256]{{1,0:T(8,128)}} parameter(0)
  %q = f32[512,256]{{1,0:T(8,128)S(1)}} parameter(1)
  %f = f32[512,256]{{1,0:T(8,128)S(1)}} fusion(%p, %q), kind=kLoop, calls=%fused, {config(cycles)}
  ROOT %n = f32[512,256]{{1,0:T(8,128)}} negate(%f), {config(4000)}
}}
"""


def test_the_graph_of_a_kernel_says_what_is_in_which_memory():
    graph = graph_of(next(iter(kernels(scheduled(5000)))))
    assert [OPCODES[number] for number in graph.opcodes] == ["parameter", "parameter", "add", "tanh"]
    assert graph.edges.tolist() == [[0, 2], [1, 2], [2, 3]]
    columns = [NODE_FEATURES.index(name) for name in ("is read from memory", "is the result")]
    assert graph.nodes[:, columns].tolist() == [[1, 0], [ON_CHIP, 0], [0, 0], [0, ON_CHIP]]


@pytest.mark.slow
def test_equal_kernels_count_once_and_contradictions_are_counted(tmp_path):
    texts = {"gpt2~0.0": scheduled(5000), "gpt2~0.1": scheduled(6000), "bert~0.0": scheduled(5000)}

    def text(name, machine):
        if name not in texts:
            raise RuntimeError(name)
        return texts[name]

    data, report = generate(["gpt2~0", "rnn~0", "bert~0"], 2, "v5e", text, lambda name, count: None)
    assert len(data) == 2 and data.program.tolist() == [0, 0]
    assert (report.compiled, report.failed, report.found, report.contradicted) == (3, 2, 6, 1)
    assert (data.seconds * 1.5e9).round(-1).tolist() == pytest.approx([5000, 4000], rel=0.1)
    save(data, tmp_path / "data.npz")
    assert np.array_equal(load(tmp_path / "data.npz").seconds, data.seconds)
    with pytest.raises(UserError, match="no tiles and flags"):
        train_command(tmp_path / "data.npz", out=tmp_path / "model.npz")


def test_a_program_is_drawn_from_its_name_and_a_variant_has_flags():
    assert len(names(2)) == len(set(names(2))) and "gpt2~1" in names(2)
    first, again, other = (program(name)[1] for name in ("rnn~0", "rnn~0", "rnn~1"))
    assert str(first) == str(again) != str(other)
    function, _ = program("rnn~0")
    assert variant("rnn~0.0", function) == (function, {})
    drawn = [variant(f"rnn~0.{i}", function)[1] for i in range(1, 30)]
    assert set().union(*drawn) == set(FLAGS)


@pytest.mark.slow
@pytest.mark.parametrize("family", SIZES)
def test_every_model_can_be_traced(family):
    import jax

    function, arguments = program(f"{family}~0")
    assert jax.tree.leaves(jax.eval_shape(variant(f"{family}~0.1", function)[0], *arguments))


@pytest.mark.slow
@pytest.mark.skipif(not LIBTPU, reason="needs libtpu")
def test_the_compiler_gives_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    real = compiler(120.0)
    data, report = generate(["normalise~0"], 2, "v5e", real.text, lambda name, count: None)
    real.close()
    assert report.compiled == 2 and len(data) > 2 and (data.seconds > 0).all()
    assert train(data, Recipe(("graph",), log_mse, epochs=1), np.random.default_rng(0), lambda *_: None)
