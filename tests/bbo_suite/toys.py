"""A small problem, a small strategy, functions that run them without a registry, and a cluster of processes."""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import assume
from hypothesis import strategies as st

from bbo_suite import Constraint, Evaluations, Kind, Moves, Problem, Space, Status, Strategy, option

from bbo_suite import choice, permutation, product, scale, sequence  # isort: skip
from bbo_suite.runs.loop import run_loop
from bbo_suite.store.frames import printable
from bbo_suite.store.identity import Run
from bbo_suite.store.run_folder import RunFolder


class Toy(Problem):
    """All kinds of parameters, a constraint, and candidates that fail with awkward reasons."""

    instances = ("small", "large")

    def __init__(self, instance="small"):
        few = instance == "small"
        self.space = product(
            choice("layout", ["nchw", "nhwc", "blocked"]),
            scale("tile", [8, 16, 32, 64]),
            permutation("passes", ["inline", "unroll", "fuse"] if few else list(range(12))),
            sequence("flags", 2 if few else 20, ["off", "on"]),
            constraints=[Constraint((0, 1), lambda rows: rows.sum(axis=1) < 5)],
        )
        d = len(self.space)
        self.default = np.array([0, 0, *range(d - 4), 0, 0]) if few else np.array([0, 0, *range(12), *[0] * 20])
        self._weights = np.random.default_rng(1).random((d, 12))
        self.id = f"toy/{instance}"

    def evaluate(self, configs):
        """Return a sum of one weight per parameter; a few candidates do not compile."""
        values = 1 + self._weights[np.arange(configs.shape[1]), configs].sum(axis=1)
        broken = np.flatnonzero((configs[:, 0] == 2) & (configs[:, -1] == 1))
        status = np.zeros(len(configs), np.int8)
        values[broken], status[broken] = np.inf, Status.COMPILE_ERROR
        return Evaluations(values, status, {int(i): 'tile "blocked", línea 3:\nno such thing' for i in broken})


@dataclass(frozen=True)
class ClimberOptions:
    """Options of the climber."""

    changes: int = option(2, "most changes of a child", low=1, high=9)
    layers: tuple = (4, 2)


class Climber(Strategy):
    """Changes the best candidate so far, so that its proposals depend on everything that it was told."""

    Options = ClimberOptions

    def __init__(self, task, budget, rng, options):
        super().__init__(task, budget, rng, options)
        self._moves, self._best, self._cost = Moves(task.space), task.default, np.inf

    def ask(self, n):
        counts = self.rng.integers(0, self.options.changes + 1, n)
        return self._moves.mutate(np.repeat(self._best[None], n, axis=0), counts, self.rng)

    def tell(self, configs, values):
        if values.min() <= self._cost:
            self._best, self._cost = configs[values.argmin()], values.min()


def run_of(problem, strategy, budget=40, batch=7, seed=0):
    options = dataclasses.asdict(strategy.Options())
    return Run(problem.id, problem.fingerprint(), "toy", options, seed, budget, batch)


