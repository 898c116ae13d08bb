"""Inlining decisions: the default is -Oz, decisions do what they say, odd modules work or are one sentence.

A search on nearly exact parts finds in few compilations what takes others many.
"""

import numpy as np
import pytest

import bbo_suite
from bbo_problems.inlining.sites import Module
from bbo_problems.inlining.worker import DECIDED
from bbo_suite import Status, UserError, evaluate

HEAD = 'target triple = "x86_64-unknown-linux-gnu"\n'
LEAF = """define internal i64 @leaf(i64 %x) {
  %y = mul i64 %x, 3
  %z = xor i64 %y, 5
  ret i64 %z
}
"""
RUN = """define i64 @run(i64 %x) {
  %a = call i64 @leaf(i64 %x)
  %b = call i64 @leaf(i64 7)
  %c = add i64 %a, %b
  ret i64 %c
}
"""


def problem(tmp_path, text, variant=""):
    file = tmp_path / "module.ll"
    file.write_text(HEAD + text)
    return bbo_suite.problem(f"inlining:{file}{variant}")


def costs(problem, *rows):
    return evaluate(problem, np.array(rows)).values


@pytest.mark.parametrize("program", ["queue", "bits"])
def test_the_default_is_what_oz_makes(program):
    ours, theirs = bbo_suite.problem(f"inlining/{program}"), bbo_suite.problem(f"llvm/{program}@bytes")
    assert costs(ours, ours.default_row()) == costs(theirs, theirs.default_row())


@pytest.mark.slow
def test_calls_are_decisions_and_a_function_goes_with_its_last_call(tmp_path):
    made = problem(tmp_path, LEAF + RUN)
    assert [made.space.name(i) for i in range(2)] == ["run -> leaf, call 1", "run -> leaf, call 2"]
    found = evaluate(made, np.array([[1, 1], [2, 2], [1, 2]]), with_parts=True)
    assert np.diff(found.parts.starts).tolist() == [3, 2, 3]  # both functions, one, both; and always the rest
    assert found.values[0] > found.values[1] and (found.status == Status.OK).all()


@pytest.mark.slow
def test_llvm_says_what_it_makes_of_each_decision_and_to_ask_for_that_changes_nothing(tmp_path):
    assert problem(tmp_path, LEAF + RUN).query((DECIDED, "10")) == "12"
    graph = bbo_suite.problem("inlining/graph")
    made = graph.query((DECIDED, graph.request(graph.default_row())))
    assert set(made) == {"1", "2"}
    assert costs(graph, graph.default_row()) == costs(graph, [int(decision) for decision in made])


@pytest.mark.slow
def test_a_picture_has_the_functions_with_the_bodies_in_each(tmp_path):
    made = problem(tmp_path, LEAF + RUN)
    apart, together, failed = (made.picture(np.array(row)) for row in ([1, 2], [2, 2], [0, 0]))
    assert {kernel.name: kernel.members for kernel in apart.kernels} == {"leaf": ("leaf",), "run": ("run", "leaf")}
    assert [(apart.kernels[a].name, apart.kernels[b].name) for a, b in apart.edges] == [("run", "leaf")]
    assert {kernel.name: kernel.members for kernel in together.kernels} == {"run": ("run", "leaf")}
    assert sum(kernel.cost for kernel in apart.kernels) == costs(made, [1, 2])[0]
    assert failed.words.kernel == "function"


@pytest.mark.slow
def test_read_only_data_counts_if_asked_for(tmp_path):
    table = "@table = constant [5 x i64] [i64 1, i64 2, i64 3, i64 4, i64 5]\n"
    found = [costs(problem(tmp_path, table + LEAF + RUN, variant), [1, 1])[0] for variant in ("", "@data")]
    assert found[1] == found[0] + 40


@pytest.mark.slow
def test_instructions_are_those_that_remain(tmp_path):
    made = problem(tmp_path, LEAF + RUN, "@instructions")
    assert made.unit == "instructions" and costs(made, [1, 1])[0] == 7


