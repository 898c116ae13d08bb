"""A compiler that aborts, hangs or needs too much memory costs one candidate; contradicted estimates are not wins."""

import ast
from pathlib import Path

import numpy as np
import pytest

from bbo_problems.xla_tpu.problem import XlaTpuProblem
from bbo_suite import Status, UserError
from bbo_suite.core import libraries
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.registry import Registry

pytestmark = pytest.mark.usefixtures("own_cache")


class Fake(XlaTpuProblem):
    target = "fake_tpu_compiler:serve"


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr("bbo_problems.xla_tpu.problem.libtpu_version", lambda: "0")
    problem = Fake("mlp")
    return problem


def changed(problem, *names):
    row = problem.default_row()
    for name in names:
        place = next(i for i in range(len(row)) if problem.space.name(i) == name)
        row[place] = (row[place] + 1) % problem.space.sizes[place]
    return row


@pytest.mark.slow
def test_a_misbehaving_compiler_costs_one_candidate(fake):
    flags = (
        "xla_tpu_enforce_prefetch_fifo_order",  # aborts
        "xla_tpu_scavenge_vmem_for_fusions",  # hangs
        "xla_tpu_order_dot_after_layout",  # eats memory
        "xla_memory_scheduler",  # refuses
    )
    result = evaluate(fake, np.stack([changed(fake), *(changed(fake, flag) for flag in flags), changed(fake)]))
    assert result.status.tolist() == [0, 2, 4, 2, 2, 0]
    assert result.values[0] == result.values[-1] == 1000.0
    reasons = ["SIGABRT", "took more than 0.5 s to compile", "out of memory", "no such scheduler"]
    assert all(reason in result.reasons[i] for i, reason in enumerate(reasons, 1))


def test_a_win_that_the_roofline_contradicts_costs_what_the_roofline_says(fake):
    flags = ("xla_tpu_dot_dot_fusion", "xla_tpu_rwb_fusion", "xla_jf_conv_input_fusion", "xla_jf_conv_output_fusion")
    result = evaluate(fake, np.stack([changed(fake, flag) for flag in flags]))
    assert result.values.tolist() == [900.0, 1200.0, 1500.0, np.inf]
    assert result.status.tolist() == [Status.OK, Status.OK, Status.OK, Status.COMPILE_ERROR]
    assert result.reasons[0] == "roofline +0.0%, peak memory +20.0%"
    assert result.reasons[1].startswith("contradicted: estimated -50.0%, but roofline +20.0%")
    assert result.reasons[2] == "roofline +20.0%, peak memory +0.0%"
    assert "trips" in result.reasons[3]


def test_kernels_are_parts_and_what_a_contradicted_candidate_costs_beyond_them_is_one(fake):
    flags = ("xla_tpu_rwb_fusion", "xla_jf_conv_output_fusion")
    result = evaluate(fake, np.stack([changed(fake, flag) for flag in flags]), with_parts=True)
    assert result.values.tolist() == [1200.0, np.inf] and result.parts.starts.tolist() == [0, 3, 3]
    assert sorted(zip(result.parts.counts, result.parts.costs, strict=True)) == [(1, 100), (1, 700), (2, 200)]


@pytest.mark.slow
def test_a_program_that_kills_its_process_gives_one_sentence(fake):
    with pytest.raises(UserError, match="died of SIGABRT"):
        Fake.from_file(f"{__file__}:gone")


def test_pasted_code_is_python_and_names_every_decision(fake):
    row = changed(fake, "xla_tpu_dot_dot_fusion", "layout x", "barrier x")
    text = fake.paste(row)
    ast.parse(text)
    assert "900 cycles estimated, the default 1,000; roofline +0.0%, peak memory +20.0%" in text
    assert "'xla_tpu_dot_dot_fusion': 'false'" in text and "barriers = [\n    'x'" in text
    assert "# x: float32[8, 128]" in text and "libtpu 0" in text
    assert "# or for all programs of a process: LIBTPU_INIT_ARGS=--xla_tpu_dot_dot_fusion=false\n" in text
    assert "LIBTPU_INIT_ARGS" not in fake.paste(fake.default_row()) and "libtpu 0" in fake.usage()


@pytest.mark.slow
def test_machine_and_version_are_part_of_the_identity(fake, monkeypatch):
    assert Fake("mlp@v6e").fingerprint() != fake.fingerprint() == Fake("mlp@v5e").fingerprint()
    monkeypatch.setattr("bbo_problems.xla_tpu.problem.libtpu_version", lambda: "1")
    assert Fake("mlp").fingerprint() != fake.fingerprint()
    with pytest.raises(UserError, match="@v5e"):
        Fake("mlp@v9")


@pytest.mark.slow
def test_flags_alone_are_the_same_parameters_for_all_programs(fake):
    flags = [Fake("mlp#flags"), Fake("conv@v4#flags")]
    assert flags[0].space.digest() == flags[1].space.digest() and len(flags[0].space) < len(fake.space)
    assert {fake.space.name(i) for i in range(len(fake.space))} > {"xla_tpu_rwb_fusion", "barrier x"}
    assert flags[0].space.name(len(flags[0].space) - 1).startswith("xla_")
    assert flags[0].fingerprint() != fake.fingerprint() and default_value(flags[0]) == 1000.0
    assert flags[0].structure().starts.tolist() == [0] * (len(flags[0].space) + 1)


def test_the_default_and_the_structure_fit_the_space(fake):
    assert default_value(fake) == 1000.0 and fake.request(fake.default_row()).flags == ()
    structure = fake.structure()
    names = [fake.space.name(i) for i in range(len(fake.space))]
    of = names.index("barrier x")
    neighbours = structure.neighbours[structure.starts[of] : structure.starts[of + 1]]
    assert {names[i] for i in neighbours} == {"layout argument", "layout x", "layout result"}
    assert structure.starts[-1] == len(structure.neighbours) and structure.features.shape[0] == len(names)
    assert len(structure.graph.node_features) == 3 and (structure.nodes[:of] <= 2).all()


@pytest.mark.parametrize("problem", ["xla-tpu/mlp", "pallas/matmul"])
def test_without_libtpu_the_family_is_listed_and_one_sentence_names_the_extra(problem, monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert problem in Registry().instances()
    with pytest.raises(UserError, match=r'needs libtpu, .* run: pip install "bbo_suite\[tpu\]"'):
        Registry().load(problem)
    with pytest.raises(UserError, match="names no function"):
        Registry().load("xla-tpu:none.py")
