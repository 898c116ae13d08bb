"""Builds of users: what is checked, what is shared, what is measured; and bad commands, one sentence each."""

import math
import shutil
import subprocess
import time
from importlib.util import find_spec

import numpy as np
import pytest

import bbo_suite
from bbo_problems import elf
from bbo_problems.command.ready import suggested
from bbo_problems.command.worker import Failed, difference, number_for
from bbo_suite import Status, UserError
from bbo_suite.core.evaluation import default_value
from bbo_suite.core.problem import SAME_CODE

from ..candidates import changed, names_of

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")

WORK = """n=2000
for word in "$@"; do
  case $word in -fast) n=200;; -wrong) echo wrong;; -crash) exit 7;; -hang) exec sleep 60;; -near) echo 1.0000001;; esac
done
i=0; while [ $i -lt $n ]; do i=$((i+1)); done
echo "1.0 sum $n" | sed 's/ sum.*//'
echo "cost: $n"
"""
SPACE = """[space]
what = ["-plain", "-fast", "-wrong", "-crash", "-hang"]
"""


@pytest.fixture
def described(tmp_path):
    """Return a function that returns the problem of a script and a description."""

    def write(text, name="a folder/tune.toml"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "work.sh").write_text(WORK)
        file.write_text(text)
        return bbo_suite.problem(f"command:{file}")

    return write


RUN = '[run]\ncommand = "sh work.sh {flags}"\nseconds = 20\n'


def test_a_candidate_is_checked_and_measured_beside_the_default(described):
    problem = described(f'{RUN}[check]\noutput = "none"\n{SPACE}')
    assert default_value(problem) == 1 and problem.noisy and problem.unit == "times the default"
    found = bbo_suite.evaluate(problem, np.array([[1], [3]]))
    assert 0.05 < found.values[0] < 0.8 and found.status.tolist() == [Status.OK, Status.RUNTIME_ERROR]
    assert "exit code 7" in found.reasons[1]
    assert max(problem.ratios(np.array([1]), problem.default_row(), 0, 3)) < 0
    assert problem.ratios(np.array([3]), problem.default_row(), 0, 3)[0] == math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "outcomes"),
    [
        ('"none"', "ok ok"),
        ('"stdout"', "wrong_result wrong_result"),
        ("1e-3", "wrong_result ok"),
        ('"grep -q cost {stdout}"', "ok ok"),
        ("\"sh -c '! grep -q wrong {stdout}'\"", "wrong_result ok"),
    ],
)
def test_the_check_decides_what_is_wrong(described, check, outcomes):
    texts = '["echo 1.0 cost", "echo wrong cost", "echo 1.0001 cost"]'
    problem = described(f'[run]\ncommand = "{{flags}}"\n[check]\noutput = {check}\n[space]\nwhat = {texts}\n')
    found = bbo_suite.evaluate(problem, np.array([[1], [2]]))
    assert [Status(status).word for status in found.status] == outcomes.split()
    compared = problem.facts()["results"]
    assert ("NOT" in compared) == (check == '"none"')


@pytest.mark.slow
def test_a_number_in_the_output_is_a_cost_and_no_part_of_the_results(described):
    goal = "[cost]\ngoal = 'cost: (\\d+)'\n"
    problem = described(f"{RUN}{goal}{SPACE}")
    found = bbo_suite.evaluate(problem, np.array([[1], [2]]))
    assert found.values[0] == pytest.approx(0.1) and found.status[1] == Status.WRONG_RESULT
    assert problem.facts()["default's number"] == "2000"


@pytest.mark.slow
def test_a_hang_costs_one_candidate(described):
    problem = described(f"{RUN}{SPACE}")
    found = bbo_suite.evaluate(problem, np.array([[4], [0]]))
    assert found.status.tolist() == [Status.TIMEOUT, Status.OK] and "took more than" in found.reasons[0]


