"""Draws `policies.png` from `policies-operations.csv`: what the policy saves alone, beside the best search."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

HERE = Path(__file__).parent
COLUMNS = {
    "policy alone": "policy alone, 1 episode",
    "fixed sequence": "one fixed sequence",
    "best search": "best search",
}

if __name__ == "__main__":
    table = pd.read_csv(HERE / "policies-operations.csv")
    table = table[table["group"] != "train"]
    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    for number, (column, label) in enumerate(COLUMNS.items()):
        saved = 100 * (1 - table[column] / table["default"])
        axes.barh(np.arange(len(table)) + 0.27 * (number - 1), saved, 0.27, label=label)
    axes.set_yticks(range(len(table)), table["program"] + " (" + table["group"] + ")", fontsize=6)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("operations fewer than by default, % (more is better); no bar: level, or not searched", fontsize=8)
    axes.legend(fontsize=8)
    figure.savefig(HERE / "policies.png", dpi=100)
