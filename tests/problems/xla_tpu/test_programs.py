"""Users' programs, and decisions inside them."""

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
