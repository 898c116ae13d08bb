"""XLA's passes on tiny modules: what is counted, that results stay the same, and errors."""

import gzip
import subprocess
import sys
from importlib.metadata import version

import jax.numpy as jnp
import numpy as np
import pytest

import bbo_suite
from bbo_problems.pass_order.state import STATE
from bbo_problems.tensor_compiler.hlo.passes import LOWERINGS
from bbo_problems.xla_passes import worker
from bbo_problems.xla_passes.census import ACTIONS, OBJECTIVES, PIPELINE, SLOTS, census, kernels, moved_bytes
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import States
from bbo_suite import UserError
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.supervised import Service, Workers

from .xla_modules import BFLOAT, CHAIN, FLOW, computed

pytestmark = pytest.mark.usefixtures("own_cache")

BROKEN = [
    ("rubbish", "cannot be read as HLO"),
    ("HloModule m\n\nENTRY main {\n  ROOT a = f32[2]{0} add(b, c)\n}\n", "cannot be read as HLO"),
    ("HloModule m\n", "cannot be read as HLO"),
    ("", "is empty"),
]


def optimiser(text):
    return worker.Optimiser(text)


def cost(text, *actions):
    return optimiser(text).answer(actions, None)


def user(tmp_path, text, name="mine.hlo"):
    (tmp_path / name).write_text(text)
    return bbo_suite.problem(f"xla-passes:{tmp_path / name}")


# What is counted


def test_only_operations_that_run_are_counted():
    """Two calls of divide(broadcast), with the calls; then two exponentials and a multiply."""
    counts = census(optimiser(CHAIN).compiler.canonical(CHAIN))
    assert counts == {"call": 2, "divide": 2, "broadcast": 2, "exponential": 2, "multiply": 1}


def test_loops_and_branches_count_and_functions_of_reductions_do_not():
    counts = census(optimiser(FLOW).compiler.canonical(FLOW))
    assert counts["sine"] == counts["cosine"] == counts["while"] == counts["conditional"] == counts["reduce"] == 1
    assert counts["negate"] == counts["abs"] == counts["exponential"] == counts["compare"] == 1
    assert counts["add"] == 1, "that of the loop, not that of the reduction"
    assert not set(counts) & {"parameter", "constant", "tuple", "get-tuple-element"}


def test_operations_with_tuples_in_tuples_are_counted():
    lines = """ENTRY main {
  tmp_0 = token[] after-all()
  tmp_1 = ((f32[8]{0}, f32[8]{0:T(8)}), token[]) infeed(tmp_0)
  tmp_2 = (f32[8]{0:T(8)}, (f32[8]{0}, (s32[], s32[]))) custom-call(tmp_1), custom_call_target="a = (b) c("
  ROOT tmp_3 = ((f32[8]{0}, f32[8]{0:T(8)}), token[]) tuple(tmp_1)
}"""
    assert census(f"HloModule m\n{lines}") == {"after-all": 1, "infeed": 1, "custom-call": 1}


def test_passes_do_what_their_names_say():
    assert cost(CHAIN) == 9
    assert cost(CHAIN, "call-inliner") == 7
    assert cost(CHAIN, "call-inliner", "algsimp") == 6, "exp(a) exp(b) is exp(a + b)"
    assert cost(CHAIN, "call-inliner", "cse") == 4
    assert cost(CHAIN, PIPELINE) <= 4


def test_lowerings_that_a_sequence_leaves_out_run_after_it():
    made = optimiser(BFLOAT)
    number, kinds, *_ = made.answer((STATE, ("dce",)), None)
    assert number > sum(kinds.values()) and number == made.answer((), None)
    assert worker.to_lower((PIPELINE,)) == () == worker.to_lower(LOWERINGS)
    assert worker.to_lower(("cse", *LOWERINGS[1:])) == ("dot_decomposer",)
    module = made.states.module(("dce", *worker.to_lower(("dce",))))
    assert "bf16[4,3]{1,0} tanh" not in module and census(module).total() == number


FUSED = """HloModule m

ENTRY main {
  tmp_0 = f32[4,2]{1,0} parameter(0)
  tmp_1 = bf16[4,2]{1,0} fusion(f32[4,2]{1,0} tmp_0), kind=kLoop, calls=
  {
    tmp_0 = f32[4,2]{1,0} parameter(0)
    ROOT tmp_1 = bf16[4,2]{1,0} convert(f32[4,2]{1,0} tmp_0)
  }
  tmp_2 = bf16[8]{0} bitcast(bf16[4,2]{1,0} tmp_1)
  ROOT tmp_3 = (f32[], pred[3]{0}) fusion(bf16[8]{0} tmp_2), kind=kLoop, calls=
  {
    ROOT tmp_0 = f32[] parameter(0)
  }
}
"""


def test_kernels_and_their_bytes_are_counted_after_fusion():
    assert kernels(FUSED) == 2
    assert moved_bytes(FUSED) == (4 * 2 * 4 + 4 * 2 * 2) + (8 * 2 + 4 + 3)
    made = {name: worker.Optimiser(CHAIN, name).answer((PIPELINE,), None) for name in OBJECTIVES}
    assert made == {"operations": 4, "computations": 1, "kernels": 1, "bytes": 32}


