"""The cache folder belongs to its user alone, because code in it is executed."""

import os

import pytest

from bbo_suite.errors import UserError
from bbo_suite.files.cache import cache_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/bbo_suite"


def test_only_its_owner_may_enter_the_cache_folder(folder):
    assert cache_folder("a") == folder / "a" and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)  # as it was made before
    cache_folder()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_cache_folder_that_others_can_write_to_or_own_is_refused(folder, monkeypatch):
    cache_folder()
    for mode in (0o777, 0o770):
        folder.chmod(mode)
        with pytest.raises(UserError, match="other users can write"):
            cache_folder()
    folder.chmod(0o700)
    owner = os.geteuid() or 1
    os.chown(folder, owner, -1) if os.geteuid() == 0 else None
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(UserError, match="belongs to another user"):
        cache_folder()


def test_a_relative_cache_folder_is_ignored_and_no_home_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/bbo_suite" and not (tmp_path / "here").exists()
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(UserError, match="there is no home folder"):
        cache_folder()
