"""The real compiler on the smallest block and the smallest kernel."""

import jax
import numpy as np
import pytest

from bbo_suite import Moves, Status, UserError
from bbo_suite.core.evaluation import evaluate
from bbo_suite.registry import Registry

from ..candidates import names_of

pytestmark = pytest.mark.usefixtures("own_cache")

pytest.importorskip("libtpu")

MINE = """
import jax
import jax.numpy as jnp

def sums():
    def f(x, w):
        return jnp.tanh(x @ w).sum(0)
    return f, (jax.ShapeDtypeStruct((64, 128), "bfloat16"), jax.ShapeDtypeStruct((128, 128), "bfloat16"))
"""


@pytest.fixture(scope="module")
def lstm(tmp_path_factory):
    """Return the problem, loaded without a cache."""
    problem = Registry().load("xla-tpu/lstm")
    problem.leave_cache()
    return problem


def place(problem, name):
    return names_of(problem.space).index(name)


def test_decisions_reach_the_compiler_and_invalid_ones_are_compile_errors(lstm):
    rows = np.repeat(lstm.default_row()[None], 5, axis=0)
    columns = [place(lstm, name) for name in ("layout argument[0]", "barrier cell", "xla_jf_conv_input_fusion")]
    rows[[1, 2, 3], columns] = [lstm.space.values(columns[0]).index((2, 0, 1)), 1, 1]
    result = evaluate(lstm, rows)
    assert (result.status == Status.OK).all(), result.reasons
    assert result.values[0] == result.values[4] > 24 * 1000
    assert len(set(result.values.tolist())) == 4
    assert result.reasons[0] == "roofline +0.0%, peak memory +0.0%"
    request = lstm.request(lstm.default_row())
    wrong = type(request)(flags=(("xla_tpu_no_such_flag", "true"),))
    with pytest.raises(UserError, match="No such compile option"):
        lstm.query(wrong)


def test_estimates_do_not_depend_on_the_process_and_facts_are_given(lstm):
    rows = Moves(lstm.space).mutate(np.repeat(lstm.default_row()[None], 3, 0), np.full(3, 2), np.random.default_rng(1))
    first = evaluate(lstm, rows)
    other = Registry().load("xla-tpu/lstm")
    other.leave_cache()
    other.workers = 2
    again = evaluate(other, rows[::-1])
    assert np.array_equal(first.values, again.values[::-1])
    facts = lstm.facts()
    assert "libtpu" in facts["compiler"] and "cycles" in facts["roofline of the default"]
    assert lstm.estimate(lstm.default_row()).cycles == evaluate(lstm, lstm.default_row()[None]).values[0]


def test_pasted_code_compiles_like_the_candidate(lstm, monkeypatch):
    row = lstm.default_row()
    row[place(lstm, "layout argument[3]")] = 2
    row[place(lstm, "layout result[1]")] = 2
    row[place(lstm, "barrier gates")] = 1
    code = lstm.paste(row)
    assert "'gates'" in code and "(1, 0)" in code
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda lowered, compiler_options: (lowered, compiler_options))
    known = {}
    exec(code, known)  # on the CPU: what it gives the compiler
    lowered, options = known["compiled"]
    assert options == {} and lowered.as_text().count("optimization_barrier") == 1


def test_a_users_function_can_be_tuned(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    problem = Registry().load(f"xla-tpu:{path}:sums@v4")
    assert problem.facts()["machine"] == "one core of v4" and len(problem.space) > 25
    result = evaluate(problem, problem.default_row()[None])
    assert 0 < result.values[0] < 100_000
    assert "from mine import sums" in problem.paste(problem.default_row())


def test_tiles_of_a_kernel_cost_code_and_invalid_ones_are_compile_errors():
    problem = Registry().load("pallas/matmul")
    rows = np.repeat(problem.default_row()[None], 5, axis=0)
    names = names_of(problem.space)
    for i, tiles in enumerate([(512, 512, 512), (512, 64, 512), (2048, 2048, 128), (128, 128, 128), (256, 1024, 512)]):
        for name, size in zip(("rows", "columns", "depth"), tiles, strict=True):
            rows[i, names.index(name)] = problem.space.values(names.index(name)).index(size)
    result = evaluate(problem, rows)
    assert result.status.tolist() == [0, 2, 2, 0, 0]
    assert "block shape" in result.reasons[1] and "vmem" in result.reasons[2]
    assert result.values[3] > result.values[0] > 1e6 and result.values[3] % 4096 == 0
    assert "'rows': 512" in problem.paste(rows[0])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["matmul", "attention"])
def test_kernels_compute_what_they_should(kernel):
    from jax.experimental.pallas import tpu as pltpu

    from bbo_problems.xla_tpu import kernels

    tiles = {"rows": 1024, "columns": 1024, "depth": 1024, "first": "columns", "limit": 64}
    tiles |= {"heads": 4, "queries": 1024, "keys": 512}
    with pltpu.force_tpu_interpret_mode():  # which a kernel notes when it is made
        made = getattr(kernels, kernel)(tiles)
    rng = np.random.default_rng(0)
    arguments = [jax.numpy.asarray(rng.standard_normal(a.shape, np.float32), a.dtype) for a in made.arguments]
    with pltpu.force_tpu_interpret_mode():
        got = np.asarray(made.call(*arguments), np.float32)
    wide = [np.asarray(a, np.float32) for a in arguments]
    if kernel == "matmul":
        wanted = wide[0] @ wide[1]
    else:
        scores = np.einsum("hqd,hkd->hqk", *wide[:2]) * kernels.WIDTH**-0.5
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = np.einsum("hqk,hkd->hqd", shares / shares.sum(-1, keepdims=True), wide[2])
    assert np.abs(got - wanted).max() < 0.02 * np.abs(wanted).max()
