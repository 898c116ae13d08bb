"""The networks and capacities that ship. This file is read when problems are listed, so it imports nothing heavy."""

from __future__ import annotations

INSTANCES = (
    *("bert@1MiB", "bert@2MiB", "bert@4MiB"),
    *("resnet@2MiB", "resnet@4MiB", "resnet@8MiB"),
    *("transition@0.5MiB", "transition@1MiB", "transition@4MiB"),
    *("lstm@1MiB", "lstm@4MiB", "lstm@12MiB"),
    *("bert@8MiB@banks", "resnet@12MiB@banks", "transition@4MiB@banks", "lstm@4MiB@banks"),
)
"""At these capacities the default moves 1.5 to 5 times the compulsory bytes."""
_BANKS = 128
"""As many partitions as the scratchpad of AWS's NeuronCores has."""


def split(instance: str) -> tuple[str, int, int]:
    """Return the network, the capacity in bytes, and the banks, 0 if they do not matter."""
    plain, mark, _ = instance.partition("@banks")
    name, _, capacity = plain.partition("@")
    return name, int(float(capacity.removesuffix("MiB")) * (1 << 20)), _BANKS if mark else 0
