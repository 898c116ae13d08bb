"""Are the kernels of the compiler's default as many and as large as those of XLA:TPU's own fusion of the same program?

    python results/landscape/kernels.py

Needs the extra `tpu`. Writes `kernels.csv` beside this file. Kernels in a loop's body count once, on both sides.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rich.progress import track

import bbo_suite
from bbo_problems.tensor_compiler.calibration.compiler import Compiler
from bbo_problems.tensor_compiler.calibration.kernels import kernels, row
from bbo_problems.tensor_compiler.calibration.programs import names, program
from bbo_problems.tensor_compiler.hardware.timing import OPERATIONS
from bbo_problems.tensor_compiler.models.lower import hlo_text

HERE = Path(__file__).parent
MACHINE = "v5e"


def ours(name: str, folder: Path) -> tuple[int, float]:
    """Return the number of kernels of our default, and the mean of the operations in them."""
    path = folder / f"{name}.hlo"
    path.write_text(hlo_text(program(name)))
    problem = bbo_suite.problem(f"fusion:{path}@{MACHINE}")
    found = problem._fusion.kernels(problem.default)
    return len(found.result), float(found.operations.mean())


def main() -> None:
    """Compare all models of the catalogue that the comparison with XLA:TPU compiles."""
    compiler, rows = Compiler(), []
    models = [name for name in names() if not name.rpartition("-")[2].isdecimal()]
    with tempfile.TemporaryDirectory() as folder:
        for name in track(models):
            theirs = [row(kernel)[0][OPERATIONS] for kernel in kernels(compiler.text(name, MACHINE))]
            count, mean = ours(name, Path(folder))
            rows.append((name, count, len(theirs), count / len(theirs), mean, float(np.mean(theirs))))
    compiler.close()
    columns = ["program", "kernels", "XLA kernels", "ratio", "operations a kernel", "XLA operations a kernel"]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(HERE / "kernels.csv", index=False, float_format="%.3g")
    print(table.to_string(index=False))
    print(table["ratio"].describe().to_string())


if __name__ == "__main__":
    main()
