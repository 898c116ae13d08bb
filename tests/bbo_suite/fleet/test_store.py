"""The store of a fleet: a kill at any moment loses nothing, and nothing foreign is taken for its own."""

import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

from bbo_suite.errors import UserError
from bbo_suite.fleet.store import HEAD, LOG, ResultStore, _sealed_head

from .conftest import SETTINGS


@pytest.fixture
def log(tmp_path):
    return tmp_path / "store" / LOG


def test_a_fleet_that_was_cut_anywhere_ends_with_the_same_numbers(fleet, log):
    days = fleet("transfer")
    whole, rng = log.read_bytes(), np.random.default_rng(0)
    for size in [0, 1, 60, len(whole) - 1, len(whole), *rng.integers(0, len(whole), 12).tolist()]:
        log.write_bytes(whole[:size])
        assert fleet("transfer") == days
        assert log.read_bytes() == whole


def test_a_fleet_that_stopped_after_a_day_goes_on(fleet, log):
    days = fleet("saving", folder="other")
    assert fleet("saving", stop=5) == days[:5]
    assert 0 < log.stat().st_size < (log.parents[1] / "other" / LOG).stat().st_size
    assert fleet("saving") == days


def test_two_fleets_cannot_write_one_store(tmp_path, fleet):
    with (
        ResultStore(tmp_path / "store", {}),
        pytest.raises(UserError, match=r"another process is writing the fleet in"),
    ):
        fleet()


def test_another_fleet_or_another_version_is_refused(tmp_path, fleet, log):
    fleet()
    before = log.read_bytes()
    with pytest.raises(UserError, match=r"holds results with settings .* choose another --study"):
        fleet(settings=replace(SETTINGS, noise=0.5))
    head = json.loads((tmp_path / "store" / HEAD).read_text())
    (tmp_path / "store" / HEAD).write_text(json.dumps(head | {"version": 0}))
    with pytest.raises(UserError, match="holds results with version 0, but this fleet has 1"):
        fleet()
    (tmp_path / "store" / HEAD).unlink()
    with pytest.raises(UserError, match=r"has results but no fleet.json"):
        fleet()
    assert log.read_bytes() == before


def test_damage_is_refused_and_left_as_it_is(fleet, log):
    fleet()
    whole = bytearray(log.read_bytes())
    for place in (5, 300, len(whole) // 2):
        broken = whole.copy()
        broken[place] ^= 1
        log.write_bytes(broken)
        with pytest.raises(UserError, match=r"damaged at byte|holds job"):
            fleet()
        assert log.read_bytes() == broken


def blocks(data):
    found = []
    while data:
        line, _, rest = data.partition(b"\n")
        size = json.loads(line)["bytes"]
        found.append((json.loads(line), rest[:size]))
        data = rest[size:]
    return found


def sealed(head, text):
    head = {key: value for key, value in head.items() if key != "check"}
    return json.dumps(head | {"check": zlib.crc32(text, zlib.crc32(_sealed_head(head)))}).encode() + b"\n" + text


@pytest.mark.parametrize("day", [-3, 0, 900])
def test_a_clock_that_jumps_is_refused(fleet, log, day):
    fleet()
    found = blocks(log.read_bytes())
    found[4] = (found[4][0] | {"day": day}, found[4][1])
    log.write_bytes(b"".join(sealed(*block) for block in found))
    with pytest.raises(UserError, match=r"a clock jumped|the policy or the clock has changed"):
        fleet()


def test_more_days_than_asked_for_are_refused(fleet):
    fleet(days=12)
    with pytest.raises(UserError, match="holds results of more days"):
        fleet(days=6)
