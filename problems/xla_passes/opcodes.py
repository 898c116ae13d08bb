"""The kinds of operations that an observation counts separately."""

from __future__ import annotations

import re

OPCODES = tuple(
    re.findall(
        r"\S+",
        """
    abs add and batch-norm-grad batch-norm-training bitcast-convert broadcast call clamp compare concatenate conditional
    convert convolution copy cosine divide dot dynamic-slice dynamic-update-slice erf exponential floor gather iota log
    log-plus-one logistic map maximum minimum multiply negate not or pad power reduce reduce-window remainder reshape
    reverse rsqrt scatter select select-and-scatter sign sine slice sort sqrt subtract tanh transpose while xor
    """,
    )
)
