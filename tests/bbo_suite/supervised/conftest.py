"""Makes the services of the tests importable, here and in the children, which look where their parent looks."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def targets_can_be_imported(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
