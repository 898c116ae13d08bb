"""The end of a problem's id: a variant, as in `llvm/tree@time`, or a draw, as in `ehrlich/32x32-a#7`."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from ..errors import UserError

NUMBER = re.compile("0|[1-9][0-9]*")
"""A whole number as ids hold it: without sign and leading zeros, so that no two ids mean the same."""


def split_variant(instance: str | Path, known: Collection[str]) -> tuple[str, str]:
    """Return an instance without the variant at its end, and the variant; "" if it has none.

    A path may contain `@`, too: only a known variant behind the last one is a variant.

    Args:
      instance: a name, or the `Path` of a user's file.
      known: the variants, without `@`.

    Raises:
      UserError: the variant is unknown.
    """
    text = str(instance)
    name, mark, variant = text.rpartition("@")
    path = instance if isinstance(instance, Path) else None
    if mark and variant in known and (path or "@" not in name):
        return name, variant
    if not mark or (path and (path.exists() or not re.fullmatch(r"[\w-]*", variant))):  # part of a file's name
        return text, ""
    raise UserError(f"{text!r} names an unknown variant; write one of @{', @'.join(known)}, or none")


def split_draw(instance: str) -> str:
    """Return the instance that `instance#number` is another draw of; the number is optional.

    Raises:
      UserError: what follows the `#` is not a whole number, or has a sign or leading zeros. As the whole id is the
        seed, it would silently be another problem.
    """
    name, mark, number = instance.partition("#")
    if mark and not NUMBER.fullmatch(number):
        raise UserError(f"{instance!r} names no draw; write a whole number behind the #, as in {name}#7")
    return name
