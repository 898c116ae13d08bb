"""Inlining at -Oz on programs of ours that no setting was chosen on, and on files of Lua.

Lua's sources are not here: the runs on them need a folder `lua` with them where the command starts.
"""

from bbo_suite import Plan

TRAINING = ("queue", "script", "parser", "bigint", "levenshtein", "lexer", "json", "digest")
"""Settings of `graybox` were chosen on these, and on lcode, lstrlib, ltable and lparser of Lua."""
OURS = (
    *(
        "base64",
        "bits",
        "chacha",
        "compress",
        "crc",
        "fft",
        "hash",
        "life",
        "lz",
        "matrices",
        "matrix",
        "prng",
        "regex",
    ),
)
LUA = ("lbaselib", "ldebug", "ldo", "lgc", "liolib", "llex", "lmathlib", "lobject")
STRATEGIES = ["random", "annealing", "local", "published:inlining-tuner", "graybox"]

PLANS = [
    Plan([f"inlining/{name}" for name in OURS], STRATEGIES, budgets=(200,), seeds=3, batch=10, cutoffs=(20, 50, 100)),
    Plan(
        [f"inlining:lua/{name}.c" for name in LUA], STRATEGIES, budgets=(200,), seeds=1, batch=10, cutoffs=(20, 50, 100)
    ),
    Plan([f"inlining/{name}" for name in OURS], ["annealing"], budgets=(1_000,), seeds=1, batch=10),
]
