"""Timings of a large study's way from disk to figures, to look at: `pytest tests/benchmarks`."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bbo_suite import Status, figures, load
from bbo_suite.store.rows import HEADER, TEXTS, Row

STRATEGIES, PROBLEMS, SEEDS, BUDGET, PARAMETERS = 10, 10, 10, 10_000, 700


def rows(rng: np.random.Generator) -> str:
    """Return the rows of one run that improves some 40 times."""
    costs = 1 - 0.06 * np.sort(rng.random(BUDGET)) + 0.05 * rng.random(BUDGET) ** 0.1
    costs[rng.random(BUDGET) < 0.01] = np.inf
    better = costs < np.minimum.accumulate(np.append(np.inf, costs[:-1]))
    configs = rng.integers(0, 2, (BUDGET, PARAMETERS))
    text = [HEADER]
    for i, cost in enumerate(costs.tolist()):
        config = "".join(map(str, configs[i])) if better[i] else ""
        status = Status.OK if np.isfinite(cost) else Status.TIMEOUT
        text.append(Row(i + 1, rng.bytes(8).hex(), cost, status, 3e-5 * rng.random(), 2e-5, config).line())
    return "".join(text)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study of 1,000 runs of 10,000 evaluations: 1 GB."""
    folder, rng = tmp_path_factory.mktemp("results"), np.random.default_rng(0)
    texts = [rows(rng) for _ in range(20)]
    for i, (s, p, seed) in enumerate(product(range(STRATEGIES), range(PROBLEMS), range(SEEDS))):
        run = folder / "large" / f"{i}"
        run.mkdir(parents=True)
        (run / "rows.csv").write_text(texts[i % len(texts)])
        fixed = {
            "fingerprint": "f",
            "options": {},
            "default": 1.0,
            "optimum": None,
            "unit": "seconds",
            "level": "costs" if s else "structure",
            "batch": 100,
        }
        named = {"problem": f"family/program-{p}", "strategy": f"strategy-{s}", "seed": seed, "budget": BUDGET}
        (run / "run.json").write_text(json.dumps(named | fixed))
    return folder


@pytest.mark.parametrize("texts", ["all", "none"])
def test_load(benchmark, results: Path, texts: str) -> None:
    """Every evaluation of 1,000 runs as a frame, with the columns of text and without."""
    arguments = {"texts": TEXTS if texts == "all" else ()}
    frame = benchmark.pedantic(load, ("large", results), arguments, rounds=1)
    benchmark.extra_info["MiB"] = int(frame.memory_usage(deep=True).sum() / 2**20)
    assert len(frame) == STRATEGIES * PROBLEMS * SEEDS * BUDGET


@pytest.fixture(scope="module")
def frame(results: Path):
    return load("large", results)


@pytest.mark.parametrize("drawing", figures.FIGURES.values(), ids=lambda drawing: drawing.name)
def test_draw(benchmark, frame, drawing: figures.StudyFigure) -> None:
    """One figure of it, on all its pages."""
    if drawing.missing(frame):
        pytest.skip(drawing.missing(frame))
    benchmark.pedantic(lambda: list(drawing.pages(frame)), rounds=1)