PROGRAM = """#include <stdio.h>
int main(void) {
#ifdef LONGER
    for (volatile int i = 0; i < 3000000; i++);
#endif
#ifdef WRONG
    puts("other");
#endif
    return puts("same") < 0;
}
"""
FLAGS = '[space]\nwhat = ["-O1", "-O1 -g", "-DLONGER", "-DLONGER -g", "-DWRONG", "-nonsense", "-O1 -DUNUSED"]\n'


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize(
    "build",
    [
        "gcc {flags} -o {out} program.c",
        "make CFLAGS={flags} && mv program tuned.out",
        pytest.param(
            "cmake -S . -B made -DCMAKE_C_FLAGS={flags} && cmake --build made && cp made/program tuned.out",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_equal_code_is_one_measurement_with_gcc_make_and_cmake(described, tmp_path, build):
    if not shutil.which(build.split()[0]):
        pytest.skip("not installed")
    folder = tmp_path / "of c"
    folder.mkdir()
    (folder / "program.c").write_text(PROGRAM)
    (folder / "Makefile").write_text("program: program.c\n")
    lists = "cmake_minimum_required(VERSION 3.5)\nproject(program C)\nadd_executable(program program.c)\n"
    (folder / "CMakeLists.txt").write_text(lists)
    text = f'[build]\ncommand = "{build}"\n[run]\ncommand = "{{out}}"\n{FLAGS}'
    problem = described(text, "of c/tune.toml")
    found = bbo_suite.evaluate(problem, np.arange(1, 7)[:, None])
    statuses = [Status(status).word for status in found.status]
    assert statuses == ["ok", "ok", "ok", "wrong_result", "compile_error", "ok"]
    assert found.values[[0, 5]].tolist() == [1, 1]  # the same code as the default's
    assert found.values[1] == found.values[2] > 1 and found.reasons[2] == SAME_CODE
    assert "other" in found.reasons[3] and "the build ended with exit code" in found.reasons[4]
    assert not (folder / "tuned.out").exists() and not (folder / "program").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "run"),
    [
        ("cp work.sh {out}", "sh {out} {flags}"),
        ("cp work.sh {out}", "sh -c 'sh {out} $WORK'"),
    ],
)
def test_equal_programs_that_are_run_in_other_ways_are_other_measurements(described, build, run):
    environment = 'environment = {WORK = "{flags}"}\n' * ("WORK" in run)
    text = f'[build]\ncommand = """{build}"""\n[run]\ncommand = "{run}"\n{environment}[check]\noutput = "none"\n'
    problem = described(f'{text}[space]\nwhat = [" -none", " -fast"]\n')
    assert bbo_suite.evaluate(problem, np.array([[1]])).values[0] < 0.8
    assert max(problem.ratios(np.array([1]), problem.default_row(), 0, 3)) < 0


@pytest.mark.slow
@needs_gcc
def test_an_equal_program_with_another_library_is_another_measurement(described, tmp_path):
    (tmp_path / "library").mkdir()
    (tmp_path / "library/lib.c").write_text("int cost(void) { return COST; }\n")
    main = '#include <stdio.h>\nint cost(void);\nint main(void) { return printf("cost: %d\\n", cost()) < 0; }\n'
    (tmp_path / "library/main.c").write_text(main)
    build = "gcc {flags} -fPIC -shared -o libx.so lib.c && gcc -o {out} main.c -L. -lx"
    run = '[run]\ncommand = "{out}"\nenvironment = {LD_LIBRARY_PATH = "."}\n'
    text = f"[build]\ncommand = '{build}'\n{run}[cost]\ngoal = 'cost: (\\d+)'\n"
    problem = described(f'{text}[space]\nwhat = ["-DCOST=10", "-DCOST=5"]\n', "library/tune.toml")
    assert bbo_suite.evaluate(problem, np.array([[1]])).values.tolist() == pytest.approx([0.5])


@pytest.mark.slow
@needs_gcc
def test_levels_are_compared_with_the_defaults_in_all_other_places(described, tmp_path):
    (tmp_path / "levels").mkdir()
    (tmp_path / "levels/program.c").write_text(PROGRAM)
    build = '[build]\ncommand = "gcc {flags} {more} -o {out} program.c"\n[cost]\ngoal = "size"\n'
    problem = described(f'{build}[space]\nready = "gcc"\nmore = ["-g", "-g1"]\n', "levels/tune.toml")
    assert set(problem.baselines()) >= {"-O2", "-O3"} and np.isfinite([*problem.baselines().values()]).all()


@pytest.mark.slow
def test_a_check_sees_the_output_of_each_input(described, tmp_path):
    text = '[run]\ncommand = "echo {what} {input}"\ninputs = ["a", "b"]\n'
    check = "[check]\noutput = \"sh -c '! grep -q bad.b {stdout}'\"\n"
    problem = described(f'{text}{check}[space]\nwhat = ["good", "bad", "fine"]\n')
    found = bbo_suite.evaluate(problem, np.array([[1], [2]]))
    assert found.status.tolist() == [Status.WRONG_RESULT, Status.OK]


@pytest.mark.parametrize(
    ("goal", "printed", "outcome"),
    [
        (r"t: ([\d.]+)", "t: 12.5 ms\nt: 9", (12.5, "ms")),
        (r"t: (\S+)", "t: 1e-3\n2", (1e-3, "")),
        (r"^\d+,(\d+),", "3,17,25", (17, "")),
        (r"t: (\d+)", "t: 12.5", "takes '12', a part of '12.5'"),
        (r"t: (\d+)", "t: 1,234,567 cycles", "takes '1', a part of '1,234,567'"),
        (r"t.*(\d+)", "t: 12345", "takes '5', a part of '12345'"),
        (r"t.*(\d+)", "t: 1.5", "takes '5', a part of '1.5'"),
        (r"t: (\d+)?", "t: x", "printed '', not a number"),
        (r"u: (\d+)", "t: 5", "printed nothing for .*'\"\\)$"),
        (r"error (\d+)", "t: 5", "printed nothing for .*2>&1"),
    ],
)
def test_a_goal_finds_a_whole_number_and_its_unit(goal, printed, outcome):
    if isinstance(outcome, tuple):
        assert number_for(goal, printed, "error 7") == outcome
        return
    with pytest.raises(Failed, match=outcome):
        number_for(goal, printed, "error 7")


@pytest.mark.parametrize("place", ["printed", "errors"])
def test_a_goal_that_backtracks_for_ages_is_refused(monkeypatch, place):
    monkeypatch.setattr("bbo_problems.command.worker._SEARCHING", 0.05)
    long = {"printed": "t", "errors": "t"} | {place: f"{'t' * 60}!"}
    with pytest.raises(Failed, match=r"looking for the goal .* takes more than 0\.05 s; write it without"):
        number_for(r"(?:t+)+: (\d+)", **long)
    assert number_for(r"t: (\d+)", "t: 5", "") == (5, "")


@pytest.mark.slow
def test_numbers_of_time_are_compared_in_one_unit(described):
    text = "[run]\ncommand = \"echo t1: {what}\"\n[cost]\ngoal = 't1: (\\S+)'\n[check]\noutput = 'none'\n"
    problem = described(f'{text}[space]\nwhat = ["500 ms", "1 s", "1 ms", "5 apples"]\n')
    assert bbo_suite.evaluate(problem, np.array([[1], [2], [3]])).values.tolist() == pytest.approx([2, 0.002, 0.01])
    text = "[run]\ncommand = \"sh -c 'echo t1: $((1 + $$ % 2))' {flags}\"\n[cost]\ngoal = 't1: (\\S+)'\n"
    assert default_value(described(f'{text}[space]\nwhat = ["a", "b"]\n')) == 1  # a 1 of the name is no number


@pytest.mark.slow
@needs_gcc
def test_size_is_what_is_loaded_and_costs_nothing_to_repeat(described, tmp_path):
    (tmp_path / "sized").mkdir()
    (tmp_path / "sized/program.c").write_text(PROGRAM)
    text = f'[build]\ncommand = "gcc {{flags}} -o {{out}} program.c"\n[cost]\ngoal = "size"\n{FLAGS}'
    problem = described(text, "sized/tune.toml")
    found = bbo_suite.evaluate(problem, np.array([[0], [1], [2]]))
    assert problem.unit == "bytes" and not problem.noisy
    assert found.values[0] == found.values[1] < found.values[2]
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "mine", tmp_path / "sized/program.c"], check=True)
    listed = subprocess.run(["size", "-A", tmp_path / "mine"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines() if line.startswith(".")]
    kept = [int(size) for name, size, start in rows if int(start) and name != ".bss" and ".note" not in name]
    assert found.values[0] == sum(kept)
    assert elf.is_program(tmp_path / "mine") and elf.size(tmp_path / "mine") == sum(kept)


@pytest.mark.slow
@needs_gcc
def test_compiling_tells_the_sizes_of_functions_and_a_failed_build_tells_nothing(described, tmp_path):
    (tmp_path / "told").mkdir()
    (tmp_path / "told/program.c").write_text(PROGRAM)
    text = f'[build]\ncommand = "gcc {{flags}} -o {{out}} program.c"\n[run]\ncommand = "{{out}}"\n{FLAGS}'
    problem = described(text, "told/tune.toml")
    told, names = problem.compile(np.arange(6)[:, None]), problem.statistics
    assert {".text", "main"} <= set(names) and np.isnan(told[5]).all() and np.isfinite(told[:5]).all()
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "mine", tmp_path / "told/program.c"], check=True)
    listed = subprocess.run(["nm", "-S", tmp_path / "mine"], capture_output=True, text=True, check=True).stdout
    (size,) = [line.split()[1] for line in listed.splitlines() if line.endswith(" main")]
    assert told[0, names.index("main")] == int(size, 16)
    assert problem.task(bbo_suite.Level.COSTS).compiler is None


