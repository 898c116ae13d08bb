"""The kernels, run by Triton's own interpreter on the CPU, against PyTorch."""

import itertools
import os

import pytest

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
pytest.importorskip("torch")
pytest.importorskip("triton")

from bbo_problems.triton.spaces import TUNED, Tuned
from bbo_problems.triton.worker import Kernel

MATMUL = {"ROWS": (16, 32), "COLUMNS": (16, 32), "DEPTH": (16,), "GROUP": (1, 3), "warps": (4,), "stages": (2,)}
SOFTMAX = {"ROWS": (1, 4), "COLUMNS": (16, 64), "warps": (4,), "stages": (1,)}


@pytest.mark.parametrize(
    "tuned", [Tuned("matmul", (70, 45, 33), MATMUL, ()), Tuned("softmax", (7, 50), SOFTMAX, ())], ids=lambda t: t.kernel
)
def test_every_configuration_gives_the_right_result(tuned):
    kernel = Kernel(tuned, "cpu")
    for values in itertools.product(*tuned.values.values()):
        kernel.clear()
        assert kernel.wrong()
        kernel.run(values)
        assert kernel.wrong() == ""


def test_kernels_have_the_parameters_of_their_spaces():
    from bbo_problems.triton import kernels

    for tuned in TUNED.values():
        names = set(getattr(kernels, tuned.kernel).arg_names)
        assert {name for name in tuned.values if name.isupper()} <= names
