"""GCC's flags on small programs: which are offered, which programs are refused, and that results are compared."""

import dataclasses
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_problems.gcc import compiler, worker
from bbo_problems.gcc.problem import GccProblem
from bbo_problems.programs_c import FOLDER, SEEDS
from bbo_suite import Status, UserError
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.supervised import RUN

from ..candidates import changed

pytestmark = pytest.mark.usefixtures("own_cache")

GCC = shutil.which("gcc")
LEVEL = "-Os"
"""Which every GCC has."""
needs_gcc = pytest.mark.skipif(not GCC, reason="gcc is not installed")

OPTIMIZERS = """The following options control optimizations:
  -O<number>
  -faggressive-loop-optimizations       [enabled]
  -fasynchronous-unwind-tables          [enabled]
  -fgcse                                [disabled]
  -fira-region=[one|all|mixed]          one
  -ftrapping-math                       [enabled]
  -fstack-protector-strong              [disabled]
  -fsigned-zeros                        [enabled]
  -fshort-enums                         [enabled]
"""
PARAMS = """The following options control parameters:
  --param=max-combine-insns=<2,4>       4
  --param=min-crossjump-insns=<1,65536> 1
  --param=max-inline-insns-size=        0
  --param=case-values-threshold=        5
  --param=lazy-modules=                 [available in C++]
  --param=ggc-min-expand=               100
  --param=asan-stack=<0,1>              1
  --param=sink-frequency-threshold=<0,100>  75
"""


def entered(stage, seconds):
    assert stage == RUN and seconds > 1


@pytest.fixture
def fake_gcc(tmp_path, monkeypatch):
    """Return a function that puts a script called gcc first on the path."""

    def put(script):
        (tmp_path / "bin").mkdir(exist_ok=True)
        file = tmp_path / "bin/gcc"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")
        compiler.read_gcc.cache_clear()

    yield put
    compiler.read_gcc.cache_clear()


def test_flags_that_keep_the_meaning_are_offered_and_parameters_tried_around_their_default(fake_gcc, tmp_path):
    (tmp_path / "optimizers").write_text(OPTIMIZERS)
    (tmp_path / "params").write_text(PARAMS)
    fake_gcc(f'case "$2" in --help=*) cat {tmp_path}/${{2#--help=}};; *) echo 14;; esac')
    found = compiler.installed_gcc()
    assert (found.version, found.level) == ("14-14", "-Oz")
    assert found.flags == {"-faggressive-loop-optimizations": True, "-fgcse": False}
    assert found.parameters == {
        "max-combine-insns": ((2, 4), 1),
        "min-crossjump-insns": ((1, 2, 4), 0),
        "max-inline-insns-size": ((0, 4, 16, 64), 0),
        "case-values-threshold": ((1, 2, 5, 10, 20), 2),
    }
    assert found.wide["case-values-threshold"] == ((0, 1, 2, 5, 10, 20, 80), 3)
    assert found.wide["sink-frequency-threshold"][0] == (0, 4, 18, 37, 75, 100)
    assert "asan-stack" not in found.wide and "ggc-min-expand" not in found.wide
    assert found.valued == {"-fira-region": (("one", "all", "mixed"), 0)}


def test_a_gcc_without_oz_has_os_as_its_default(fake_gcc, tmp_path):
    (tmp_path / "optimizers").write_text(OPTIMIZERS)
    (tmp_path / "params").write_text(PARAMS)
    known = f'--help=*) [ "$1" = -Oz ] && exit 1; cat {tmp_path}/${{2#--help=}};;'
    fake_gcc(f'case "$2" in {known} *) echo 11;; esac')
    assert compiler.installed_gcc().level == "-Os"
    (tmp_path / "mine.c").write_text("int f(int x) { return x; }")
    old = GccProblem.from_file(str(tmp_path / "mine.c"))
    assert old.paste(old.default_row()).split()[3] == "-Os"