@needs_gcc
def test_the_space_that_is_ready_is_that_of_the_installed_gcc_with_its_levels_as_baselines():
    problem = bbo_suite.problem("command/sort")
    assert problem.flags(problem.default_row()) == "-O3" and len(problem.space) > 100
    assert problem.flags(changed(problem, {"-fgcse": 0, "level": 1})) == "-O2 -fno-gcse"
    assert {"-O2", "-Os", "-O3 -flto"} <= set(problem.build.baselines)


@pytest.mark.parametrize(
    ("command", "space"),
    [("gcc -o x a.c", "gcc"), ("make CC=x", "gcc"), ("clang-17 a.c", "clang"), ("python -m ziglang cc a.c", "clang")],
)
def test_the_space_follows_from_the_compiler(command, space):
    assert suggested(command) == space


@pytest.mark.parametrize(
    ("printed", "tolerance", "words"),
    [
        ("a 1.0\nb 2\n", 0, ""),
        ("a 1.0\nb 3\n", 0, "line 2 is 'b 3', not 'b 2'"),
        ("a 1.0\n", 0, "line 2 is 'nothing', not 'b 2'"),
        ("a 1.001\nb 2\n", 0.01, ""),
        ("a 1.001\nb 2\n", 1e-4, "it prints 1.001, not 1.0"),
        ("c 1.001\nb 2\n", 0.01, "line 1 is 'c 1.001', not 'a 1.0'"),
        ("a 1.0\r\nb 2\n", 0, "line ends"),
    ],
)
def test_how_an_output_differs(printed, tolerance, words):
    assert words in difference(printed, "a 1.0\nb 2\n", tolerance)
    assert bool(difference(printed, "a 1.0\nb 2\n", tolerance)) == bool(words)