def test_computations_are_parts_and_add_up():
    made = optimiser(FLOW)
    number, parts = made.answer(("parts", ("dce",)), None)
    assert number == cost(FLOW, "dce") == sum(row[-1] for row in parts)
    assert sorted(row[-1] for row in parts) == [1, 1, 2, 3, 3], "condition and left; right; body and entry"
    assert len({content for _, content, _, _ in parts}) == 5


# What is computed stays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shapes"),
    [(CHAIN, [(4,)]), (FLOW, [(8,), None]), (BFLOAT, [(4, 6), (3, 6), (3,)])],
    ids=["chain", "flow", "bfloat"],
)
def test_modules_are_ready_for_code_generation_and_compute_the_same(text, shapes):
    rng = np.random.default_rng(4)
    numbers = [np.int32(1) if shape is None else rng.normal(size=shape).astype(np.float32) for shape in shapes]
    inputs = [x.astype(jnp.bfloat16) if text is BFLOAT and x.ndim == 2 else x for x in numbers]
    wanted = computed(text, inputs)
    made = optimiser(text)
    sequences = [(), (PIPELINE,), *(tuple(rng.choice(ACTIONS[1:], 6)) for _ in range(4))]
    for actions in sequences:
        module = made.states.module((*actions, *worker.to_lower(actions)))
        for got, right in zip(computed(module, inputs, lowered=True), wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=2e-2, atol=2e-3, err_msg=str(actions))


# Nothing is run twice, and nothing depends on that


@pytest.mark.slow
def test_no_cost_depends_on_earlier_evaluations():
    rng = np.random.default_rng(2)
    sequences = [tuple(map(str, rng.choice(ACTIONS[1:], 5))) for _ in range(6)]
    warm = optimiser(BFLOAT)
    together = [warm.answer(sequence, None) for sequence in [*sequences, *sequences]][len(sequences) :]
    assert together == [cost(BFLOAT, *sequence) for sequence in sequences]


def counting(text, action):
    """Return a step over texts that only count: `a` and `b` commute, `n` does nothing, `x` fails after an `a`."""
    counting.steps += 1
    if action == "x" and "a" in text:
        raise RuntimeError("x after a")
    letters = text.removeprefix("m\n") + ("" if action == "n" else action)
    return "m\n" + "".join(sorted(letters))


def test_equal_prefixes_and_equal_modules_are_shared():
    counting.steps = 0
    states = States("m\n", counting)
    states.after("abab")
    assert counting.steps == 4
    states.after("abab")
    states.after("abb")
    assert counting.steps == 5
    states.after("ba")
    assert counting.steps == 7
    states.after("baab")  # ba is ab, and after ab all is known
    assert counting.steps == 7
    states.after("nnnn")
    assert counting.steps == 8
    for _ in range(2):
        with pytest.raises(RuntimeError, match="x after a"):
            states.after("ax")
    assert counting.steps == 9


def test_the_number_of_remembered_steps_is_bounded(monkeypatch):
    monkeypatch.setattr("bbo_problems.xla_passes.worker.STEPS", 3)
    states = States("m\n", counting)
    for letters in ("abcd", "bcda", "dcba"):
        assert states.module(letters) == "m\nabcd"
        states.after(letters)


# The task


@pytest.mark.slow
def test_the_default_is_a_candidate_and_a_fixed_point():
    problem = bbo_suite.problem("xla-passes/gpt2-l1")
    assert problem.request(problem.default_row()) == (PIPELINE,) and problem.unit == "operations"
    assert len(problem.space) == SLOTS
    twice = problem.default_row()
    twice[1] = twice[0]
    short = problem.default_row()
    short[:4] = [ACTIONS.index(name) for name in ("algsimp", "reshape-mover", "cse", PIPELINE)]
    values = evaluate(problem, np.stack([problem.default_row(), twice, short])).values
    assert values[0] == values[1] > values[2]  # 913 and 863 with jaxlib 0.10.2
    assert problem.paste(short).partition("  # ")[0] == "algsimp,reshape-mover,cse,pipeline"
    assert "jaxlib" in problem.facts()["compiler"]


def test_another_version_is_another_problem(tmp_path, monkeypatch):
    here = user(tmp_path, CHAIN)
    assert here.fingerprint() != user(tmp_path, FLOW, "flow.hlo").fingerprint()
    monkeypatch.setattr("bbo_problems.packages.version", lambda name: version(name) + "1")
    assert user(tmp_path, CHAIN, "same.hlo").fingerprint() != here.fingerprint()


@pytest.mark.slow
def test_a_users_file_is_read_plain_gzipped_or_as_stablehlo(tmp_path):
    plain = user(tmp_path, CHAIN)
    (tmp_path / "b.hlo.gz").write_bytes(gzip.compress(CHAIN.encode()))
    packed = bbo_suite.problem(f"xla-passes:{tmp_path / 'b.hlo.gz'}")
    assert plain.fingerprint() == packed.fingerprint() and default_value(packed) <= 4
    body = "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = stablehlo.add %x, %x : tensor<2xf32>"
    stablehlo = f"module @m {{\n  {body}\n  return %y : tensor<2xf32>\n}}\n}}"
    assert default_value(user(tmp_path, stablehlo, "s.mlir")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["{0,1}", "{1,0:T(8,128)}"])
