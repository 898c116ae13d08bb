"""Machine-learning programs in plain JAX, which `lower` turns into the HLO texts of `programs/`.

Every model has a module of its own with one `build`, whose keyword parameters are the model's sizes. `MODELS` names the
programs that ship, `catalogue.PROGRAMS` all of them; `MODELS["resnet50"]()` is the program at its full size,
`MODELS["resnet50"](batch=1)` a smaller one.
A model's module, and with it JAX, is imported when its program is built.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).resolve().parents[1] / "programs"
"""The folder of the programs that ship, as they are after XLA's own passes."""
LOWERED = "lowered"
"""The folder in it of the same programs as JAX lowers them."""

Program = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and the abstract arguments it is lowered for


def build_model(module: str, **sizes: Any) -> Program:  # noqa: ANN401
    """Return the program that the named module builds at these sizes."""
    return import_module(f"{__name__}.{module}").build(**sizes)


MODELS: dict[str, Callable[..., Program]] = {
    "resnet50": partial(build_model, "resnet"),
    "transformer": partial(build_model, "transformer"),
    "mobilenet": partial(build_model, "mobilenet"),
    "rnn": partial(build_model, "rnn"),
}
