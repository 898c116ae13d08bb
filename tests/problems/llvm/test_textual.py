"""A candidate as a command line of LLVM's `opt`."""

import gzip
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from llvmlite.binding import llvm_version_info

from bbo_problems.llvm.actions import ACTIONS, FUNCTIONS, NAMES, function_pipeline
from bbo_problems.llvm.problem import LlvmProblem

pytestmark = pytest.mark.usefixtures("own_cache")

RENAMED = {
    "lower-switch": "lowerswitch",
    "instcombine<no-verify-fixpoint>": "instcombine",
    "sroa<preserve-cfg>": "sroa",
}
"""Names that were different in LLVM 14, which distributions still have."""


def test_the_default_is_the_default_pipeline():
    problem = LlvmProblem("bits")
    assert '-passes="forceattrs,default<O2>" bits.ll' in problem.paste(problem.default_row())
    assert "-force-attribute=minsize" in problem.paste(problem.default_row())
    fast = LlvmProblem("bits@time")
    assert '-passes="forceattrs,default<O3>" bits.ll' in fast.paste(fast.default_row())
    assert "-force-remove-attribute=minsize" in fast.paste(fast.default_row())


def test_the_command_reads_an_unpacked_file_and_says_how_to_get_it(tmp_path):
    problem = LlvmProblem("bits")
    (packed,) = shlex.split(problem.usage().partition("gunzip -c ")[2].partition(" > bits.ll`")[0])
    assert Path(packed).read_bytes().startswith(b"\x1f\x8b")
    assert f"opt` of LLVM {'.'.join(map(str, llvm_version_info))}," in problem.usage()
    (tmp_path / "own.ll.gz").write_bytes(Path(packed).read_bytes())
    own = LlvmProblem.from_file(str(tmp_path / "own.ll.gz"))
    assert own.paste(own.default_row()).endswith(f" {tmp_path}/own.ll")
    (tmp_path / "own.ll").write_bytes(gzip.decompress(Path(packed).read_bytes()))
    assert "gunzip" not in LlvmProblem.from_file(str(tmp_path / "own.ll")).usage()


def test_a_candidate_keeps_its_order_and_leaves_out_what_does_nothing():
    problem = LlvmProblem("bits")
    row = np.zeros(len(problem.space), int)
    row[[2, 3, 7]] = [ACTIONS.index(action) for action in ("sroa", FUNCTIONS, "global_opt")]
    variable, command = problem.paste(row).split("\n")
    assert variable.startswith("functions='sroa<modify-cfg>,early-cse<memssa>,")
    assert '"forceattrs,function(sroa<preserve-cfg>),function($functions),globalopt"' in command


@pytest.mark.parametrize("level, words", [(2, "<no-nontrivial;trivial>"), (3, "<nontrivial;trivial>")])
def test_function_passes_are_nested_in_the_pipeline(level, words):
    text = function_pipeline(level)
    assert words in text
    assert not re.search("[A-Z]{2,}", text)
    assert text.count("(") == text.count(")") and text.count("<") == text.count(">")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("opt"), reason="LLVM's opt is not installed")
def test_opt_accepts_every_pass(tmp_path):
    (tmp_path / "bits.ll").write_text("define i64 @run(i64 %x) {\n  ret i64 %x\n}\n")
    for action, name in NAMES.items():
        for new, old in [("", ""), *RENAMED.items()]:  # by its present name, or by the one it had
            done = subprocess.run(
                ["opt", "-S", f"-passes={name.replace(new, old) if new else name}", "bits.ll"],
                cwd=tmp_path,
                capture_output=True,
            )
            if not done.returncode:
                break
        assert not done.returncode, (action, name, done.stderr)