BAD = [
    ('build: command="cp nowhere {out} {flags}"', "the build ended with exit code 1: .*nowhere"),
    ('build: command="no-such-compiler {flags} -o {out}"', "no-such-compiler cannot be started: No such file"),
    ('run: command="cat /proc/sys/kernel/random/uuid {flags}"', "differs from run to run .*--check none"),
    ("run: command=\"sh -c 'sleep 73.25 & setsid sleep 73.25 & sh x' {flags}\"", "the run ended with exit code 2"),
]
OTHERS = [
    ('build: command="sleep 73.25"\nseconds=0.5\nenvironment={A="{flags}"}', "the build took more than 0.5 s"),
    ('build: command="true {flags} {out}"', "the build made no {out}"),
    ('build: command="true {flags}"', "the build made no file in its folder"),
    ('run: command="sleep 73.25"\nseconds=0.5\nenvironment={A="{flags}"}', "the run took more than 0.5 s"),
    ("run: command=\"sh -c 'read x </dev/tty' {flags}\"", "the run ended with exit code 2: .*/dev/tty"),
    ("run: command=\"sh -c 'read x' {flags}\"", "the run ended with exit code 1"),
    ('run: command="dd if=/dev/zero of=big bs=1M count=999 {flags}"', "died of SIGXFSZ: it wrote too large a file"),
    ("run: command=\"sh -c 'yes | head -c 99999999' {flags}\"", "the run"),
    ("run: command=\"sh -c 'echo why >&2; exit 3' {flags}\"", "the run ended with exit code 3: why"),
    ('run: command="true {flags}"\n[check]\noutput="false"', "the check ended with exit code 1"),
    ('run: command="true {flags}"\n[check]\noutput="no-such-check"', "no-such-check cannot be started"),
    ('run: command="true {flags}"\n[cost]\ngoal="took ([0-9]+)"', "the run printed nothing for the goal"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "words"), [*BAD, *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHERS)])
