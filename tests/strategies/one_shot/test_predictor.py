"""Files of models: those that ship, and what does not fit its header."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_strategies.one_shot.predictor import FILE, load
from bbo_strategies.one_shot.strategy import SHIPPED
from bbo_suite import UserError

pytestmark = pytest.mark.slow  # compiles networks


def test_a_model_that_ships_is_small_and_whole():
    files = sorted(SHIPPED.glob("*.npz"))
    assert [file.stem for file in files] == ["kernel"]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert all(load(file.read_bytes(), file.name).places == 9 for file in files)


@pytest.mark.parametrize("header", [{"places": 5}, {"places": -1}, {"features": ["x"]}, {"architecture": "eval"}])
def test_a_header_that_does_not_fit_is_refused(model, tmp_path, header):
    stored, arrays = FILE.load(model[0].read_bytes(), "m")
    FILE.save(tmp_path / "m.npz", stored | header, arrays)
    with pytest.raises(UserError, match="damaged"):
        load((tmp_path / "m.npz").read_bytes(), "m")


def test_weights_must_be_finite(model, tmp_path):
    header, arrays = FILE.load(model[0].read_bytes(), "m")
    FILE.save(tmp_path / "m.npz", header, arrays | {"1": np.full_like(arrays["1"], np.nan)})
    with pytest.raises(UserError, match="damaged"):
        load((tmp_path / "m.npz").read_bytes(), "m")
