"""Whole pipelines: nesting, costs that repeat, crashes that cost one candidate, and what is needed."""

import numpy as np
import pytest
from llvmlite.binding import llvm_version_info

from bbo_problems.llvm import ir
from bbo_problems.llvm.machine_code import instructions
from bbo_problems.llvm_pipelines import library
from bbo_problems.llvm_pipelines.passes import ACTIONS, CLOSE, FAST, SLOTS, SMALL, pipelines
from bbo_problems.llvm_pipelines.problem import PipelineProblem
from bbo_problems.programs_c import LARGE, SEEDS, large_names
from bbo_suite import Status, UserError
from bbo_suite.core.evaluation import evaluate
from bbo_suite.supervised import Service, Workers

pytestmark = pytest.mark.usefixtures("own_cache")


WHY_NOT = PipelineProblem.available()
needs_llvm = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
CLANG = {"compress": 719, "digest": 1062, "json": 1004, "matrices": 868, "script": 636, "store": 766}
"""What clang 22.1.8 writes for `-Oz -S -emit-llvm`, counted with `grep -cE '^  [^] ]'`."""
LICM, ADCE, INLINE, GLOBAL = "licm<allowspeculation>", "adce", "inline", "globalopt"


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        ((), []),
        ((CLOSE,), []),
        ((SMALL,), [SMALL]),
        ((ADCE, "dce"), ["function(adce,dce)"]),
        ((ADCE, CLOSE, "dce"), ["function(adce),function(dce)"]),
        ((LICM, "lnicm", "indvars", ADCE), [f"function(loop-mssa({LICM},lnicm),loop(indvars),adce)"]),
        ((INLINE, ADCE, LICM, "argpromotion"), [f"cgscc(inline,function(adce,loop-mssa({LICM})),argpromotion)"]),
        ((ADCE, INLINE), ["function(adce),cgscc(inline)"]),
        ((INLINE, GLOBAL, ADCE), ["cgscc(inline),globalopt,function(adce)"]),
        ((ADCE, SMALL, GLOBAL, SMALL), ["function(adce)", SMALL, GLOBAL, SMALL]),
    ],
)
def test_neighbours_share_managers_and_managers_nest(actions, wanted):
    assert pipelines(actions) == wanted


def test_large_programs_have_ten_functions_and_more():
    for name in large_names():
        text = ir.shipped(name)
        assert text.count("\ndefine ") >= 10 and 300 <= CLANG[name] <= 3000 and instructions(text) > CLANG[name]
        assert "u64 run(u64 seed)" in (LARGE / f"{name}.c").read_text()


def test_without_the_library_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(library, "PACKAGE", "no-such-package")
    monkeypatch.setattr(library, "NAMES", ("libNone.so",))
    with pytest.raises(UserError, match="pip install 'no-such-package"):
        PipelineProblem("json")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    problem = PipelineProblem("script")
    problem.leave_cache()
    return problem


def row(problem, *actions):
    config = np.zeros(SLOTS, np.int64)
    config[: len(actions)] = [ACTIONS.index(action) for action in actions]
    return config


@needs_llvm
@pytest.mark.skipif(llvm_version_info[:2] != (22, 1), reason="the counts are of LLVM 22.1")
def test_the_default_gives_the_same_count_as_clang(script):
    assert evaluate(script, script.default_row()[None]).values[0] == CLANG["script"]
    assert script.request(script.default_row()) == (SMALL,) and len(script.space) == SLOTS


@needs_llvm
def test_costs_do_not_depend_on_order_parts_add_up_and_the_command_is_pasted(script):
    rows = np.stack(
        [
            row(script, SMALL),
            row(script, ADCE, INLINE, "sroa<modify-cfg>", LICM, SMALL, "gvn-hoist"),
            row(script, SMALL, SMALL, "slsr", GLOBAL),
            row(script),
        ]
    )
    first = evaluate(script, rows)
    assert np.array_equal(evaluate(script, rows[::-1]).values[::-1], first.values) and len(set(first.values)) > 2
    told = evaluate(script, rows, with_parts=True)
    assert np.array_equal(told.values, first.values) and (np.diff(told.parts.starts) > 3).all()
    assert script.paste(rows[2]).endswith(
        '-passes="forceattrs,default<O2>,default<O2>,function(slsr),globalopt" script.ll'
    )


TINY = "define i64 @run(i64 %x) {\n  ret i64 %x\n}\n"


@needs_llvm
def test_the_command_names_this_machine_if_the_module_names_none(tmp_path):
    """Without a machine, `opt` refuses this pass."""
    (tmp_path / "own.ll").write_text(TINY)
    own = PipelineProblem.from_file(str(tmp_path / "own.ll"))
    assert own.paste(row(own, "expand-memcmp")).startswith("opt -S -mtriple=")


@needs_llvm
def test_a_pipeline_that_hangs_or_miscompiles_fails_alone(monkeypatch, tmp_path):
    """A fake LLVM hangs in one pass, and others return another program or one that does not end."""
    (tmp_path / "faulty_worker.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(tmp_path)
    arguments = (library.path(), TINY, ir.without_size(TINY), "instructions", SEEDS, (SMALL,))
    workers = Workers(Service("faulty_worker:serve", arguments, seconds=1.0))
    answers = workers.map([(SMALL,), ("slsr",), ("sink",), ("dse",), (ADCE,)])
    workers.close()
    assert [answer.failure for answer in answers] == ["", "timeout", "", "timeout", ""]
    assert answers[0].value == answers[4].value == 1 and answers[2].value[0] == "wrong_result"


FAULTY = """
import time
from bbo_problems.llvm_pipelines import library, worker
run = library.Pipelines.run
def faulty(self, text, pipeline):
    if "slsr" in pipeline:
        time.sleep(60)
    if "sink" in pipeline:
        return text.replace("ret i64 %x", "%y = add i64 %x, 1\\n  ret i64 %y")
    if "dse" in pipeline:
        return text.replace("ret i64 %x", "br label %l\\nl:\\n  br label %l")
    return run(self, text, pipeline)
library.Pipelines.run = faulty
worker._Optimiser.run_seconds = 0.3
serve = worker.serve
"""


@needs_llvm
def test_time_is_measured_against_o3_and_an_unknown_library_is_refused(monkeypatch):
    fast = PipelineProblem("store@time")
    assert fast.request(fast.default_row()) == (FAST,) and not fast.tells_parts
    monkeypatch.setattr(library, "VERSION", 21)
    with pytest.raises(UserError, match="needs LLVM 21"):
        library.version(library.path())


@needs_llvm
@pytest.mark.slow
@pytest.mark.parametrize("name", large_names())
def test_random_pipelines_fail_alone(name):
    problem = PipelineProblem(name)
    result = evaluate(problem, problem.space.sample(10, np.random.default_rng(1)))
    assert (result.status == Status.OK).sum() >= 3, result.reasons