@needs_gcc
def test_the_wide_variant_is_another_task_with_the_same_default():
    narrow, wide = GccProblem("hash"), GccProblem("hash@wide")
    assert len(wide.space) > len(narrow.space) + 100 and wide.fingerprint() != narrow.fingerprint()
    assert wide.request(wide.default_row()) == ()
    assert wide.request(changed(wide, {"-fira-region": 1})) == ("-fira-region=all",)
    with pytest.raises(UserError, match="unknown variant"):
        GccProblem("hash@large")


def test_without_gcc_one_sentence_names_the_package_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="gcc is not installed"):
        GccProblem("hash")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('echo "clang version 17"; [ "$2" = "--help=optimizers" ] && exit 1; exit 0', r"is not GCC \(exit code 1\)"),
        ("exit 0", "is not GCC"),
        ('echo "cannot execute as" >&2; exit 1', r"does not work, or is not GCC \(cannot execute as\)"),
        ("kill -9 $$", r"does not work, or is not GCC \(exit code -9\)"),
        ("sleep 60", r"does not work, or is not GCC \(.* timed out after 0.2 seconds\)"),
    ],
)
def test_another_compiler_called_gcc_and_a_broken_gcc_are_refused(fake_gcc, monkeypatch, script, words):
    monkeypatch.setattr(compiler, "SECONDS", 0.2 if "sleep" in script else 60)
    fake_gcc(script)
    with pytest.raises(UserError, match=words):
        GccProblem("hash")


@pytest.mark.slow
@needs_gcc
def test_the_default_is_the_smallest_level_and_a_candidate_is_its_differences():
    problem = GccProblem("hash")
    levels = problem.baselines()
    assert default_value(problem) <= min(levels.values()) and problem.facts()["default is"] not in levels
    assert problem.request(problem.default_row()) == ()
    assert len(problem.space) > 100
    row = changed(problem, {"-fgcse": 0, "max-combine-insns": 0})
    assert problem.request(row) == ("-fno-gcse", "--param=max-combine-insns=2")


@pytest.mark.slow
@needs_gcc
def test_the_cost_is_the_text_of_the_object_and_results_are_compared(tmp_path):
    source = shutil.copy(FOLDER / "bits.c", tmp_path)
    program = worker.Program(GCC, LEVEL, str(source), tmp_path, SEEDS)
    small, unrolled = program.answer((), entered), program.answer(("-fno-inline", "-funroll-all-loops"), entered)
    assert 100 < small < unrolled
    assert program.answer(("-funwind-tables",), entered) == small
    facts = program.answer("facts", entered)
    assert not facts["why not run"] and set(facts["sizes"]) == {"-Oz", "-O2", "-O3"} - {LEVEL}
    assert program.answer(("-fno-such-flag",), entered)[0] == "compile_error"
    user(source, "return x;")
    assert program.answer(("-fgcse",), entered)[0] == "wrong_result"


@pytest.mark.slow
@needs_gcc
def test_functions_are_parts_and_add_up(tmp_path):
    program = worker.Program(GCC, LEVEL, str(FOLDER / "tree.c"), tmp_path, SEEDS)
    for flags_ in ((), ("-falign-functions", "-fno-inline")):
        size, parts = program.answer(("parts", flags_), entered)
        assert size == program.answer(flags_, entered) == sum(row[-1] for row in parts)
        assert "run" in {row[0] for row in parts} and len(parts) > 3
    assert program.answer(("parts", ("-fno-such-flag",)), entered)[1] == []


@pytest.mark.slow
@needs_gcc
def test_a_program_that_does_not_end_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "RUN_SECONDS", 0.2)
    source = tmp_path / "loop.c"
    source.write_text("unsigned long long run(unsigned long long x) { volatile int y = 1; while (y); return x; }")
    with pytest.raises(ValueError, match="did not return"):
        worker.Program(GCC, LEVEL, str(source), tmp_path, SEEDS)


