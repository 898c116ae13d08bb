"""The values of a slot of the sequence: the passes of LLVM that llvmlite offers, and whole pipelines.

Some passes are left out: those that abort (loop-reduce), that change which symbols a program offers (internalize,
loop-extract), that only print, strip or undo (reg2mem, mergereturn), and new-gvn: `newgvn,dse,newgvn` miscompiles 12 of
27 programs.
"""

from __future__ import annotations

NOTHING = "nothing"
PASSES = (
    "aggressive_dce",
    "aggressive_instcombine",
    "always_inliner",
    "argument_promotion",
    "break_critical_edges",
    "constant_merge",
    "dead_arg_elimination",
    "dead_code_elimination",
    "dead_store_elimination",
    "global_dead_code_eliminate",
    "global_opt",
    "instruction_combine",
    "ipsccp",
    "jump_threading",
    "lcssa",
    "loop_deletion",
    "loop_rotate",
    "loop_simplify",
    "loop_unroll",
    "loop_unroll_and_jam",
    "lower_switch",
    "mem_copy_opt",
    "merge_functions",
    "partial_inliner",
    "post_order_function_attributes",
    "reassociate",
    "rpo_function_attrs",
    "sccp",
    "simplify_cfg",
    "sinking",
    "sroa",
    "tail_call_elimination",
)
FUNCTIONS = "functions"
"""The pipeline that simplifies each function; it has early-cse, gvn, licm and indvars, which llvmlite lacks."""
MODULE = "module"
"""The whole default pipeline, inliner included."""
ACTIONS = (NOTHING, *PASSES, FUNCTIONS, MODULE)
SLOTS = 16
