"""The store of a fleet: a kill at any moment loses nothing, and results of another fleet are refused."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from bbo_suite.errors import UserError
from bbo_suite.fleet.store import HEAD, LOG

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


def test_another_fleet_or_another_version_is_refused(tmp_path, fleet, log):
    fleet()
    before, head = log.read_bytes(), tmp_path / "store" / HEAD
    with pytest.raises(UserError, match="holds results with settings"):
        fleet(settings=replace(SETTINGS, noise=0.5))
    head.write_text(json.dumps(json.loads(head.read_text()) | {"version": 0}))
    with pytest.raises(UserError, match="version 0"):
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
    size, last = b'"bytes": ', whole.rindex(b"{")
    sizes = [whole.replace(size, size + b"99", 1), whole[:last] + whole[last:].replace(size, size + b"9")]
    heads = [whole[:last] + b"[" + whole[last + 1 :], whole[:last] + whole[last:].replace(b'"day"', b'"dax"')]
    ends = [whole[:-2] + bytes([whole[-2] ^ 1]) + b"\n", whole + b"1,2\n", whole + b"{}\n"]
    for broken in (*flipped, *sizes, *heads, *ends, *(re.sub(rb'"bytes": \d+', size + n, whole) for n in (b"0", b"7"))):
        log.write_bytes(broken)
        with pytest.raises(UserError, match=r"line \d+ is damaged"):
            fleet()
        assert log.read_bytes() == broken
