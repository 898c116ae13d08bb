"""Compilers and the shipped C programs.

A compiler that is missing or too old gives one sentence with the command that installs it; families share all programs,
and two compilers agree on their results.
"""

import shutil
import subprocess
from importlib.metadata import PackageNotFoundError

import pytest

from bbo_problems import packages
from bbo_problems.llvm import ir
from bbo_problems.programs_c import SEEDS, large_names, names, source
from bbo_suite import UserError
from bbo_suite.registry import Registry


@pytest.mark.parametrize(("found", "words"), [("0.8.5", "found 0.8.5"), (None, "found none")])
@pytest.mark.parametrize(
    ("problem", "package", "least"),
    [
        ("llvm/tree", "llvmlite", "0.49"),
        ("xla-passes/gpt2-l1", "jax", "0.10"),
        ("xla-passes/gpt2-l1", "jaxlib", "0.10"),
    ],
)
def test_a_package_that_is_missing_or_too_old_is_reported_with_the_command(
    monkeypatch, problem, package, least, found, words
):
    known = packages.version

    def version(name):
        if name != package:
            return known(name)
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(packages, "version", version)
    remedy = f'run: pip install "{package}>={least}"'
    with pytest.raises(UserError, match=f"{package} {least} or newer.*{words}.*{remedy}"):
        Registry().load(problem)  # `bbo_suite.problem` may know it from another test


@pytest.mark.parametrize("version", ["0.10.2", "0.10.0.dev3", "0.10rc1", "1.0"])
def test_newer_versions_are_accepted_in_any_spelling(monkeypatch, version):
    monkeypatch.setattr(packages, "version", lambda name: version)
    assert packages.installed_version("jax", "0.10", "it") == version


def test_every_program_ships_as_source_and_as_llvm_text():
    assert len(names()) >= 20
    assert ir.names() == tuple(sorted((*names(), *large_names())))
    for name in ir.names():
        lines = source(name).read_text().splitlines()
        assert 40 <= len(lines) <= (140 if name in names() else 340) and "u64 run(u64 seed)" in "\n".join(lines)
        assert "define dso_local i64 @run(i64" in ir.shipped(name)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if i % 3 else []) for i, name in enumerate(ir.names())]
)
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
