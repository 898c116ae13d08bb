"""The store of a fleet: a kill at any moment loses nothing, and results of another fleet are refused."""

import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

from bbo_suite.errors import UserError
from bbo_suite.fleet.store import HEAD, LOG, ResultStore

from .conftest import SETTINGS


@pytest.fixture
def log(tmp_path):
    return tmp_path / "store" / LOG


def test_a_fleet_that_was_cut_anywhere_ends_with_the_same_numbers(fleet, log):
    days = fleet("transfer")
    whole, rng = log.read_bytes(), np.random.default_rng(0)
    for size in [0, 1, 60, len(whole) - 1, *rng.integers(0, len(whole), 6).tolist()]:
        log.write_bytes(whole[:size])
        assert fleet("transfer") == days
        assert log.read_bytes() == whole


def test_two_fleets_cannot_write_one_store(tmp_path, fleet):
    with ResultStore(tmp_path / "store", {}), pytest.raises(UserError, match="another process is writing"):
        fleet()


def test_another_fleet_or_another_version_is_refused(tmp_path, fleet, log):
    fleet()
    before, head = log.read_bytes(), tmp_path / "store" / HEAD
    with pytest.raises(UserError, match=r"holds results with settings .* choose another --study"):
        fleet(settings=replace(SETTINGS, noise=0.5))
    head.write_text(json.dumps(json.loads(head.read_text()) | {"version": 0}))
    with pytest.raises(UserError, match="with version 0, but this fleet has 1"):
        fleet()
    head.unlink()
    with pytest.raises(UserError, match="results but no"):
        fleet()
    head.write_text(json.dumps({"version": 1, "policy": "saving", "settings": str(SETTINGS)}))
    with pytest.raises(UserError, match="holds results of more days"):
        fleet(days=6)
    assert log.read_bytes() == before


def test_damage_is_refused_and_left_as_it_is(fleet, log):
    fleet()
    whole = log.read_bytes()
    flipped = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in (5, 300, len(whole) // 2)]
    for broken in (*flipped, whole.replace(b'"bytes": ', b'"bytes": 99', 1)):
        log.write_bytes(broken)
        with pytest.raises(UserError, match=r"line \d+ is damaged"):
            fleet()
        assert log.read_bytes() == broken


def with_checksum(block):
    """Return a block of lines, whose head was changed, with the checksum that it should have."""
    line, _, rows = block.partition(b"\n")
    head = {key: value for key, value in json.loads(line).items() if key != "check"}
    check = zlib.crc32(rows, zlib.crc32(json.dumps(head, sort_keys=True).encode()))
    return json.dumps(head | {"check": check}).encode() + b"\n" + rows


@pytest.mark.parametrize("day", [b"-3", b"0", b"900"])
def test_a_clock_that_jumps_is_refused(fleet, log, day):
    fleet()
    blocks = re.split(rb"(?m)^(?=\{)", log.read_bytes())[1:]
    assert b"".join(map(with_checksum, blocks)) == log.read_bytes()
    blocks[4] = with_checksum(re.sub(rb'"day": \d+', b'"day": ' + day, blocks[4]))
    log.write_bytes(b"".join(blocks))
    with pytest.raises(UserError, match=r"a clock jumped|the policy or the clock has changed"):
        fleet()
