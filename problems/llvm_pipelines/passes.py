"""The values of a slot: the transformations of LLVM 22, by the pass manager that runs them, and its own pipelines.

They are those of `opt --print-passes`, with their documented parameters. Left out are passes that print, verify,
instrument, strip, only prepare code generation (on GPUs, too), or serve another language; and newgvn, because
`newgvn,dse,newgvn` miscompiles 12 of 27 programs. `pipelines` turns a sequence into pipelines of nested pass managers,
in the language of `opt -passes`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NOTHING = "nothing"
CLOSE = "close"
"""Ends all open pass managers, so that the next pass opens new ones."""
SMALL, FAST = "default<O2>", "default<O3>"
"""What clang runs at -Oz, where all functions ask for minimal size, and at -O3."""
PIPELINES = (SMALL, FAST, "default<Oz>", "default<Os>", "default<O1>", "lto<Oz>", "lto<O2>")
"""Whole pipelines; the module is written and read again after each, so that equal beginnings are run once."""


def _words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


MODULE = _words("""
always-inline annotation2metadata attributor attributor-light called-value-propagation constmerge deadargelim
elim-avail-extern globaldce globalopt global-merge globalsplit hotcoldsplit inferattrs inliner-wrapper ipsccp
ipsccp<no-func-spec> iroutliner loop-extract loop-extract<single> mergefunc module-inline partial-inliner
rel-lookup-table-converter rpo-function-attrs scc-oz-module-inliner strip-dead-prototypes
""")
CGSCC = _words("""
argpromotion attributor-cgscc attributor-light-cgscc function-attrs function-attrs<skip-non-recursive-function-attrs>
inline inline<only-mandatory>
""")
_SIMPLIFY = "simplifycfg<bonus-inst-threshold={};{}>"
FUNCTION = [
    *_words("""
adce aggressive-instcombine alignment-from-assumptions bdce break-crit-edges callsite-splitting chr consthoist
constraint-elimination correlated-propagation dce dfa-jump-threading div-rem-pairs dse early-cse early-cse<memssa>
expand-memcmp expand-reductions flatten-cfg float2int gvn gvn<no-pre> gvn<no-load-pre>
gvn<memoryssa;no-memdep> gvn-hoist gvn-sink infer-alignment instcombine<no-verify-fixpoint>
instcombine<max-iterations=3;no-verify-fixpoint> instsimplify jump-threading lcssa libcalls-shrinkwrap
load-store-vectorizer loop-data-prefetch loop-distribute loop-fusion loop-load-elim loop-simplify loop-sink
loop-unroll<O2> loop-unroll<O3> loop-unroll<no-partial;no-runtime;full-unroll-max=4> loop-vectorize
loop-vectorize<interleave-forced-only;vectorize-forced-only> loop-versioning lower-constant-intrinsics lower-expect
lower-switch mem2reg memcpyopt mergeicmps mergereturn mldst-motion mldst-motion<split-footer-bb> move-auto-init
nary-reassociate partially-inline-libcalls reassociate reg2mem scalarizer scalarizer<load-store> sccp select-optimize
separate-const-offset-from-gep separate-const-offset-from-gep<lower-gep> sink slp-vectorizer slsr
speculative-execution speculative-execution<only-if-divergent-target> sroa<modify-cfg> sroa<preserve-cfg>
tailcallelim typepromotion vector-combine function-simplification<O1>
function-simplification<O2> function-simplification<Oz>
"""),
    "simplifycfg",
    _SIMPLIFY.format(0, "no-speculate-blocks;no-simplify-cond-branch"),
    _SIMPLIFY.format(1, "hoist-common-insts"),
    _SIMPLIFY.format(1, "sink-common-insts"),
    _SIMPLIFY.format(1, "hoist-common-insts;sink-common-insts;no-keep-loops"),
    _SIMPLIFY.format(1, "forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;switch-to-lookup"),
    _SIMPLIFY.format(4, "hoist-common-insts;sink-common-insts;speculate-unpredictables;switch-to-lookup"),
    _SIMPLIFY.format(16, "hoist-common-insts;sink-common-insts;forward-switch-cond;switch-to-lookup;no-keep-loops"),
]
LOOP = _words("""
canon-freeze extra-simple-loop-unswitch-passes indvars loop-bound-split loop-deletion loop-flatten loop-idiom
loop-interchange loop-predication loop-reduce loop-term-fold loop-unroll-and-jam loop-unroll-full loop-versioning-licm
""")
LOOP_MEMORY = _words("""
licm<allowspeculation> licm<no-allowspeculation> lnicm loop-instsimplify loop-rotate
loop-rotate<no-header-duplication> loop-simplifycfg simple-loop-unswitch<nontrivial;trivial>
simple-loop-unswitch<no-nontrivial;trivial>
""")
"""Passes over loops that need memory in SSA form, in a manager of their own."""
LEVELS = {
    **dict.fromkeys(MODULE, "module"),
    **dict.fromkeys(CGSCC, "cgscc"),
    **dict.fromkeys(FUNCTION, "function"),
    **dict.fromkeys(LOOP, "loop"),
    **dict.fromkeys(LOOP_MEMORY, "loop-mssa"),
}
"""The manager that runs each pass."""
ACTIONS = (NOTHING, CLOSE, *PIPELINES, *LEVELS)
SLOTS = 32


_OUTER = {"module": "", "cgscc": "module", "function": "cgscc", "loop": "function", "loop-mssa": "function"}
"""The manager in which each manager may lie; one of functions also lies directly in the module."""


def pipelines(actions: Sequence[str]) -> list[str]:
    """Return the pipelines to run one after another: each of LLVM's own is one, and so is what lies between them.

    A pass is run by the innermost open manager that can hold it or its manager; managers inside that one are closed.
    So neighbours of one kind share a manager, functions after `inline` are simplified in the order of the call graph,
    and loops lie in functions.
    """
    made: list[str] = []
    waiting: list[str] = []
    for action in actions:
        if action in PIPELINES:
            made += [*_nested(waiting), action]
            waiting = []
        else:
            waiting.append(action)
    return [*made, *_nested(waiting)]


def _nested(actions: Sequence[str]) -> list[str]:
    text, open_managers = "", list[str]()
    for action in actions:
        wanted = [] if action == CLOSE else _managers(LEVELS[action], open_managers)
        shared = 0
        while shared < min(len(wanted), len(open_managers)) and wanted[shared] == open_managers[shared]:
            shared += 1
        text += ")" * (len(open_managers) - shared)
        for manager in wanted[shared:]:
            text += _comma(text) + manager + "("
        open_managers = wanted
        if action != CLOSE:
            text += _comma(text) + action
    return [text + ")" * len(open_managers)] if text else []


def _managers(level: str, open_managers: Sequence[str]) -> list[str]:
    """Return the managers that a pass of a level lies in, from the outermost on, without the module's."""
    wanted: list[str] = []
    while level != "module":
        wanted.insert(0, level)
        level = _OUTER[level]
        if level == "cgscc" and "cgscc" not in open_managers:
            break
    return wanted


def _comma(text: str) -> str:
    return "," if text and text[-1] != "(" else ""
