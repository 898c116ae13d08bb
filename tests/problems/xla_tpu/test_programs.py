"""Users' programs, decisions inside them, and compilers that fail.

A compiler that aborts, hangs or needs too much memory costs one candidate; contradicted estimates are not wins.
"""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

from bbo_problems.xla_tpu import blocks
from bbo_problems.xla_tpu.decisions import (
    Decisions,
    Value,
    decisions_of,
    decisions_of_row,
    space_of,
)
from bbo_problems.xla_tpu.marks import rewritten
from bbo_problems.xla_tpu.problem import XlaTpuProblem
from bbo_problems.xla_tpu.programs import describe, load
from bbo_suite import Status, UserError
from bbo_suite.core import libraries
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.registry import Registry

from ..candidates import names_of

pytestmark = pytest.mark.usefixtures("own_cache")

FILE = """
import jax
array = jax.ShapeDtypeStruct((8, 128), "float32")
def good(): return (lambda x: x + 1), (array,)
def takes(x): return x
def raises(): return 1 / 0
def leaves(): raise SystemExit(2)
def stops(): raise KeyboardInterrupt
def late(): return (lambda x: exit(3)), (array,)
def nothing(): pass
def alone(): return jax.numpy.tanh, array
def words(): return (lambda x: x), ("a",)
def branches(): return (lambda x: x if x.sum() > 0 else -x), (array,)
def silent(): return (lambda x: None), (array,)
number = 3
"""


def looped(x, w):
    """Two values with the same name, and a loop around one of them."""

    def step(x, _):
        x = checkpoint_name(jnp.tanh(checkpoint_name(x @ w, "sum")), "turn")
        return x, x.sum()

    x = checkpoint_name(x * 2, "turn")
    return jax.lax.scan(step, x, None, length=3)


