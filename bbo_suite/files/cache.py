"""The user's cache folder, which nobody else may write to."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from ..errors import UserError


def cache_folder(*parts: str) -> Path:
    """Return a folder for results that can be recomputed: `$XDG_CACHE_HOME/bbo_suite/...`, or below `~/.cache`.

    As its specification says, a relative `XDG_CACHE_HOME` is ignored: child processes work in other folders.
    Code that it holds is executed, so only its owner may enter `bbo_suite`. What is below it may not exist yet; nothing
    exists if the disk cannot be written.

    Raises:
      UserError: another user owns the folder or can write to it, or there is no home folder.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not home.is_absolute():
        home = Path(os.path.expanduser("~"), ".cache")  # noqa: PTH111 - it leaves ~ where nothing is known
    if not home.is_absolute():
        raise UserError(
            "there is no home folder to keep caches in; set XDG_CACHE_HOME to the absolute path of a folder"
        )
    folder = home / "bbo_suite"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _keep_private(folder)
    return folder.joinpath(*parts)


def _keep_private(folder: Path) -> None:
    try:
        state = folder.stat()
    except OSError:  # it cannot be made: then nothing is read from it either
        return
    owner, mode = os.geteuid(), stat.S_IMODE(state.st_mode)
    advice = "delete it, or set XDG_CACHE_HOME to a folder of your own"
    if state.st_uid not in (owner, 0):
        raise UserError(f"the cache folder {folder} belongs to another user, who could plant code in it; {advice}")
    if mode & 0o022:
        raise UserError(f"other users can write to the cache folder {folder}, which holds code; {advice}")
    if mode != 0o700 and state.st_uid == owner:
        with suppress(OSError):  # a disk that is only read
            folder.chmod(0o700)
