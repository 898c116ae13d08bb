"""Spaces of schedules and their text; these tests run without Halide."""

import numpy as np
import pytest

from bbo_problems.halide import schedules
from bbo_problems.halide.problem import HalideProblem
from bbo_problems.halide.schedules import PIPELINES, source, structure
from bbo_suite import UserError
from bbo_suite.core import libraries

pytestmark = pytest.mark.usefixtures("own_cache")

LOOPS = {"root": 0, "tile": 1, "slide": 2, "row": 2}


def settings(name, width=8, **changed):
    pipeline = PIPELINES[name]
    space = schedules.space(pipeline, False)
    row = schedules.default(pipeline, False, width)
    names = [space.name(i) for i in range(len(space))]
    for key, value in changed.items():
        i = names.index(key.replace("__", "."))
        row[i] = list(space.values(i)).index(value)
    return space, row


def text(name, **changed):
    space, row = settings(name, **changed)
    return source(PIPELINES[name], space.describe(row)).splitlines()


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("name", PIPELINES)
def test_the_default_is_allowed_on_every_machine(name, threads):
    for width in (4, 8, 16):
        space = schedules.space(PIPELINES[name], threads)
        assert space.allowed(schedules.default(PIPELINES[name], threads, width)[None])[0]


def test_a_schedule_is_python_to_paste_after_the_algorithm():
    assert text("blur", blur_x__unroll_x=2) == [
        "xo, yo, xi, yi = (hl.Var(name) for name in 'xo yo xi yi'.split())",
        "blur_y.tile(x, y, xo, yo, xi, yi, 64, 1024).reorder(xi, yi, xo, yo).vectorize(xi, 8)",
        "blur_x.compute_at(blur_y, xo).vectorize(x, 8).unroll(x, 2)",
    ]
    assert text("blur", blur_y__order="xi yi yo xo")[2] == "blur_x.compute_at(blur_y, yo).vectorize(x, 8)"
    kept = "blur_x.store_at(blur_y, xo).compute_at(blur_y, yi).vectorize(x, 8)"
    assert text("blur", blur_x__place="slide")[2] == kept
    assert text("matmul", packed__place="root", packed__storage="y x")[2:] == [
        "product.compute_at(relu, xo).vectorize(x, 8).unroll(x, 2).unroll(y, 8)",
        "product.update().reorder(x, y, k.x).vectorize(x, 8).unroll(x, 2).unroll(y, 8)",
        "packed.compute_root().reorder_storage(y, x).vectorize(x, 8)",
    ]


@pytest.mark.parametrize("name", PIPELINES)
def test_no_stage_is_computed_deeper_than_its_users_and_blocks_divide_tiles(name):
    """Compare with a recursive check, for sampled rows and for random rows that may break the rule."""
    stages = {stage.name: stage for stage in PIPELINES[name].stages}
    space = schedules.space(PIPELINES[name], False)

    def around(stage, chosen):
        """The deepest loop that encloses all uses."""
        deepest = 2
        for consumer in stages[stage].consumers:
            place = chosen.get(f"{consumer}.place", "row")
            deepest = min(deepest, around(consumer, chosen) if place == "inline" else LOOPS[place])
        return deepest

    def blocks(chosen):
        """What must divide what."""
        output = PIPELINES[name].output
        for stage in stages.values():
            for i, loop in enumerate(stage.unrolled[: 2 if stage is output else stage.exact]):
                block = chosen[f"{stage.name}.unroll_{loop}"] * (1 if i else chosen[f"{stage.name}.vector"])
                yield chosen[f"{output.name}.tile_{output.axes[i]}"], block
                if i and chosen.get(f"{stage.name}.place") == "row":
                    yield chosen[f"{output.name}.unroll_{output.unrolled[1]}"], block

    def holds(chosen):
        places = {s: chosen[f"{s}.place"] for s, stage in stages.items() if stage.places}
        nested = all(place == "inline" or LOOPS[place] <= around(s, chosen) for s, place in places.items())
        return nested and all(whole % block == 0 for whole, block in blocks(chosen))

    rng = np.random.default_rng(0)
    assert all(holds(space.describe(row)) for row in space.sample(200, rng))
    rows = rng.integers(0, space.sizes, (2000, len(space)))
    expected = [holds(space.describe(row)) for row in rows]
    assert space.allowed(rows).tolist() == expected and 0 < sum(expected) < 2000


@pytest.mark.parametrize("name", PIPELINES)
def test_the_declared_structure_is_symmetric_and_distinguishes_stages(name):
    space = schedules.space(PIPELINES[name], False)
    declared = structure(PIPELINES[name], space)
    rows = np.repeat(np.arange(len(space)), np.diff(declared.starts))
    pairs = set(zip(rows.tolist(), declared.neighbours.tolist(), strict=True))
    assert pairs == {(b, a) for a, b in pairs} and all(a != b for a, b in pairs)
    assert len(declared.features) == len(space) == len(declared.nodes)
    assert declared.graph.edges.max() < len(declared.graph.node_features) == len(PIPELINES[name].stages)
    deciders = {space.name(i).partition(".")[0]: node for i, node in enumerate(declared.nodes.tolist())}
    assert deciders == {stage.name: i for i, stage in enumerate(PIPELINES[name].stages)}


def test_without_halide_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'halide/... needs halide, .* run: pip install "bbo_suite\[halide\]"'):
        HalideProblem("blur")
    with pytest.raises(UserError, match="unknown variant"):
        HalideProblem("blur@gpu")