ARGUMENTS = (jax.ShapeDtypeStruct((8, 16), "float32"), jax.ShapeDtypeStruct((16, 16), "float32"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("takes", "takes takes arguments; name a function without any: it takes no arguments and returns a pair"),
        ("raises", "raises raises ZeroDivisionError (line 6): division by zero"),
        ("leaves", "leaves raises SystemExit (line 7): 2"),
        ("stops", "stops raises KeyboardInterrupt (line 8)"),
        ("late", "JAX cannot trace what late returns: SystemExit (line 9): 3"),
        ("nothing", "nothing returns nothing; it takes no arguments"),
        ("alone", "alone returns tuple; it takes no arguments"),
        ("words", "words returns arguments that are not arrays"),
        ("branches", "JAX cannot trace what branches returns: TracerBoolConversionError (line 13)"),
        ("silent", "the function of silent does not return an array"),
        ("number", "mine.py defines no function 'number'"),
        ("none", "mine.py defines no function 'none'"),
    ],
)
def test_an_error_in_a_users_function_is_one_sentence(tmp_path, name, reason):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    with pytest.raises(ValueError) as error:
        describe(load(str(path), name), str(path), name)
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_cannot_be_imported_is_one_sentence(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import no_such_module")
    with pytest.raises(ValueError, match="cannot be imported"):
        load(str(path), "f")


def test_a_description_has_the_dataflow_and_does_not_depend_on_the_path(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(FILE)
    first, second = (
        describe(load(str(tmp_path / f / "mine.py"), "good"), str(tmp_path / f / "mine.py"), "good") for f in "ab"
    )
    assert first.digest == second.digest
    assert first.arguments == (Value("argument[0]", (8, 128), "float32"),) and first.results[0].shape == (8, 128)
    assert [mark.name for mark in first.marks] == ["add.1"] and first.flows == ((0, 1), (1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("barriers", [(), ("turn",), ("sum", "turn.2")])
def test_a_rewritten_function_computes_the_same(barriers):
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(a.shape, np.float32) for a in ARGUMENTS]
    again = rewritten(looped, barriers)
    for got, wanted in zip(jax.tree.leaves(again(*arguments)), jax.tree.leaves(looped(*arguments)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert str(jax.make_jaxpr(again)(*arguments)).count("optimization_barrier") == len(barriers)


def odd(x, w):
    """Every way in which JAX nests one function in another."""
    inner = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(x @ w, "hidden")))
    x = jax.lax.fori_loop(0, 3, lambda i, x: checkpoint_name(jax.nn.relu(x) + i, "counted"), inner(x))
    x = jax.lax.while_loop(lambda x: x.sum() < 100, lambda x: checkpoint_name(2 * jnp.abs(x) + 1, "doubled"), x)
    x = jax.lax.cond(x[0, 0] > 0, jnp.tanh, jax.nn.gelu, x)
    twice = jax.custom_vjp(lambda x: checkpoint_name(2 * x, "twice"))
    twice.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    return jax.grad(lambda x: (twice(x) ** 2).sum())(x), twice(x)


@pytest.mark.slow
def test_nested_functions_of_jax_compute_the_same():
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(a.shape, np.float32) for a in ARGUMENTS]
    names = [mark.name for mark in describe((odd, ARGUMENTS), "", "odd").marks]
    assert names == ["counted", "doubled", "twice"]
    again = rewritten(odd, names)
    for got, wanted in zip(again(*arguments), odd(*arguments), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert str(jax.make_jaxpr(again)(*arguments)).count("optimization_barrier") == 3


@pytest.mark.parametrize("name", XlaTpuProblem.instances)
def test_blocks_name_the_values_that_are_tuned(name):
    path = str(blocks.__file__)
    program = load(path, name)
    description = describe(program, path, name)
    assert 4 <= len(description.marks) <= 12 and not any("." in mark.name for mark in description.marks)
    decisions = decisions_of(description)
    space, default = space_of(decisions)
    assert decisions_of_row(decisions, default) == Decisions()
    rows = space.sample(20, np.random.default_rng(0))
    assert len({decisions_of_row(decisions, row) for row in rows}) == 20
    ends = {number for flow in description.flows for number in flow}
    assert len(ends) == len(description.arguments) + len(description.marks) + len(description.results)


class Fake(XlaTpuProblem):
    target = "fake_tpu_compiler:serve"


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr("bbo_problems.xla_tpu.problem.libtpu_version", lambda: "0")
    problem = Fake("mlp")
    return problem


def changed(problem, *names):
    row, known = problem.default_row(), names_of(problem.space)
    for place in map(known.index, names):
        row[place] = (row[place] + 1) % problem.space.sizes[place]
    return row


@pytest.mark.slow
def test_a_misbehaving_compiler_costs_one_candidate(fake):
    flags = (
        "xla_tpu_enforce_prefetch_fifo_order",  # aborts
        "xla_tpu_scavenge_vmem_for_fusions",  # hangs
        "xla_tpu_order_dot_after_layout",  # eats memory
        "xla_memory_scheduler",  # refuses
    )
    result = evaluate(fake, np.stack([changed(fake), *(changed(fake, flag) for flag in flags), changed(fake)]))
    assert result.status.tolist() == [0, 2, 4, 2, 2, 0]
    assert result.values[0] == result.values[-1] == 1000.0
    reasons = ["SIGABRT", "took more than 0.5 s to compile", "out of memory", "no such scheduler"]
    assert all(reason in result.reasons[i] for i, reason in enumerate(reasons, 1))


def test_a_win_that_the_roofline_contradicts_costs_what_the_roofline_says(fake):
    flags = ("xla_tpu_dot_dot_fusion", "xla_tpu_rwb_fusion", "xla_jf_conv_input_fusion", "xla_jf_conv_output_fusion")
    result = evaluate(fake, np.stack([changed(fake, flag) for flag in flags]))
    assert result.values.tolist() == [900.0, 1200.0, 1500.0, np.inf]
    assert result.status.tolist() == [Status.OK, Status.OK, Status.OK, Status.COMPILE_ERROR]
    assert result.reasons[0] == "roofline +0.0%, peak memory +20.0%"
    assert result.reasons[1].startswith("contradicted: estimated -50.0%, but roofline +20.0%")
    assert result.reasons[2] == "roofline +20.0%, peak memory +0.0%"
    assert "trips" in result.reasons[3]


def test_kernels_are_parts_and_what_a_contradicted_candidate_costs_beyond_them_is_one(fake):
    flags = ("xla_tpu_rwb_fusion", "xla_jf_conv_output_fusion")
    result = evaluate(fake, np.stack([changed(fake, flag) for flag in flags]), with_parts=True)
    assert result.values.tolist() == [1200.0, np.inf] and result.parts.starts.tolist() == [0, 3, 3]
    assert sorted(zip(result.parts.counts, result.parts.costs, strict=True)) == [(1, 100), (1, 700), (2, 200)]


@pytest.mark.slow
def test_a_program_that_kills_its_process_gives_one_sentence(fake):
    with pytest.raises(UserError, match="died of SIGABRT"):
        Fake.from_file(f"{__file__}:gone")


def test_pasted_code_is_python_and_names_every_decision(fake):
    row = changed(fake, "xla_tpu_dot_dot_fusion", "layout x", "barrier x")
    text = fake.paste(row)
    ast.parse(text)
    assert "900 cycles estimated, the default 1,000; roofline +0.0%, peak memory +20.0%" in text
    assert "'xla_tpu_dot_dot_fusion': 'false'" in text and "barriers = [\n    'x'" in text
    assert "# x: float32[8, 128]" in text and "libtpu 0" in text
    assert "# or for all programs of a process: LIBTPU_INIT_ARGS=--xla_tpu_dot_dot_fusion=false\n" in text
    assert "LIBTPU_INIT_ARGS" not in fake.paste(fake.default_row()) and "libtpu 0" in fake.usage()


@pytest.mark.slow
def test_machine_and_version_are_part_of_the_identity(fake, monkeypatch):
    assert Fake("mlp@v6e").fingerprint() != fake.fingerprint() == Fake("mlp@v5e").fingerprint()
    monkeypatch.setattr("bbo_problems.xla_tpu.problem.libtpu_version", lambda: "1")
    assert Fake("mlp").fingerprint() != fake.fingerprint()
    with pytest.raises(UserError, match="@v5e"):
        Fake("mlp@v9")


@pytest.mark.slow
def test_flags_alone_are_the_same_parameters_for_all_programs(fake):
    flags = [Fake("mlp#flags"), Fake("conv@v4#flags")]
    assert flags[0].space.digest() == flags[1].space.digest() and len(flags[0].space) < len(fake.space)
    assert set(names_of(fake.space)) > {"xla_tpu_rwb_fusion", "barrier x"}
    assert flags[0].space.name(len(flags[0].space) - 1).startswith("xla_")
    assert flags[0].fingerprint() != fake.fingerprint() and default_value(flags[0]) == 1000.0
    assert flags[0].structure().starts.tolist() == [0] * (len(flags[0].space) + 1)


def test_the_default_and_the_structure_fit_the_space(fake):
    assert default_value(fake) == 1000.0 and fake.request(fake.default_row()).flags == ()
    structure = fake.structure()
    names = names_of(fake.space)
    of = names.index("barrier x")
    neighbours = structure.neighbours[structure.starts[of] : structure.starts[of + 1]]
    assert {names[i] for i in neighbours} == {"layout argument", "layout x", "layout result"}
    assert structure.starts[-1] == len(structure.neighbours) and structure.features.shape[0] == len(names)
    assert len(structure.graph.node_features) == 3 and (structure.nodes[:of] <= 2).all()


@pytest.mark.parametrize("problem", ["xla-tpu/mlp", "pallas/matmul"])
def test_without_libtpu_the_family_is_listed_and_one_sentence_names_the_extra(problem, monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert problem in Registry().instances()
    with pytest.raises(UserError, match=r'needs libtpu, .* run: pip install "bbo_suite\[tpu\]"'):
        Registry().load(problem)
    with pytest.raises(UserError, match="names no function"):
        Registry().load("xla-tpu:none.py")
