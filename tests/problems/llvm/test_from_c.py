"""Files of C and C++ become modules by the clang of pip's zig, which needs no compiler of the system."""

from importlib.util import find_spec

import pytest

import bbo_suite
from bbo_problems import packages
from bbo_suite import Status, UserError

needs_zig = pytest.mark.skipif(not find_spec("ziglang"), reason="ziglang is not installed")
RUN = "#include <stdint.h>\nuint64_t run(uint64_t n) { uint64_t s = 0; for (n %= 99; n;) s += n-- % 7; return s; }\n"
MAIN = '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n'


@needs_zig
@pytest.mark.parametrize(
    ("name", "text", "compared"),
    [
        ("run.c", RUN, "run and compared"),
        ("main.c", MAIN, "its output compared"),
        ("run.cpp", f'extern "C" {{\n{RUN}\n}}', "run and compared"),
        ("-dash.c", MAIN, "its output compared"),
        ("@at.C", f"\ufeff{MAIN}", "its output compared"),
        ("date.c++", MAIN.replace('"hello"', "__DATE__ __TIME__"), "its output compared"),
    ],
)
def test_a_file_of_c_is_tuned_as_it_is(tmp_path, name, text, compared):
    (tmp_path / name).write_text(text)
    problem = bbo_suite.problem(f"llvm:{tmp_path / name}")
    assert compared in problem.facts()["results"]
    assert bbo_suite.evaluate(problem, problem.default_row()[None]).status[0] == Status.OK
    made = f"{'./' if name[0] in '-@' else ''}{name.partition('.')[0]}.ll"
    assert problem.paste(problem.default_row()).endswith(f" {made}")
    command = f"python -m ziglang c{'c' if name.endswith('.c') else '++'} "
    assert command in problem.usage() and f" {tmp_path / name} -o {made}, and then" in problem.usage()
    again = bbo_suite.registry.Registry().load(problem.id)
    assert again.fingerprint() == problem.fingerprint()


@needs_zig
def test_what_does_not_compile_is_one_sentence(tmp_path):
    (tmp_path / "bad.c").write_text("int run(")
    with pytest.raises(UserError, match=r"bad\.c does not compile: .*error.* flags, such as -I or -D, give what"):
        bbo_suite.problem(f"llvm:{tmp_path / 'bad.c'}")
    (tmp_path / "a:b.c").write_text(RUN)
    with pytest.raises(UserError, match=r"a:b\.c': zig takes no name with ':'; give the file another one"):
        bbo_suite.problem(f"llvm:{tmp_path / 'a:b.c'}")


def test_without_zig_the_extra_is_named(tmp_path, monkeypatch):
    def missing(*_):
        raise UserError('a file of C needs ziglang, which is not installed; run: pip install "bbo_suite[c]"')

    monkeypatch.setattr(packages, "require", missing)
    (tmp_path / "run.c").write_text(RUN)
    with pytest.raises(UserError, match=r"bbo_suite\[c\]"):
        bbo_suite.problem(f"llvm:{tmp_path / 'run.c'}")