@pytest.mark.slow
@needs_gcc
def test_a_compiler_that_crashes_costs_one_candidate(fake_gcc):
    fake_gcc(f'case "$*" in *-fno-gcse*) kill -SEGV $$;; esac; exec {GCC} "$@"')
    problem = GccProblem("hash")
    default = problem.default_row()
    result = evaluate(problem, np.stack([default, changed(problem, {"-fgcse": 0}), default]))
    assert result.status.tolist() == [Status.OK, Status.COMPILE_ERROR, Status.OK]
    assert result.values[0] == result.values[2] > 0


@pytest.mark.slow
@needs_gcc
def test_a_users_file_is_used_with_and_without_a_run_function(tmp_path):
    shutil.copy(FOLDER / "hash.c", tmp_path / "mine.c")
    mine = bbo_suite.problem(f"gcc:{tmp_path / 'mine.c'}")
    (tmp_path / "me@work").mkdir()
    at = bbo_suite.problem(f"gcc:{shutil.copy(FOLDER / 'hash.c', tmp_path / 'me@work')}")
    assert mine.fingerprint() == GccProblem("hash").fingerprint() == at.fingerprint()
    assert "compared" in mine.facts()["results"]
    (tmp_path / "other.c").write_text("int twice(int x) { return 2 * x; }")
    other = GccProblem.from_file(str(tmp_path / "other.c"))
    assert 0 < default_value(other) < 20 and "NOT run" in other.facts()["results"]
    (tmp_path / "broken.c").write_text("int twice(int x) { return 2 * y; }")
    with pytest.raises(UserError, match="does not compile"):
        default_value(GccProblem.from_file(str(tmp_path / "broken.c")))
    with pytest.raises(UserError, match="cannot read"):
        GccProblem.from_file(str(tmp_path / "none.c"))


def user(place, body, before=""):
    """Write a user's program into a file or a folder, and return its path."""
    source = Path(place)
    source = source / "mine.c" if source.is_dir() else source
    head = "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    source.write_text(f"{head}{before}\nunsigned long long run(unsigned long long x) {{ {body} }}")
    return str(source)


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return *(volatile long*)0;", "died of SIGSEGV"),
        ("exit(0);", "ended with exit code 0 before it had a result"),
        ("if (x == 2) _exit(0); return x;", "ended with exit code 0 before it had a result"),
        ("raise(SIGTERM); return x;", "died of SIGTERM"),
        ("for (;;) puts(__FILE__);", "died of SIGXFSZ: it wrote more than 1 MiB"),
    ],
)
def test_a_program_whose_run_does_not_return_is_refused(tmp_path, body, why):
    source = user(tmp_path, body.replace("SIGTERM", "15"))
    with pytest.raises(ValueError, match=f"{why}.*no result can be compared"):
        worker.Program(GCC, LEVEL, source, tmp_path, SEEDS)


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("body", ["exit(0);", "raise(10); return x;"])
def test_a_candidate_that_ends_inside_run_is_a_runtime_error(tmp_path, body):
    program = worker.Program(GCC, LEVEL, user(tmp_path, "return x;"), tmp_path, SEEDS)
    user(tmp_path, body)
    assert program.answer((), entered)[0] == "runtime_error"


@pytest.mark.slow
@needs_gcc
def test_a_program_sees_no_environment_and_an_empty_folder(tmp_path, monkeypatch):
    """It aborts if it finds a variable, or in its folder more than the entries of the folder and of the one above."""
    monkeypatch.setenv("SECRET", "x")
    count = "extern char **environ;\n#include <dirent.h>\n"
    body = """int n = 0; DIR *d = opendir("."); while (readdir(d)) n++; if (*environ || n > 2) abort(); return x;"""
    program = worker.Program(GCC, LEVEL, user(tmp_path, body, count), tmp_path, SEEDS)
    assert program.answer((), entered) > 0


