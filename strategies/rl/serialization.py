"""Policies in files: a line of JSON that says which inputs the policy takes, then its weights."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from bbo_suite import Task, UserError
from bbo_suite.files.reading import parse_json

from .inputs import Names
from .learner import policy_shape
from .policy import PRETRAINED_BOUND, VALUES, WIDTH, Policy

VERSION = 4
"""Version of the network: raised whenever its layers or the meaning of its inputs change."""
_OWN = {"version": VERSION, "width": WIDTH, "values": VALUES}


def save(policy: Policy, names: Names, path: Path) -> None:
    """Write a policy that takes features of some names.

    Raises:
      UserError: the file cannot be written.
    """
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, policy)
    weights = buffer.getvalue()
    header = {
        **_OWN,
        "nodes": names.nodes,
        "parameters": names.parameters,
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    try:
        path.write_bytes(json.dumps(header).encode() + b"\n" + weights)
    except OSError as error:
        raise UserError(f"policy {path} cannot be written: {error.strerror}") from None


def load(content: bytes, path: str, task: Task) -> tuple[Policy, Names]:
    """Return the policy that a file holds, and the names of its features.

    Raises:
      UserError: the file is not a policy, is of another version, is damaged, or does not know a feature of the task.
    """
    first, _, weights = content.partition(b"\n")
    try:
        header = parse_json(first)
        digest, version = header.pop("sha256"), header["version"]
        names = Names(*(tuple(map(str, header.pop(side, ()))) for side in ("nodes", "parameters")))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{path} is not a policy; make one with `python -m bbo_suite pretrain`") from None
    if version != VERSION:
        raise UserError(f"policy {path} has version {version}, but version {VERSION} is needed; pretrain it again")
    if hashlib.sha256(weights).hexdigest() != digest:
        raise UserError(f"policy {path} is damaged; pretrain it again")
    if unknown := names.unknown(task):
        reason = f"it does not know {unknown[0]!r}"
        raise UserError(f"policy {path} does not fit {task.problem}: {reason}; pretrain one on problems of that family")
    policy = _policy(weights, policy_shape(*names.widths, PRETRAINED_BOUND)) if header == _OWN else None
    if policy is None:
        raise UserError(f"policy {path} holds other weights than its header says; pretrain it again")
    return policy, names


def _policy(weights: bytes, shape: Policy) -> Policy | None:
    """Return the policy of some weights; None if they have other shapes or types, or are not finite."""
    file = io.BytesIO(weights)
    try:
        policy = eqx.tree_deserialise_leaves(file, shape)
    except Exception:  # whatever a file that somebody wrote by hand makes numpy and equinox raise
        return None
    fits = not file.read(1) and all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(policy))
    return policy if fits else None
