"""The networks and capacities that ship. This file is read when problems are listed, so it imports nothing heavy."""

from __future__ import annotations

INSTANCES = (
    *("bert@1MiB", "bert@2MiB", "bert@4MiB"),
    *("resnet@2MiB", "resnet@4MiB", "resnet@8MiB"),
    *("transition@0.5MiB", "transition@1MiB", "transition@4MiB"),
    *("lstm@1MiB", "lstm@4MiB", "lstm@12MiB"),
)
"""At these capacities the default moves 1.5 to 5 times the compulsory bytes."""


def split(instance: str) -> tuple[str, int]:
    """Return the network and the capacity in bytes."""
    name, _, capacity = instance.partition("@")
    return name, int(float(capacity.removesuffix("MiB")) * (1 << 20))