@pytest.mark.slow
@needs_gcc
def test_a_command_that_is_killed_from_outside_runs_again(fake_gcc, tmp_path):
    fake_gcc(f'exec {GCC} "$@"')
    program, log = (
        worker.Program(str(tmp_path / "bin/gcc"), LEVEL, str(FOLDER / "bits.c"), tmp_path, SEEDS),
        tmp_path / "log",
    )
    printed = ("gcc: fatal error: Killed signal terminated program cc1", "a.c:1: internal compiler error: Aborted")
    for kill in ("kill -KILL $$", *(f'echo "{words}" >&2; exit 1' for words in printed)):
        script = f"echo x >> {log}; [ $(wc -l < {log}) -lt 3 ] && {{ {kill}; }}"
        fake_gcc(f'case "$*" in *-fgcse*) {script};; esac; exec {GCC} "$@"')
        assert program.answer(("-fgcse",), entered) > 0
        assert log.read_text() == "x\n" * 3
        log.unlink()
    fake_gcc(f'case "$*" in *-fgcse*) kill -KILL $$;; esac; exec {GCC} "$@"')
    assert program.answer(("-fgcse",), entered) == ("compile_error", "GCC died of SIGKILL")


@pytest.mark.slow
@needs_gcc
def test_a_full_disk_is_not_the_candidates_fault(fake_gcc, tmp_path):
    fake_gcc(f'case "$*" in *-fgcse*) echo "as: error: No space left on device" >&2; exit 1;; esac; exec {GCC} "$@"')
    program = worker.Program(str(tmp_path / "bin/gcc"), LEVEL, str(FOLDER / "bits.c"), tmp_path, SEEDS)
    with pytest.raises(OSError, match="No space left"):  # the cache does not store it
        program.answer(("-fgcse",), entered)


@needs_gcc
def test_another_version_is_another_problem(monkeypatch):
    here = GccProblem("hash").fingerprint()
    other = dataclasses.replace(compiler.installed_gcc(), version="99")
    monkeypatch.setattr("bbo_problems.gcc.problem.installed_gcc", lambda: other)
    assert GccProblem("hash").fingerprint() != here


@needs_gcc
@pytest.mark.slow
def test_a_file_that_includes_others_is_another_problem_when_they_change(tmp_path):
    program, near, far = tmp_path / "mine.c", tmp_path / "a#b $c.h", tmp_path / "far.h"
    program.write_text(f'#include <stdio.h>\n#include "{near.name}"\nlong f(long x) {{ return x + NEAR + FAR; }}')
    near.write_text('#include "far.h"\n#define NEAR 1')
    seen = set()
    for number in (7, 70_000_000_000, 7):
        far.write_text(f"#define FAR {number}")
        problem = GccProblem.from_file(str(program))
        seen.add((number, problem.fingerprint(), default_value(problem)))
    assert len(seen) == 2 and len({fingerprint for _, fingerprint, _ in seen}) == len({cost for *_, cost in seen}) == 2


@needs_gcc
@pytest.mark.slow
def test_random_flags_compile_and_keep_the_results():
    problem = GccProblem("lexer")
    problem.workers = 2
    result = evaluate(problem, problem.space.sample(60, np.random.default_rng(1)))
    assert (result.status == Status.OK).mean() > 0.9, result.reasons
    assert Status.WRONG_RESULT not in result.status and Status.RUNTIME_ERROR not in result.status


