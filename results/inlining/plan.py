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
LUA = ("ldebug", "llex", "lobject", "lmathlib", "lbaselib", "ldo")
MODULES = [*(f"inlining/{name}" for name in OURS), *(f"inlining:lua/{name}.c" for name in LUA)]


def runs(strategies: list[str], seeds: int, budget: int = 200) -> Plan:
    """Return the plan of some strategies on all modules."""
    cutoffs = tuple(after for after in (20, 50, 100, 200) if after < budget)
    return Plan(MODULES, strategies, budgets=(budget,), seeds=seeds, batch=10, cutoffs=cutoffs)


PLANS = [
    runs(["annealing", "local", "graybox"], 5),
    runs(["random"], 5),
    runs(["published:inlining-tuner"], 1),  # nothing is drawn in it
    runs(["annealing"], 1, 1000),
]
