"""The shipped C programs: both families have them all, and two compilers agree on their results."""

import shutil
import subprocess

import pytest

from bbo_problems.llvm import ir
from bbo_problems.programs_c import SEEDS, large_names, names, source


def test_every_program_ships_as_source_and_as_llvm_text():
    assert len(names()) >= 20
    assert ir.names() == tuple(sorted((*names(), *large_names())))
    for name in ir.names():
        lines = source(name).read_text().splitlines()
        assert 40 <= len(lines) <= (140 if name in names() else 340) and "u64 run(u64 seed)" in "\n".join(lines)
        assert "define dso_local i64 @run(i64" in ir.shipped(name)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize("name", ir.names())
def test_the_programs_are_sound_and_the_llvm_text_returns_the_same(name, tmp_path):
    """Undefined behaviour would make a correct compiler look wrong; GCC's sanitizers find none."""
    import llvmlite.binding as llvm

    from bbo_problems.gcc.worker import ANSWERED, MAIN
    from bbo_problems.llvm.running import Running

    (tmp_path / "main.c").write_text(MAIN)
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1"]
    build = ["gcc", *checks, str(source(name)), str(tmp_path / "main.c"), "-o", str(tmp_path / "run")]
    subprocess.run(build, check=True)
    seeds = (*SEEDS, 0, 3, 2**64 - 1)
    done = subprocess.run([tmp_path / "run", *map(str, seeds)], capture_output=True, text=True)
    assert done.returncode == ANSWERED, done.stderr
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    with Running(llvm.parse_assembly(ir.shipped(name)), 0) as running:
        assert list(running.results(seeds)) == [int(word) for word in done.stdout.split()]