def test_a_module_whose_arrays_have_layouts_costs_what_it_costs_without_them(tmp_path, layout):
    """As XLA prints it after layout assignment: the layouts of the entry are in its first line."""
    plain = "HloModule m\n\nENTRY e {\n  p = f32[8,16] parameter(0)\n  ROOT r = f32[8,16] add(p, p)\n}\n"
    assert default_value(user(tmp_path, plain.replace("16] ", f"16]{layout} "))) == 1


@pytest.mark.slow
def test_neither_the_task_nor_a_child_in_this_process_touches_other_compilations(tmp_path):
    import jax

    cost(CHAIN, PIPELINE)
    assert float(jax.jit(lambda x: x * 3 + 1)(2.0)) == 7
    code = "import sys, bbo_problems.xla_passes.problem; print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# What goes wrong


@pytest.mark.slow
@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_files_that_cannot_be_used_give_one_sentence(tmp_path, text, words):
    with pytest.raises(UserError, match=words) as caught:
        default_value(user(tmp_path, text))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_files_that_cannot_be_read_give_one_sentence(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        bbo_suite.problem(f"xla-passes:{tmp_path / 'none.hlo'}")
    (tmp_path / "cut.hlo.gz").write_bytes(gzip.compress(CHAIN.encode() * 99)[:-9])
    with pytest.raises(UserError, match="truncated or damaged"):
        bbo_suite.problem(f"xla-passes:{tmp_path / 'cut.hlo.gz'}")


@pytest.mark.slow
def test_hostile_text_runs_no_code(tmp_path):
    """A call of Python stays a call: passes neither run nor fold an unknown call."""
    witness = tmp_path / "witness"
    target = 'custom_call_target="xla_ffi_python_cpu_callback"'
    text = (
        "HloModule h, entry_computation_layout={()->f32[]}\n\nENTRY main {\n"
        f'  c = f32[] custom-call(), {target}, backend_config="open({str(witness)!r},chr(119))"\n'
        "  ROOT r = f32[] add(c, c)\n}\n"
    )
    problem = user(tmp_path, text)
    assert default_value(problem) == 2
    assert not witness.exists()


@pytest.mark.slow
def test_a_compiler_that_dies_fails_or_hangs_costs_one_candidate_each(tmp_path, monkeypatch):
    (tmp_path / "fault_worker.py").write_text(FAULTS)
    monkeypatch.syspath_prepend(tmp_path)
    workers = Workers(Service("fault_worker:serve", (CHAIN,), seconds=3))
    answers = workers.map([(), ("dce",), ("cse",), ("algsimp",), ()])
    workers.close()
    assert [answer.failure for answer in answers] == ["", "died", "raised", "timeout", ""]
    assert answers[0].value == answers[4].value == 9
    assert all(
        word in answer.reason for word, answer in zip(("SIGABRT", "cse failed", "3 s"), answers[1:4], strict=True)
    )


FAULTS = """
import os, time
from bbo_problems.xla_passes import worker
def serve(text):
    made = worker.Optimiser(text)
    run = made.compiler.run
    def faulty(text, passes):
        if tuple(passes) == ("dce",):
            os.abort()
        if tuple(passes) == ("cse",):
            raise RuntimeError("cse failed")
        if tuple(passes) == ("algsimp",):
            time.sleep(60)
        return run(text, passes)
    made.compiler.run = faulty
    return made.answer
"""


@pytest.mark.slow
def test_a_short_text_that_grows_without_bound_is_refused(tmp_path):
    """Forty functions, each of which calls the previous one twice."""
    first = "f0 {\n  x = f32[] parameter(0)\n  ROOT y = f32[] sine(x)\n}\n"
    twice = "x = f32[] parameter(0)\n  a = f32[] call(x), to_apply=f{0}\n  ROOT b = f32[] call(a), to_apply=f{0}"
    others = "\n".join(f"f{i} {{\n  {twice.replace('{0}', str(i - 1))}\n}}\n" for i in range(1, 40))
    entry = "ENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f39\n}\n"
    problem = user(tmp_path, f"HloModule endless\n\n{first}\n{others}\n{entry}")
    with pytest.raises(UserError, match="cannot start") as caught:
        default_value(problem)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("bert-l1", marks=pytest.mark.thorough),
        "gpt2-l1",
        pytest.param("resnet-10", marks=pytest.mark.thorough),
    ],
)
def test_every_action_runs_on_every_model_and_the_default_is_a_fixed_point(name):
    made = worker.Optimiser(gzip.decompress(named(name).read_bytes()).decode())
    assert made.answer((PIPELINE,), None) == made.answer((PIPELINE, PIPELINE), None)
    for action in ACTIONS[1:]:
        assert made.answer((action,), None) > 0