def test_a_default_that_does_not_work_is_one_sentence_and_leaves_nothing(described, how, words):
    table, _, text = how.partition(": ")
    run = "" if table == "run" else '[run]\ncommand = "{out}"\n'
    problem = described(f'[{table}]\n{text}\n{run}[space]\n"" = ["", ""]\n'.replace('"" = ["", ""]', 'x = ["", "-"]'))
    with pytest.raises(UserError, match=f"^tuning cannot start: with the default, .*{words}") as error:
        default_value(problem)
    assert "\n" not in str(error.value)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 73.25" not in listed.splitlines()


@pytest.mark.slow
def test_what_hides_from_its_group_ends_with_its_run(described, tmp_path):
    late, folder = tmp_path / "late", tmp_path / "hides"
    folder.mkdir()
    (folder / "hide.sh").write_text('setsid sh -c "sleep 0.5; touch $1" & echo hi')
    text = f'[run]\ncommand = "sh hide.sh {late} {{flags}}"\n[space]\nwhat = ["a", "b", "c"]\n'
    problem = described(text, "hides/tune.toml")
    assert bbo_suite.evaluate(problem, np.array([[1]])).status.tolist() == [Status.OK]
    time.sleep(1)
    assert not late.exists()


@pytest.mark.slow
def test_links_of_the_folder_are_copied_even_if_they_lead_nowhere(described, tmp_path):
    folder = tmp_path / "linked"
    folder.mkdir()
    (folder / "broken").symlink_to("nowhere")
    (tmp_path / "real.txt").write_text("real")
    (folder / "to-file").symlink_to("../real.txt")
    build = '[build]\ncommand = "cp to-file {out} {flags}"\n[run]\ncommand = "cat {out}"\n'
    problem = described(f'{build}[space]\nflag = ["-v", "-p"]\n', "linked/tune.toml")
    assert bbo_suite.evaluate(problem, np.array([[1]])).values.tolist() == [1]


def test_a_folder_too_large_to_copy_is_refused(described, tmp_path):
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(UserError, match="too much to copy for each build; name those that it needs"):
        described(f"{RUN}{SPACE}", "tune.toml")


needs_zig = pytest.mark.skipif(not find_spec("ziglang"), reason="ziglang is not installed")


@needs_zig
@pytest.mark.slow
def test_zig_from_pip_is_a_compiler_with_a_space_that_is_ready(described, tmp_path):
    (tmp_path / "zig").mkdir()
    (tmp_path / "zig/program.c").write_text(PROGRAM)
    text = '[build]\ncommand = "zig cc {flags} -o {out} program.c"\n[run]\ncommand = "{out}"\n'
    problem = described(text, "zig/tune.toml")
    assert {"level", "-funroll-loops", "-mllvm -inline-threshold"} <= set(names_of(problem.space))
    row = changed(problem, {"-mllvm -unroll-threshold": 1})
    assert problem.paste(row) == "zig cc -O3 -mllvm -unroll-threshold=0 -o {out} program.c"
    assert bbo_suite.evaluate(problem, row[None]).status[0] == Status.OK
