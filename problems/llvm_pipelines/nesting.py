"""Turns a sequence of actions into pipelines of nested pass managers, in the language of `opt -passes`."""

from __future__ import annotations

from collections.abc import Sequence

from .passes import CLOSE, LEVELS, PIPELINES

_OUTER = {"module": "", "cgscc": "module", "function": "cgscc", "loop": "function", "loop-mssa": "function"}
"""The manager in which each manager may lie; one of functions also lies directly in the module."""


def pipelines(actions: Sequence[str]) -> list[str]:
    """Return the pipelines to run one after another: each of LLVM's own is one, and so is what lies between them.

    A pass is run by the innermost open manager that can hold it or its manager; managers inside that one are closed.
    So neighbours of one kind share a manager, functions after `inline` are simplified in the order of the call graph,
    and loops lie in functions.
    """
    made: list[str] = []
    waiting: list[str] = []
    for action in actions:
        if action in PIPELINES:
            made += [*_nested(waiting), action]
            waiting = []
        else:
            waiting.append(action)
    return [*made, *_nested(waiting)]


def _nested(actions: Sequence[str]) -> list[str]:
    text, open_managers = "", list[str]()
    for action in actions:
        wanted = [] if action == CLOSE else _managers(LEVELS[action], open_managers)
        shared = 0
        while shared < min(len(wanted), len(open_managers)) and wanted[shared] == open_managers[shared]:
            shared += 1
        text += ")" * (len(open_managers) - shared)
        for manager in wanted[shared:]:
            text += _comma(text) + manager + "("
        open_managers = wanted
        if action != CLOSE:
            text += _comma(text) + action
    return [text + ")" * len(open_managers)] if text else []


def _managers(level: str, open_managers: Sequence[str]) -> list[str]:
    """Return the managers that a pass of a level lies in, from the outermost on, without the module's."""
    wanted: list[str] = []
    while level != "module":
        wanted.insert(0, level)
        level = _OUTER[level]
        if level == "cgscc" and "cgscc" not in open_managers:
            break
    return wanted


def _comma(text: str) -> str:
    return "," if text and text[-1] != "(" else ""
