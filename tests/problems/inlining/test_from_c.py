"""Files of C and C++: names with lines, messages, and decisions that clang replays."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_problems.inlining.worker import RESULTS, TEXT
from bbo_problems.llvm.ir import read
from bbo_problems.programs_c import source
from bbo_suite import Status, UserError, evaluate
from bbo_suite.cli.read import best

no_zig = pytest.mark.skipif(not find_spec("ziglang"), reason="ziglang is not installed")
pytestmark = [no_zig, pytest.mark.slow]  # CI installs it for its later stage


RIGHT = "its results are right"


def test_clang_replays_what_was_found():
    problem = bbo_suite.problem(f"inlining:{source('queue')}")
    assert "queue.c:" in problem.space.name(0)
    rng = np.random.default_rng(0)
    rows = np.vstack([problem.default_row()[None], problem.space.sample(3, rng)])
    rows = np.vstack([rows, np.ones_like(rows[:1])])
    for row, value in zip(rows, evaluate(problem, rows).values, strict=True):
        assert problem.replayed(row, value) == f"984 -> {value:,.0f} bytes with clang, as promised; {RIGHT}"
    assert problem.pasted_file == "queue.inlining" and "-cgscc-inline-replay=queue.inlining" in problem.usage()
    assert "not 7" in problem.replayed(problem.default_row(), 7.0)


def test_clang_replays_what_was_found_for_time():
    problem = bbo_suite.problem(f"inlining:{source('queue')}@time")
    called = np.ones_like(problem.default)
    said = problem.replayed(called, 1.8)
    assert re.fullmatch(rf"1,\d+ -> 1,\d+ bytes with clang; {RIGHT}", said)
    assert problem.paste(called) != problem.paste(problem.default_row()) and "clang -O3 -gline" in problem.usage()


def test_another_program_than_the_replayed_one_has_wrong_results():
    problem = bbo_suite.problem(f"inlining:{source('queue')}")
    module = problem.query(TEXT)
    assert problem.query((RESULTS, module)) == RIGHT
    other = re.sub(r"ret i64 %\w+", "ret i64 1", module)
    assert other != module and problem.query((RESULTS, other)).startswith("WRONG results: run(")
    assert "not compared: " in problem.query((RESULTS, "no module"))


def test_results_that_cannot_be_compared_are_named(tmp_path):
    (tmp_path / "a.c").write_text(
        "static int leaf(int x) { return 3 * x ^ 5; }\nint f(int x) { return leaf(x) + leaf(x + 1); }\n"
    )
    problem = bbo_suite.problem(f"inlining:{tmp_path / 'a.c'}")
    assert "its results were not compared: " in problem.replayed(problem.default_row(), 1.0)


def test_no_file_to_replay_replaces_that_of_another_problem(tmp_path, monkeypatch, capsys):
    files = [tmp_path / folder / "x.c" for folder in "ab"]
    for factor, file in enumerate(files):
        file.parent.mkdir()
        file.write_text(f"static int leaf(int x) {{ return {factor} + x; }}\nint f(int x) {{ return leaf(x); }}\n")
    monkeypatch.chdir(tmp_path)
    ids = [f"inlining:{files[0]}@data", *(f"inlining:{file}" for file in files)]
    bbo_suite.run("random", ids, budget=2, study="three")
    best("three")
    said = capsys.readouterr().out
    names = ["x-2.inlining", "x.inlining", "x@data.inlining"]
    assert sorted(path.name for path in tmp_path.glob("*.inlining")) == names
    assert all(f"  written: {name}, " in said and f"-cgscc-inline-replay={name} " in said for name in names)
    Path("x.inlining").unlink()
    Path("x.inlining").mkdir()
    with pytest.raises(UserError, match=r"cannot write x\.inlining: .*folder"):
        best("three")


def test_shipped_text_and_c_have_the_same_default():
    shipped, ours = bbo_suite.problem("inlining/queue"), bbo_suite.problem(f"inlining:{source('queue')}")
    costs = [evaluate(each, each.default_row()[None]).values[0] for each in (shipped, ours)]
    assert costs[0] == costs[1]
    assert shipped.pasted_file == "" and "for reading only" in shipped.usage()


def test_a_mistake_in_c_is_one_sentence_with_its_line(tmp_path):
    (tmp_path / "bad.c").write_text("int f(int x) { return x; }\nint g(int x) { return f(x) +; }\n")
    with pytest.raises(UserError, match=r"bad\.c does not compile: bad\.c:2:\d+: error"):
        bbo_suite.problem(f"inlining:{tmp_path / 'bad.c'}")


CPP = """#include <stdexcept>
static int half(int x) { if (x & 1) throw std::runtime_error("odd"); return x / 2; }
struct Guard { int &at; explicit Guard(int &a) : at(a) {} ~Guard() { at++; } };
int twice(int x) {
  int ended = 0;
  try { Guard guard(ended); return half(x) + half(x + 2); } catch (const std::exception &) { return ended; }
}
"""
VARARGS = """#include <stdarg.h>
static int sum(int n, ...) {
  va_list l; va_start(l, n); int s = 0; while (n--) s += va_arg(l, int); va_end(l); return s;
}
int f(int x) { return sum(2, x, 3) + sum(1, x); }
"""
ASSEMBLY = """static int clear(int x) { __asm__ volatile("" : "+r"(x)); return x; }
int f(int x) { return clear(x) + clear(2); }
"""


@pytest.mark.parametrize(("name", "text"), [("a.cpp", CPP), ("v.c", VARARGS), ("s.c", ASSEMBLY)])
def test_unusual_code_works(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    problem = bbo_suite.problem(f"inlining:{tmp_path / name}")
    rows = np.array([np.minimum(value, problem.space.sizes - 1) for value in range(3)])
    assert (evaluate(problem, rows, with_parts=True).status == Status.OK).all()
    assert problem.paste(rows[2]) and "with clang" in problem.replayed(rows[2], 0.0)


def test_a_header_of_the_compiler_is_named_alike_wherever_it_lies(tmp_path):
    (tmp_path / "a.cpp").write_text("#include <vector>\nint f(const std::vector<int>& v) { return v.size() + v[0]; }\n")
    text = read(tmp_path / "a.cpp", with_lines=True)
    named = re.findall(r'DIFile\(filename: "([^"]*/vector[^"]*)"', text)
    assert named and all(name.startswith("ziglang/lib/libcxx/") for name in named)


def test_two_files_are_one_module(tmp_path):
    (tmp_path / "a.c").write_text("int leaf(int x) { return 3 * x ^ 5; }\n")
    (tmp_path / "b.c").write_text("int leaf(int); int f(int x) { return leaf(x) + leaf(x + 1); }\n")
    problem = bbo_suite.problem(f"inlining:{tmp_path / 'a.c'}+{tmp_path / 'b.c'}")
    assert [problem.space.name(i) for i in range(2)] == ["f -> leaf, at b.c:1:38", "f -> leaf, at b.c:1:48"]
    assert "for reading only" in problem.usage()
