"""The values of a slot of the sequence, and a sequence as a command line of LLVM's tool, `opt -passes=...`.

The values are the passes of LLVM that llvmlite offers, and whole pipelines. Some passes are left out: those that abort
(loop-reduce), that change which symbols a program offers (internalize, loop-extract), that only print, strip or undo
(reg2mem, mergereturn), and new-gvn: `newgvn,dse,newgvn` miscompiles 12 of 27 programs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

NOTHING = "nothing"
FUNCTIONS = "functions"
"""The pipeline that simplifies each function; it has early-cse, gvn, licm and indvars, which llvmlite lacks."""
MODULE = "module"
"""The whole default pipeline, inliner included."""
SLOTS = 16


_MODULE = {
    "always_inliner": "always-inline",
    "argument_promotion": "cgscc(argpromotion)",
    "constant_merge": "constmerge",
    "dead_arg_elimination": "deadargelim",
    "global_dead_code_eliminate": "globaldce",
    "global_opt": "globalopt",
    "ipsccp": "ipsccp",
    "merge_functions": "mergefunc",
    "partial_inliner": "partial-inliner",
    "post_order_function_attributes": "cgscc(function-attrs)",
    "rpo_function_attrs": "rpo-function-attrs",
}
_FUNCTION = {
    "aggressive_dce": "adce",
    "aggressive_instcombine": "aggressive-instcombine",
    "break_critical_edges": "break-crit-edges",
    "dead_code_elimination": "dce",
    "dead_store_elimination": "dse",
    "instruction_combine": "instcombine<no-verify-fixpoint>",  # opt alone verifies the fixpoint, and fails
    "jump_threading": "jump-threading",
    "lcssa": "lcssa",
    "loop_deletion": "loop(loop-deletion)",
    "loop_rotate": "loop(loop-rotate)",
    "loop_simplify": "loop-simplify",
    "loop_unroll": "loop-unroll",
    "loop_unroll_and_jam": "loop(loop-unroll-and-jam)",
    "lower_switch": "lower-switch",
    "mem_copy_opt": "memcpyopt",
    "reassociate": "reassociate",
    "sccp": "sccp",
    "simplify_cfg": "simplifycfg",
    "sinking": "sink",
    "sroa": "sroa<preserve-cfg>",
    "tail_call_elimination": "tailcallelim",
}
NAMES = _MODULE | {action: f"function({name})" for action, name in _FUNCTION.items()}
"""The name of each pass in `opt` of LLVM 22, inside the adaptor for what it works on."""
PASSES = tuple(sorted(NAMES))
ACTIONS = (NOTHING, *PASSES, FUNCTIONS, MODULE)

_UNSWITCH = {2: "no-nontrivial", 3: "nontrivial"}
_CFG = "no-hoist-loads-stores-with-cond-faulting;{};speculate-blocks;simplify-cond-branch;no-speculate-unpredictables"
_EARLY = "no-forward-switch-cond;switch-range-to-icmp;no-switch-to-arithmetic;no-switch-to-lookup;keep-loops"
_LATE = "no-forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;no-switch-to-lookup;keep-loops"
_WORDS = {
    "CFG": f"simplifycfg<bonus-inst-threshold=1;{_EARLY};no-hoist-common-insts;{_CFG.format('no-sink-common-insts')}>",
    "LATE": f"simplifycfg<bonus-inst-threshold=1;{_LATE};hoist-common-insts;{_CFG.format('sink-common-insts')}>",
    "COMBINE": "instcombine<max-iterations=1;no-verify-fixpoint>",
    "ROTATE": "loop-rotate<header-duplication;no-prepare-for-lto>",
}
_PIPELINE = """sroa<modify-cfg>,early-cse<memssa>,speculative-execution<only-if-divergent-target>,jump-threading,
correlated-propagation,CFG,COMBINE,aggressive-instcombine,libcalls-shrinkwrap,tailcallelim,CFG,reassociate,
constraint-elimination,loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,ROTATE,
licm<allowspeculation>,simple-loop-unswitch<UNSWITCH;trivial>),CFG,COMBINE,loop(loop-idiom,indvars,
extra-simple-loop-unswitch-passes,loop-deletion,loop-unroll-full),sroa<modify-cfg>,vector-combine,
mldst-motion<no-split-footer-bb>,gvn<>,sccp,bdce,COMBINE,jump-threading,correlated-propagation,adce,memcpyopt,dse,
move-auto-init,loop-mssa(licm<allowspeculation>),coro-elide,LATE,COMBINE"""


def function_pipeline(level: int) -> str:
    """Return the passes that simplify a function at -O2 or -O3: clang 22.1's `-mllvm -print-pipeline-passes`."""
    words = _WORDS | {"UNSWITCH": _UNSWITCH[level]}
    return re.sub("[A-Z]{3,}", lambda word: words[word[0]], _PIPELINE.replace("\n", ""))


def command(actions: Sequence[str], fast: bool, program: str) -> str:
    """Return the command line of LLVM 22 that runs actions; a shell variable holds the pipeline of functions.

    Args:
      actions: of a candidate.
      fast: whether time is the objective: then no function asks for small code, otherwise all do.
      program: path of the file.
    """
    level = 3 if fast else 2
    known = NAMES | {MODULE: f"default<O{level}>", FUNCTIONS: "function($functions)"}
    variable = f"functions='{function_pipeline(level)}'\n" if FUNCTIONS in actions else ""
    passes = ",".join(["forceattrs", *(known[action] for action in actions)])
    force = "force-remove-attribute" if fast else "force-attribute"
    return f'{variable}opt -S -{force}=minsize -{force}=optsize -passes="{passes}" {shlex.quote(program)}'