@pytest.mark.slow
def test_time_is_over_that_of_o3():
    ours, theirs = bbo_suite.problem("inlining/bits@time"), bbo_suite.problem("llvm/bits@time")
    default, called = ours.default_row(), np.ones_like(ours.default)
    assert ours.unit == theirs.unit and ours.noisy and ours.timed and not ours.tells_parts
    assert (ours.compile(default[None]) == theirs.compile(theirs.default_row()[None])).all()
    assert ours.facts()["default is"] == "-O3" and ours.structure().parts is None
    inlined = np.full_like(default, 2)  # as -O3 does it: equal code is one measurement
    assert (costs(ours, default, inlined) == 1).all() and costs(ours, called)[0] not in (1, np.inf)
    assert not any(ours.ratios(default, inlined, 0, 3)) and len(ours.ratios(called, default, 0, 3)) == 3


@pytest.mark.slow
def test_what_has_no_run_has_no_time(tmp_path):
    with pytest.raises(UserError, match="its time cannot be measured: it defines neither main nor"):
        problem(tmp_path, LEAF + RUN.replace("@run", "@other"), "@time")


@pytest.mark.slow
def test_results_are_not_compared_with_undefined_ones(tmp_path):
    made = problem(tmp_path, LEAF.replace("mul i64 %x, 3", "shl i64 %x, 70") + RUN)
    assert "NOT run: the default makes it return something else" in made.facts()["results"]
    assert np.isfinite(costs(made, made.default_row()))


@pytest.mark.slow
def test_what_explodes_fails_with_a_reason(tmp_path):
    levels = "".join(
        f"define internal i64 @f{i}(i64 %x) {{\n"
        + "".join(f"  %a{k} = call i64 @f{i - 1}(i64 {k})\n" for k in range(8))
        + "  ret i64 %x\n}\n"
        for i in range(1, 9)
    )
    made = problem(tmp_path, LEAF.replace("leaf", "f0") + levels + RUN.replace("leaf", "f8"))
    found = evaluate(made, np.full((1, len(made.space)), 2))
    assert found.status[0] == Status.COMPILE_ERROR and "inlining would make" in found.reasons[0]


@pytest.mark.slow
def test_the_source_keeps_its_own_decisions(tmp_path):
    text = LEAF.replace("(i64 %x) {", "(i64 %x) noinline {") + RUN
    with pytest.raises(UserError, match="no call whose inlining is open"):
        problem(tmp_path, text)
    marked = RUN.replace("(i64 7)", "(i64 7) noinline").replace("%a = call", "%a = tail call")
    assert len(problem(tmp_path, LEAF + marked).space) == 1


@pytest.mark.slow
def test_recursion_alone_leaves_calls_from_outside(tmp_path):
    body = (
        "  %d = icmp eq i64 %x, 0\n  br i1 %d, label %e, label %l\nl:\n  %k = lshr i64 %x, 1\n"
        "  %r = call i64 @leaf(i64 %k)\n  ret i64 %r\ne:\n  ret i64 1\n"
    )
    made = problem(tmp_path, f"define internal i64 @leaf(i64 %x) {{\n{body}}}\n{RUN}")
    assert made.space.sizes.tolist() == [3, 3]
    assert (evaluate(made, np.array([[1, 1], [2, 2]])).status == Status.OK).all()


