"""Files of models: what is stored is read again, and nothing else is."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest

from bbo_strategies.one_shot.model_file import VERSION, load
from bbo_strategies.one_shot.strategy import SHIPPED
from bbo_suite import UserError


@pytest.fixture
def arrays(model):
    with np.load(model[0]) as file:
        return {name: file[name] for name in file.files}


def packed(arrays, **header):
    """Return the bytes of a file with some entries of the header replaced."""
    stored = json.loads(arrays["header"].tobytes()) | header
    buffer = io.BytesIO()
    np.savez(buffer, **arrays | {"header": np.frombuffer(json.dumps(stored).encode(), np.uint8)})
    return buffer.getvalue()


def test_a_model_that_ships_is_small_and_whole():
    files = sorted(SHIPPED.glob("*.npz"))
    assert [file.stem for file in files] == ["kernel"]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert all(load(file.read_bytes(), file.name).places == 9 for file in files)


class Harmful:
    def __reduce__(self):
        return pytest.fail, ("code of a file was executed",)


def test_a_file_from_a_stranger_runs_no_code(arrays):
    hostile = io.BytesIO()
    np.savez(hostile, **arrays | {"0": np.array([Harmful()], object)})
    for content in (hostile.getvalue(), pickle.dumps(Harmful()), b"", b"PK\x03\x04nonsense"):
        with pytest.raises(UserError, match="m is not a model of one-shot; make one with"):
            load(content, "m")


def test_another_version_is_named(arrays):
    with pytest.raises(UserError, match=f"model m has version 99, but version {VERSION} is needed; pretrain it again"):
        load(packed(arrays, **{"one-shot": 99}), "m")


@pytest.mark.parametrize("header", [{"places": 5}, {"places": -1}, {"features": ["x"]}, {"architecture": "eval"}])
def test_a_header_that_does_not_fit_is_refused(arrays, header):
    with pytest.raises(UserError, match="pretrain it again"):
        load(packed(arrays, **header), "m")


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_weights_must_be_finite_and_complete(arrays, bad):
    broken = dict(arrays)
    broken["1"] = np.full_like(broken["1"], bad)
    with pytest.raises(UserError, match="holds other weights"):
        load(packed(broken), "m")
    del broken["1"]
    with pytest.raises(UserError, match="holds other weights"):
        load(packed(broken), "m")
