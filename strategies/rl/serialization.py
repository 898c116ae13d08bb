"""Policies in files: a line of JSON that says which inputs the policy takes, then its weights."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from bbo_suite import UserError
from bbo_suite.files.reading import parse_json

from .learner import policy_shape
from .policy import PRETRAINED_BOUND, VALUES, WIDTH, Policy

VERSION = 3
"""Version of the network: raised whenever its layers or the meaning of its inputs change."""


def save(policy: Policy, path: Path) -> None:
    """Write a policy.

    Raises:
      UserError: the file cannot be written.
    """
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, policy)
    weights = buffer.getvalue()
    header = {**_needs(*widths(policy)), "sha256": hashlib.sha256(weights).hexdigest()}
    try:
        path.write_bytes(json.dumps(header).encode() + b"\n" + weights)
    except OSError as error:
        raise UserError(f"policy {path} cannot be written: {error.strerror}") from None


def load(content: bytes, path: str, node_width: int, feature_width: int, task: str) -> Policy:
    """Return the policy that a file holds.

    Raises:
      UserError: the file is not a policy, is of another version, is damaged, or fits tasks with other features.
    """
    first, _, weights = content.partition(b"\n")
    try:
        header = parse_json(first)
        digest, version = header.pop("sha256"), header["version"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{path} is not a policy; make one with `python -m bbo_suite pretrain`") from None
    if version != VERSION:
        raise UserError(f"policy {path} has version {version}, but version {VERSION} is needed; pretrain it again")
    if hashlib.sha256(weights).hexdigest() != digest:
        raise UserError(f"policy {path} is damaged; pretrain it again")
    wanted = _needs(node_width, feature_width)
    if header != wanted:
        differ = ", ".join(
            f"{key} {header.get(key)}, not {wanted[key]}" for key in wanted if header.get(key) != wanted[key]
        )
        raise UserError(f"policy {path} does not fit {task}: it has {differ}; pretrain one on problems of that family")
    policy = _policy(weights, policy_shape(node_width, feature_width, PRETRAINED_BOUND))
    if policy is None:
        raise UserError(f"policy {path} holds other weights than its header says; pretrain it again")
    return policy


def _policy(weights: bytes, shape: Policy) -> Policy | None:
    """Return the policy of some weights; None if they have other shapes or types, or are not finite."""
    file = io.BytesIO(weights)
    try:
        policy = eqx.tree_deserialise_leaves(file, shape)
    except Exception:  # whatever a file that somebody wrote by hand makes numpy and equinox raise
        return None
    fits = not file.read(1) and all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(policy))
    return policy if fits else None


def widths(policy: Policy) -> tuple[int, int]:
    """Return how many features of a node and of a parameter a policy takes."""
    return policy.node.in_features, policy.feature.in_features  # type: ignore[return-value]


def _needs(node_width: int, feature_width: int) -> dict[str, int]:
    own = {"version": VERSION, "width": WIDTH, "values": VALUES}
    return {**own, "node features": node_width, "parameter features": feature_width}
