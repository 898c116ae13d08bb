"""The table of machines against JAX's own, and how ids name a machine."""

from __future__ import annotations

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.hardware.machine import MACHINES, split_machine
from bbo_suite import UserError


@pytest.mark.parametrize("name", MACHINES)
def test_peak_rates_are_those_of_jax(name: str) -> None:
    table = pytest.importorskip("jax._src.pallas.mosaic.tpu_info")
    version, cores = table.ChipVersion(name), 2 if name in ("v4", "v5p") else 1
    noted, machine = table._get_tpu_info_impl(version, cores), MACHINES[name]
    assert machine.memory * machine.hertz == pytest.approx(noted.mem_bw_bytes_per_second * cores, rel=0.01)
    assert machine.matrix * machine.hertz == pytest.approx(noted.bf16_ops_per_second * cores, rel=0.01)
    assert machine.scratchpad <= noted.vmem_capacity_bytes * cores
    units = 2 if name in ("v2", "v3", "v4") else 4
    assert machine.vector == units * noted.num_lanes * noted.num_sublanes * cores


def test_the_machine_is_part_of_the_id() -> None:
    assert split_machine("resnet50") == ("resnet50", "v5e")
    assert split_machine("resnet50@v4") == ("resnet50", "v4")
    with pytest.raises(UserError, match="@v5e"):
        split_machine("resnet50@v5q")


def test_machines_differ_in_cost_and_fingerprint_and_not_in_space() -> None:
    small, large = (bbo_suite.problem(f"fusion/resnet50@{machine}") for machine in ("v2", "v6e"))
    assert small.space.digest() == large.space.digest()
    assert small.fingerprint() != large.fingerprint()
    row = np.zeros((1, len(small.space)), np.int8)
    assert small.evaluate(row).values[0] > 2 * large.evaluate(row).values[0]