ODD = {
    "no function is called": ("define i64 @run(i64 %x) {\n  ret i64 %x\n}\n", 0),
    "unknown callees": (
        "declare i64 @g(i64)\ndefine i64 @f(i64 %x) {\n  %r = call i64 @g(i64 %x)\n  ret i64 %r\n}\n",
        0,
    ),
    "inline assembly": (
        LEAF + RUN.replace("%c = add", 'call void asm sideeffect "# @leaf(", ""()\n  %c = add'),
        3,
    ),
    "musttail": (
        LEAF + "define i64 @run(i64 %x) {\n  %r = musttail call i64 @leaf(i64 %x)\n  ret i64 %r\n}\n",
        3,
    ),
    "varying arguments": (
        "declare void @llvm.va_start(ptr)\ndefine internal i64 @leaf(i64 %x, ...) {\n  %l = alloca [24 x i8]\n"
        "  call void @llvm.va_start(ptr %l)\n  ret i64 %x\n}\n"
        "define i64 @run(i64 %x) {\n  %a = call i64 (i64, ...) @leaf(i64 %x, i64 2)\n  ret i64 %a\n}\n",
        2,
    ),
    "noduplicate": (
        "declare void @mark() noduplicate\n" + LEAF.replace("  ret", "  call void @mark() noduplicate\n  ret") + RUN,
        2,
    ),
    "replaceable": (LEAF.replace("internal", "weak") + RUN, 0),
    "exceptions": (
        "declare i32 @__gxx_personality_v0(...)\n"
        + LEAF
        + "define i64 @run(i64 %x) personality ptr @__gxx_personality_v0 {\n"
        "  %a = invoke i64 @leaf(i64 %x)\n          to label %ok unwind label %bad\nok:\n  ret i64 %a\nbad:\n"
        "  %l = landingpad { ptr, i32 }\n          cleanup\n  resume { ptr, i32 } %l\n}\n",
        3,
    ),
    "another target": (
        LEAF.replace("(i64 %x) {", '(i64 %x) "target-features"="+avx2" {') + RUN,
        2,
    ),
    "quoted names": ((LEAF + RUN).replace("@leaf", '@"a leaf"'), 3),
    "taken address": (LEAF + RUN + "@table = global ptr @leaf\n", 3),
    "a circle": (
        "define internal i64 @odd(i64 %x) {\n  %r = call i64 @leaf(i64 %x)\n  ret i64 %r\n}\n"
        + LEAF.replace("xor i64 %y, 5", "call i64 @odd(i64 %y)")
        + RUN.replace("@run", "@not_run"),
        3,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD)
def test_odd_modules_work_or_are_one_sentence(tmp_path, kind):
    text, values = ODD[kind]
    if not values:
        with pytest.raises(UserError, match="no call whose inlining is open"):
            problem(tmp_path, text)
        return
    made = problem(tmp_path, text)
    assert made.space.sizes[0] == values
    rows = np.array([np.minimum(value, made.space.sizes - 1) for value in range(3)])
    found = evaluate(made, rows, with_parts=True)
    assert (found.status == Status.OK).all(), found.reasons


@pytest.mark.slow
def test_lines_name_the_sites(tmp_path):
    debug = (
        '!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2}\n!2 = !{i32 2, !"Debug Info Version", i32 3}\n'
        "!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: LineTablesOnly)\n"
        '!1 = !DIFile(filename: "main.c", directory: ".")\n!3 = !DISubroutineType(types: !{})\n'
        "!4 = distinct !DISubprogram(scope: !1, file: !1, type: !3, unit: !0, spFlags: DISPFlagDefinition)\n"
        "!5 = !DILocation(line: 12, column: 8, scope: !4)\n!6 = !DILocation(line: 13, scope: !4)\n"
    )
    run = RUN.replace("%x) {", "%x) !dbg !4 {").replace("%x)\n", "%x), !dbg !5\n").replace("7)", "7), !dbg !6")
    made = problem(tmp_path, LEAF + run + debug)
    assert [made.space.name(i) for i in range(2)] == ["run -> leaf, at main.c:12:8", "run -> leaf, at main.c:13"]
    assert made.graph.default.tolist() == [1, 1]  # the last call, too, is inlined on merit
    assert costs(made, [0, 0]) == costs(problem(tmp_path, LEAF + RUN), [0, 0])


@pytest.mark.slow
def test_thousands_of_sites_are_read_at_once():
    calls = "".join(f"  %v{i} = call i64 @leaf(i64 {i})\n" for i in range(10_000))
    module = Module(f"{LEAF}define i64 @run(i64 %x) {{\n{calls}  ret i64 %x\n}}\n")
    assert len(module.decisions) == 10_000
    assert module.decided("1" * 10_000).count(" noinline") == 10_000


def test_depths_follow_loops():
    blocks = "  br label %1\n\n1:\n  call i64 @leaf(i64 1)\n  br i1 true, label %1, label %2\n\n2:\n  ret i64 0\n"
    module = Module(f"{LEAF}define i64 @run(i64 %x) {{\n  call i64 @leaf(i64 1)\n{blocks}}}\n")
    assert [site.depth for site in module.sites] == [0, 1]


@pytest.mark.slow
def test_files_become_one_module(tmp_path):
    (tmp_path / "a.ll").write_text(HEAD + LEAF.replace("internal ", ""))
    (tmp_path / "b.ll").write_text(HEAD + "declare i64 @leaf(i64)\n" + RUN)
    (tmp_path / "b+c.ll").write_text((tmp_path / "b.ll").read_text())
    for other in ("b.ll", "b+c.ll"):
        made = bbo_suite.problem(f"inlining:{tmp_path / 'a.ll'}+{tmp_path / other}")
        assert len(made.space) == 2 and made.graph.names == ("leaf", "run")
    (tmp_path / "b.ll").write_text((tmp_path / "b.ll").read_text().replace("x86_64", "aarch64"))
    with pytest.raises(UserError, match=r"for x86_64-unknown-linux-gnu and aarch64-\S+; compile them for one machine"):
        bbo_suite.problem(f"inlining:{tmp_path / 'a.ll'}+{tmp_path / 'b.ll'}")
    with pytest.raises(UserError, match=r"has a \+ without a file"):
        bbo_suite.problem(f"inlining:{tmp_path / 'a.ll'}+")
    with pytest.raises(UserError, match=r"nothing\.ll"):
        bbo_suite.problem(f"inlining:{tmp_path / 'a.ll'}+{tmp_path / 'nothing.ll'}")


@pytest.mark.slow
def test_equal_calls_at_which_different_things_stand_are_another_function(tmp_path):
    large = LEAF.replace(
        "  ret", "".join(f'  %m{i} = call i64 asm "nop", "=r,r"(i64 %z)\n' for i in range(60)) + "  ret"
    )
    made = problem(tmp_path, large + RUN)
    assert made.graph.default.tolist() == [0, 0]
    keys = [made.decomposition.described(np.array(row))[1].tolist() for row in ([0, 0], [1, 1], [0, 1])]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "share"),
    [("levenshtein", 1.0), *(pytest.param(*each, marks=pytest.mark.slow) for each in (("json", 0.96), ("lexer", 1.0)))],
)
def test_parts_are_nearly_exact(program, share):
    made = bbo_suite.problem(f"inlining/{program}")
    rng = np.random.default_rng(0)
    rows = np.repeat(made.default_row()[None], 20, axis=0)
    for row in rows:
        columns = rng.integers(0, len(row), 4)
        row[columns] = rng.integers(0, made.space.sizes[columns])
    parts = evaluate(made, rows, with_parts=True).parts
    order = np.lexsort((parts.costs, parts.keys))
    keys, sizes = parts.keys[order], parts.costs[order]
    again = keys[1:] == keys[:-1]
    assert not made.structure().parts.exact
    assert (sizes[1:] == sizes[:-1])[again].mean() >= share


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "evaluations", "bytes"),
    [
        pytest.param("parser", 20, 1167, marks=pytest.mark.thorough),
        ("queue", 60, 826),
        pytest.param("lexer", 100, 720, marks=pytest.mark.thorough),
    ],
)
def test_graybox_finds_what_annealing_needs_hundreds_for(program, evaluations, bytes):
    problem = bbo_suite.problem(f"inlining/{program}")
    batches = bbo_suite.search("graybox", problem, evaluations, seed=0)
    assert min(batch.values.min() for batch in batches) <= bytes


@pytest.mark.slow
def test_graybox_measures_no_program_twice():
    problem = bbo_suite.problem("inlining/lexer")
    rows = np.concatenate([batch.configs for batch in bbo_suite.search("graybox", problem, 60, seed=0)])
    keys = [tuple(problem.decomposition.described(row)[1].tolist()) for row in rows.astype(np.int64)]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
def test_runs_store_nearly_exact_parts_and_resume(tmp_path):
    plan = {"budget": 12, "study": "nearly", "results": tmp_path}
    first = bbo_suite.run("graybox", "inlining/queue", **plan)
    again = bbo_suite.run("graybox", "inlining/queue", **plan)
    assert first.runs().equals(again.runs())


@pytest.mark.slow
def test_the_optimum_of_a_small_program_is_found_and_not_beaten():
    problem = bbo_suite.problem("inlining/graph")
    if problem.optimum is None:
        pytest.skip("it is known for another llvmlite")
    best = min(batch.values.min() for batch in bbo_suite.search("graybox", problem, 60, seed=0))
    assert best == problem.optimum < bbo_suite.evaluate(problem, problem.default_row()[None]).values[0]
    assert bbo_suite.problem("inlining/graph@data").optimum is None
