"""Remembers the modules that sequences of passes have reached, so that no pass runs twice on the same module."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence

from .census import census

_CHARACTERS = 1 << 28
"""Characters of texts that are kept; a text that was dropped is computed again when it is needed."""
_STEPS = 1 << 20
"""Steps that are remembered."""

Step = Callable[[str, str], str]


class States:
    """Applies sequences of actions to one module, and remembers the result of each action.

    Sequences with the same beginning share its results. So do sequences that reach the same module in different ways,
    for example because a pass changed nothing or two passes commute.

    Args:
      root: the module that every sequence starts from, in canonical text.
      step: takes a text and an action, and returns the new text or raises RuntimeError.
    """

    def __init__(self, root: str, step: Step) -> None:
        self._step, self._root = step, root
        self._forget()

    def _forget(self) -> None:
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._size = 0
        self._counts: dict[bytes, Counter[str]] = {}
        self._next: dict[tuple[bytes, str], bytes | RuntimeError] = {}
        self._start = self._keep(self._root)

    def after(self, actions: Sequence[str]) -> Counter[str]:
        """Return the number of operations of each kind in the module after a sequence.

        Raises:
          RuntimeError: an action fails.
        """
        return self._counts[self.key(actions)]

    def key(self, actions: Sequence[str]) -> bytes:
        """Return the digest of the module after a sequence.

        Raises:
          RuntimeError: an action fails.
        """
        if len(self._next) > _STEPS:
            self._forget()
        place, known = self._start, [self._start]
        for action in actions:
            follower = self._next.get((place, action))
            if follower is None:
                return self._walk(known, actions)
            if isinstance(follower, RuntimeError):
                raise follower
            place = follower
            known.append(place)
        return place

    def module(self, actions: Sequence[str]) -> str:
        """Return the text of the module after a sequence."""
        return self._texts[self._walk([self._start], actions)]

    def _walk(self, known: Sequence[bytes], actions: Sequence[str]) -> bytes:
        """Continue from the last known module whose text is kept, or from the root, whose text is always there."""
        start = next((i for i in range(len(known) - 1, 0, -1) if known[i] in self._texts), 0)
        place = known[start]
        text = self._texts[place] if start else self._root
        for action in actions[start:]:
            follower = self._next.get((place, action))
            if isinstance(follower, RuntimeError):
                raise follower
            if follower is None or follower not in self._texts:
                follower = self._run_action(place, text, action)
            place, text = follower, self._texts[follower]
            self._texts.move_to_end(place)
        return place

    def _run_action(self, place: bytes, text: str, action: str) -> bytes:
        try:
            follower = self._keep(self._step(text, action))
        except RuntimeError as error:
            self._next[place, action] = RuntimeError(*error.args)  # without its traceback, which holds the text
            raise
        self._next[place, action] = follower
        return follower

    def _keep(self, text: str) -> bytes:
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest not in self._counts:
            self._counts[digest] = census(text)
        if digest not in self._texts:
            self._texts[digest] = text
            self._size += len(text)
        self._texts.move_to_end(digest)
        while self._size > _CHARACTERS and len(self._texts) > 1:
            self._size -= len(self._texts.popitem(last=False)[1])
        return digest