def perform(path, problem=None, strategy=Climber, stopped=lambda: False, keep_all=False, max_seconds=None, **settings):
    """Run, or resume a run, and return whether it is complete."""
    problem = problem or Toy()
    run = run_of(problem, strategy, **settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    with RunFolder(path, run.identity(), FACTS) as folder:
        return run_loop(run, problem, strategy, folder, stopped, keep_all, max_seconds)


FACTS = {"default": 4.0, "optimum": None, "unit": "seconds", "level": "costs"}


def rows_of(path):
    """Return the lines of a log without the times, which differ, and the checksums, which cover them."""
    lines = (path / "rows.csv").read_text(encoding="utf-8").splitlines()
    return [(*(f := line.split(",", 6))[:4], f[6].rpartition(",")[0]) for line in lines[1:]]


def contents(path):
    """Return the contents of a folder's files without the lock, to check that nothing changed."""
    return {file: file.read_bytes() for file in path.iterdir() if file.name not in (".lock", "error.txt")}


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def start_suite(folder, *arguments, own_session=False, **variables):
    """Start a command of the suite as a process in a folder; what it prints can be read.

    Args:
      own_session: whether signals to its group reach only it and its children.
      variables: of its environment.
    """
    command = [sys.executable, "-m", "bbo_suite", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment() | variables, start_new_session=own_session, **pipes)


RULES = {
    "ordered": lambda rows: (np.diff(rows, axis=1) >= 0).all(axis=1),
    "odd": lambda rows: rows.sum(axis=1) % 2 == 1,
    "sparse": lambda rows: (rows > 0).sum(axis=1) <= 1,
    "equal": lambda rows: (rows == rows[:, :1]).all(axis=1),
}


PATIENCE = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
"""A run is given up when it has brought down two workers; Dask's own default is four."""


class Cluster:
    """A scheduler and workers that run in a folder of their own."""

    def __init__(self, folder: Path):
        self.folder, self.processes = folder, []
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0")

    def _start(self, kind, *arguments, **more):
        log = (self.folder / f"{kind}{len(self.processes)}.log").open("w")
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file), *arguments]
        place = {"cwd": self.folder, "stdout": log, "stderr": log, "env": environment() | PATIENCE | more}
        self.processes.append(subprocess.Popen(command, **place))
        return self.processes[-1]

    def worker(self, *arguments, threads="1", **more):
        given = ("--nthreads", threads, "--no-nanny", "--no-dashboard", *arguments)
        return self._start("worker", *given, **more)

    def wait_for_workers(self, count):
        logs = [self.folder / f"worker{number}.log" for number in range(1, count + 1)]
        wait_for(lambda: all("Registered" in log.read_text() for log in logs))

    @property
    def address(self):
        wait_for(self.file.exists)
        time.sleep(0.2)
        return json.loads(self.file.read_text())["address"]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def wait_for(true, seconds=60):
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.05)


@st.composite
def spaces(draw, largest=2000):
    """Draw a random space and all its allowed rows, found by trying every combination."""
    sizes, kinds, groups, permutations = [], [], [], []
    for number in range(draw(st.integers(1, 4))):
        kind, size = draw(st.sampled_from(["choice", "scale", "sequence", "permutation"])), draw(st.integers(1, 4))
        length = {"sequence": draw(st.integers(1, 3)), "permutation": size}.get(kind, 1)
        slot = kind in ("sequence", "permutation")
        sizes += [size] * length
        kinds += [Kind.SLOT if slot else Kind[kind.upper()]] * length
        groups += [number if slot else -1] * length
        permutations += [number] if kind == "permutation" else []
    assume(np.prod(np.array(sizes, float)) <= largest)
    columns = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    rules = draw(st.lists(st.tuples(columns, st.sampled_from(sorted(RULES))), max_size=2))
    rows = np.array(list(itertools.product(*map(range, sizes))))
    for group in permutations:
        part = rows[:, np.array(groups) == group]
        rows = rows[[len(set(row)) == len(row) for row in part.tolist()]]
    for where, rule in rules:
        rows = rows[RULES[rule](rows[:, where])]
    assume(len(rows))
    constraints = [Constraint(tuple(where), RULES[rule]) for where, rule in rules]
    return Space(sizes, kinds, groups, permutations, constraints), rows


def frame(runs, budget=4, structured=(), hearing=(), seconds=(0.5, 0.25), configs=""):
    """Return the frame that `bbo_suite.load` returns for `{(problem, strategy, seed): costs}`; the default costs 8."""
    parts = []
    for (problem, strategy, seed), values in runs.items():
        part = pd.DataFrame({"value": np.asarray(values, float), "evaluation": np.arange(1, len(values) + 1)})
        named = {"problem": printable(problem), "strategy": printable(strategy)}
        fixed = {**named, "seed": seed, "default": 8.0, "budget": budget}
        times = {"strategy_seconds": np.float32(seconds[0]), "evaluation_seconds": np.float32(seconds[1])}
        level = "parts" if strategy in hearing else "structure" if strategy in structured else "costs"
        part = part.assign(**fixed, **times, unit="seconds", status="ok", level=level)
        part = part.assign(parameters=len(problem), config=configs)
        with np.errstate(divide="ignore"):
            part["speedup"] = 8.0 / part["value"].cummin()
        parts.append(part)
    return pd.concat(parts, ignore_index=True).astype(dict.fromkeys(["problem", "strategy"], "category"))
