"""A small file in the contest's format, and the place of the real ones."""

import gzip
import json
from pathlib import Path

import pytest

REAL = Path(__file__).parents[4] / "shared/data/iopddl"
BIG = 10**18


def small():
    """Four nodes in a ring and one alone; the candidate of least memory has an impossible pair, (0, 1)."""
    return {
        "problem": {
            "name": "ring",
            "nodes": {
                "intervals": [[0, 10], [5, 15], [10, 20], [10, 10], [3, 900]],
                "costs": [[5, 0], [1, 2, 3], [7, 7], [4, 0], [9]],
                "usages": [[10, 20], [1, 5, 9], [8, 2], [100, 100], [3]],
            },
            "edges": {
                "nodes": [[0, 1], [2, 1], [2, 3], [3, 0]],
                "costs": [[BIG, 4, 0, 1, 1, 1], [0, 0, 0, 3, 1, 2], [0, 6, 6, 0], [0, 6, 6, 0]],
            },
            "usage_limit": 30,
        }
    }


@pytest.fixture
def document():
    return small()


@pytest.fixture
def write(tmp_path):
    def written(document, name="ring.json"):
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return written
