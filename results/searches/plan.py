"""Which published search wins where, and what is each of their mechanisms worth?

The tasks are the first of the main study of each family that costs no compilation, and one of each family that it
lacks. A search runs on the tasks that it can run on.
"""

from functools import partial

from bbo_suite import Plan, Search

PROGRAM = "bert-tiny-infer-b64-s128"
GRAPHS = [f"fusion/{PROGRAM}", f"layout/{PROGRAM}", f"joint/{PROGRAM}"]
MESHES = ["sharding/rnn", "scratchpad/bert@2MiB"]
KERNELS = ["tile/mobilenet-1.4-infer-b32", "flags/mobilenet-1.4-infer-b32", "kernel/rnn-infer-b512-s64"]
SEQUENCES = ["ordering/40x50-a", "ehrlich/32x32-a"]
TEMPLATES = [*KERNELS, "scratchpad/bert@2MiB"]


def published(*names: str) -> list[str]:
    """Return the ids of published searches."""
    return [f"published:{name}" for name in names]


def without(search: str, how: str, **options: object) -> dict[str, Search]:
    """Return a published search without one of its mechanisms, by its name in the table."""
    return {f"published:{search} {how}": Search(f"published:{search}", options)}


runs = partial(Plan, budgets=(200, 1_000, 10_000), seeds=10, batch=20, plain_seeds=True, digits=4)

PLANS = [
    runs(
        [*GRAPHS, *MESHES, *KERNELS, *SEQUENCES],
        [
            *("random", "annealing", "evolution", "mbo", "local", "gomea:LinkageTree"),
            *published("taso", "ansor", "tensor-comprehensions", "autotvm", "adatune", "chameleon-sampling"),
        ],
    ),
    runs(
        [*GRAPHS, *MESHES, *KERNELS, *SEQUENCES],
        {
            **without("autotvm", "without model", model=False),
            **without("ansor", "without model", model=False),
            **without("adatune", "with fixed share", adaptive=False),
        },
    ),
    runs(TEMPLATES, published("flextensor", "chameleon")),
    runs(TEMPLATES, without("chameleon", "without clusters", clusters=False)),
    runs([*GRAPHS, *MESHES], published("halide", "pet")),
    runs([*GRAPHS, *MESHES], without("halide", "in one pass", passes=1)),
    runs([*GRAPHS, *MESHES, *KERNELS], published("ils-px")),
    runs(GRAPHS, published("deepcuts")),
]