@pytest.mark.slow
@needs_gcc
@pytest.mark.skipif(not shutil.which("size"), reason="binutils are not installed")
def test_the_pasted_command_compiles_to_the_size_that_was_measured(tmp_path):
    problem = GccProblem("bits")
    config = problem.default_row()
    config[:40] = 1 - config[:40]
    cost = evaluate(problem, config[None])
    done = subprocess.run(problem.paste(config), shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == (cost.status[0] != Status.COMPILE_ERROR), done.stderr
    listed = subprocess.run(["size", "-A", tmp_path / "bits.o"], capture_output=True, text=True).stdout.splitlines()
    assert sum(int(line.split()[1]) for line in listed if line.startswith(".text")) == cost.values[0]


C, CPP = "#include <stdint.h>\n", "#include <cstdint>\n"
PROGRAMS = {
    "sine.c": ("#include <math.h>\nuint64_t run(uint64_t x) { return 1e9 * fabs(sin(x)); }", "run and compared"),
    "double.c": ("double run(double x) { return 2 * x; }", r"its run is not uint64_t run\(uint64_t\)"),
    "arguments.c": ("int run(int n, char **words) { return words[n - 1][0]; }", "its run is not"),
    "hidden.c": ("static uint64_t run(uint64_t x) { return x; } uint64_t f(uint64_t x) { return run(x); }", "neither"),
    "needs.c": ("uint64_t f(void); uint64_t run(uint64_t x) { return f() + x; }", "cannot be linked .*`f'"),
    "prints.c": ('#include <stdio.h>\nint main(void) { puts("x"); return 3; }', "its output compared"),
    "random.c": ('#include <stdio.h>\nint main(void) { int x; printf("%p", &x); }', "differs from run to run"),
    "dies.c": ("#include <stdlib.h>\nint main(void) { abort(); }", "at -O0 the program died of SIGABRT"),
    "level.c": ("int main(void) {\n#ifdef __OPTIMIZE__\nreturn 1;\n#endif\nreturn 0; }", "at -O.* its results differ"),
    "throws.cpp": (
        'extern "C" uint64_t run(uint64_t x) { try { throw 1; } catch (int y) { return x + y; } }',
        "run and compared",
    ),
    "constant.cc": (
        'extern "C" uint64_t run(uint64_t x) noexcept { static uint64_t y = x; return y; }',
        "run and compared",
    ),
    "mangled.cxx": ("uint64_t run(uint64_t x) { return x; }", 'declare it extern "C"'),
    "double.C": ('extern "C" double run(double x) { return x; }', "its run is not"),
}


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("name", PROGRAMS)
def test_how_a_program_is_checked_and_why_another_is_not(tmp_path, name):
    text, words = PROGRAMS[name]
    if not name.endswith(".c") and not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    (tmp_path / name).write_text((C if name.endswith(".c") else CPP) + text)
    program = worker.Program(GCC, LEVEL, str(tmp_path / name), tmp_path, SEEDS)
    facts = program.answer("facts", entered)
    assert re.search(words, facts["why not run"] or facts["compared"])
    assert bool(facts["why not run"]) == ("compared" not in words)
    assert program.answer(("-fno-gcse",), entered) > 0


@pytest.mark.slow
@needs_gcc
def test_a_program_with_main_that_prints_something_else_is_a_wrong_result(tmp_path):
    source = tmp_path / "prints.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("5"); return 7; }')
    program = worker.Program(GCC, LEVEL, str(source), tmp_path, SEEDS)
    assert program.answer((), entered) > 0
    source.write_text('#include <stdio.h>\nint main(void) { puts("6"); return 7; }')
    assert program.answer(("-fgcse",), entered) == ("wrong_result", "it prints 6\nexit code 7, not 5\nexit code 7")


@needs_gcc
def test_the_language_is_part_of_the_problem(tmp_path):
    for name in ("a.c", "a.cpp"):
        (tmp_path / name).write_text("int f(int x) { return x; }")
    c, cpp = (GccProblem.from_file(str(tmp_path / name)) for name in ("a.c", "a.cpp"))
    assert c.fingerprint() != cpp.fingerprint()
    assert "-std=c17" in c.paste(c.default_row()) and "-std" not in cpp.paste(cpp.default_row())
    (tmp_path / "a.c").write_text("static int f(int x) { return x; }")
    with pytest.raises(UserError, match="no function that is visible outside"):
        default_value(c)
