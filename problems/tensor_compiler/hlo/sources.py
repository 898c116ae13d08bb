"""Where the instructions of a module come from in the user's program: source line and name, from XLA's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

_LINE = re.compile(r"^\s*+(?:ROOT )?%?([\w.$-]+) = (?:.*?\bmetadata=\{(.*)\})?", re.MULTILINE)
_NAME = re.compile(r'\bop_name="([^"]*)"')
_FILE, _AT = re.compile(r'\bsource_file="([^"]*)"'), re.compile(r"\bsource_line=(\d+)")
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_TABLE = re.compile(r"^(FileNames|FileLocations|StackFrames)\n((?:\d.*\n)+)", re.MULTILINE)
_ENTRY = re.compile(r'^(\d+) (?:"(.*)"|\{(.*)\})$', re.MULTILINE)
_NUMBER = re.compile(r"\b(\w+)=(\d+)")


def sources(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return `file:line, name in JAX` for each instruction of HLO text that has metadata.

    Args:
      names: what the instructions are called, in the order of the text; empty if as there.
    """
    frames = _frames(text)
    found = _LINE.findall(text)
    called = names if len(names) == len(found) else [name for name, _ in found]
    described = ((name, _described(metadata, frames)) for name, (_, metadata) in zip(called, found, strict=True))
    return {name: words for name, words in described if words}


def _described(metadata: str, frames: dict[str, str]) -> str:
    frame, name = _FRAME.search(metadata), _NAME.search(metadata)
    file, line = _FILE.search(metadata), _AT.search(metadata)
    place = frames.get(frame[1], "") if frame else f"{_short(file[1])}:{line[1]}" if file and line else ""
    return ", ".join(part for part in (place, name[1] if name else "") if part)


def _frames(text: str) -> dict[str, str]:
    """Return `file:line` for each stack frame of the tables before the first computation."""
    tables = {name: dict(_entries(lines)) for name, lines in _TABLE.findall(text)}
    if len(tables) < 3:
        return {}
    places = {}
    for frame, entry in tables["StackFrames"].items():
        location = _numbers(tables["FileLocations"].get(_numbers(entry).get("file_location_id", ""), ""))
        file = tables["FileNames"].get(location.get("file_name_id", ""), "")
        if file and "line" in location:
            places[frame] = f"{_short(file)}:{location['line']}"
    return places


def _numbers(entry: str) -> dict[str, str]:
    return dict(_NUMBER.findall(entry))


def _entries(lines: str) -> Iterator[tuple[str, str]]:
    for number, name, numbers in _ENTRY.findall(lines):
        yield number, name or numbers


def _short(file: str) -> str:
    return PurePosixPath(file).name
