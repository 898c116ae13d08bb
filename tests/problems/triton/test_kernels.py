"""The kernels, run by Triton's own interpreter on the CPU, against PyTorch."""

import itertools
import os

import pytest

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
pytest.importorskip("torch")
pytest.importorskip("triton")

from bbo_problems.triton.spaces import TUNED, Tuned
from bbo_problems.triton.worker import Kernel

LAUNCH = {"warps": (4,), "stages": (2,)}
TILES = {"ROWS": (16, 32), "COLUMNS": (16, 32), "DEPTH": (16,)}
SOFTMAX = {"ROWS": (1, 4), "COLUMNS": (16, 64)}
ATTENTION = {"QUERIES": (16, 32), "KEYS": (16, 32), "LAST_FIRST": (0, 1)}
KERNELS = {
    "grouped": Tuned("matmul", (70, 45, 33), TILES | {"GROUP": (1, 3)} | LAUNCH, ()),
    "split": Tuned("matmul", (20, 45, 100), TILES | {"SPLIT": (1, 3, 8)} | LAUNCH, ()),
    "softmax": Tuned("softmax", (7, 50), SOFTMAX | LAUNCH, ()),
    "attention": Tuned("attention", (2, 70, 16), ATTENTION | LAUNCH, ()),
}


@pytest.mark.parametrize("tuned", KERNELS.values(), ids=KERNELS)
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
