"""Spaces that are ready: the flags of the compiler that is installed, as it lists them itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bbo_suite import UserError
from bbo_suite.core.space import Parameter, choice, scale

from ..gcc.compiler import Gcc, installed, read_gcc
from ..packages import zig

Entry = tuple[Parameter, tuple[str, ...], int]
"""A parameter, what each of its values puts into a command, and the index of its default."""
READY = ("gcc", "gcc-wide", "clang", "xla-cpu", "xla-gpu")
LEVELS: tuple[str, ...] = ("-O3", "-O2", "-O1", "-Os", "-Oz")
STARTS = (*LEVELS, *(f"{level} -flto" for level in LEVELS))
"""Where a search may begin."""
_GCC = re.compile(r"(?:.*-)?(?:gcc|g\+\+|cc|c\+\+)(?:-[\d.]+)?")
_CLANG = re.compile(r"(?:.*-)?clang(?:\+\+)?(?:-[\d.]+)?")
_ROUNDS = 8
"""How often a compiler may refuse some of the flags that are left."""
_ZIG = re.compile(r"(?<![\w./-])(?:\S+\s+-m\s+ziglang|(?:python-)?zig)\s+(c(?:c|\+\+))(?!\S)")
"""A call of the zig from pip, or of one on the path."""
_SWITCHES = (
    *("vectorize", "slp-vectorize", "unroll-loops", "inline-functions", "strict-aliasing", "builtin"),
    *("omit-frame-pointer", "reroll-loops", "optimize-sibling-calls", "jump-tables"),
)
_TUNED = {
    "inline-threshold": (0, 25, 75, 150, 225, 325, 500, 1000, 2000),
    "inlinehint-threshold": (75, 150, 325, 650, 1300),
    "unroll-threshold": (0, 50, 100, 150, 300, 600, 1200),
    "unroll-max-count": (1, 2, 4, 8, 16),
    "unroll-runtime": ("true", "false"),
    "unroll-allow-partial": ("true", "false"),
    "force-vector-width": (1, 2, 4, 8, 16),
    "force-vector-interleave": (1, 2, 4, 8),
    "slp-threshold": (-20, -5, 0, 5, 20),
    "jump-threading-threshold": (0, 3, 6, 12, 24),
    "licm-max-num-uses-traversed": (2, 8, 32),
    "enable-gvn-hoist": ("true", "false"),
    "enable-gvn-sink": ("true", "false"),
    "enable-loopinterchange": ("true", "false"),
    "enable-unroll-and-jam": ("true", "false"),
    "enable-dfa-jump-thread": ("true", "false"),
    "loop-distribute": ("true", "false"),
    "memop-max-annotations": (1, 4, 8),
    "align-all-nofallthru-blocks": (0, 3, 4, 5),
    "enable-misched": ("true", "false"),
    "enable-tail-merge": ("true", "false"),
}
"""Options of LLVM by name and what to try; which of them a compiler knows, it says itself."""
_ON_OFF = (True, False)
_XLA_EVERYWHERE: dict[str, tuple[Any, ...]] = {
    "xla_backend_optimization_level": (0, 1, 2, 3),
    "xla_llvm_disable_expensive_passes": _ON_OFF,
    "xla_llvm_enable_alias_scope_metadata": _ON_OFF,
    "xla_llvm_enable_noalias_metadata": _ON_OFF,
    "xla_llvm_enable_invariant_load_metadata": _ON_OFF,
    "xla_disable_hlo_passes": ("", "fusion", "algsimp", "cse", "reshape-mover", "while-loop-invariant-code-motion"),
}
_XLA: dict[str, dict[str, tuple[Any, ...]]] = {
    "xla-cpu": {
        "xla_cpu_prefer_vector_width": (128, 256, 512),
        "xla_cpu_parallel_codegen_split_count": (1, 4, 32),
        "xla_cpu_opt_preset": (
            *("CPU_OPT_PRESET_DEFAULT", "CPU_OPT_PRESET_FAST_RUNTIME", "CPU_OPT_PRESET_FAST_COMPILE"),
        ),
        "xla_cpu_experimental_xnn_graph_fusion_mode": (
            *("XNN_GRAPH_FUSION_MODE_DISABLED", "XNN_GRAPH_FUSION_MODE_GREEDY", "XNN_GRAPH_FUSION_MODE_GREEDY_SLINKY"),
        ),
        "xla_cpu_use_fusion_emitters": _ON_OFF,
        "xla_cpu_use_xnnpack": _ON_OFF,
        "xla_cpu_use_onednn": _ON_OFF,
        "xla_cpu_multi_thread_eigen": _ON_OFF,
        "xla_cpu_copy_insertion_use_region_analysis": _ON_OFF,
        "xla_cpu_experimental_enable_tiling_propagation": _ON_OFF,
        **_XLA_EVERYWHERE,
    },
    "xla-gpu": {
        "xla_gpu_enable_triton_gemm": _ON_OFF,
        "xla_gpu_triton_gemm_any": _ON_OFF,
        "xla_gpu_exhaustive_tiling_search": _ON_OFF,
        "xla_gpu_enable_cublaslt": _ON_OFF,
        "xla_gpu_cublas_fallback": _ON_OFF,
        "xla_gpu_cudnn_gemm_fusion_level": (0, 1, 2, 3),
        "xla_gpu_gemm_rewrite_size_threshold": (0, 100, 10_000),
        "xla_gpu_dot_merger_threshold_mb": (0, 16, 32, 64, 128),
        "xla_gpu_autotune_level": (0, 1, 4),
        "xla_gpu_fusion_autotune_top_k_configs": (1, 4, 16),
        "xla_gpu_experimental_enable_fusion_autotuner": _ON_OFF,
        "xla_gpu_experimental_enable_fusion_block_level_rewriter": _ON_OFF,
        "xla_gpu_experimental_enable_triton_heroless_priority_fusion": _ON_OFF,
        "xla_gpu_experimental_all_fusions_with_triton": _ON_OFF,
        "xla_gpu_unsupported_enable_triton_multi_output_fusion": _ON_OFF,
        "xla_gpu_experimental_max_unroll_factor": (0, 1, 2, 4, 8, 16),
        "xla_gpu_native_emitter_tune_unroll_factor_for_loops": _ON_OFF,
        "xla_gpu_graph_min_graph_size": (1, 5, 20, 1_000_000),
        "xla_gpu_graph_enable_concurrent_region": _ON_OFF,
        "xla_gpu_command_buffer_unroll_loops": _ON_OFF,
        "xla_gpu_enable_pdl": _ON_OFF,
        "xla_gpu_async_dot": _ON_OFF,
        "xla_gpu_enable_latency_hiding_scheduler": _ON_OFF,
        "xla_gpu_enable_while_loop_unrolling": (
            *("WHILE_LOOP_UNROLLING_NO_UNROLL", "WHILE_LOOP_UNROLLING_DOUBLE_BUFFER"),
            *("WHILE_LOOP_UNROLLING_FULL_UNROLL", "WHILE_LOOP_UNROLLING_AUTO_UNROLL"),
        ),
        "xla_gpu_enable_dynamic_slice_fusion": _ON_OFF,
        "xla_gpu_copy_insertion_use_region_analysis": _ON_OFF,
        "xla_gpu_enable_shared_constants": _ON_OFF,
        "xla_gpu_enable_cudnn_layer_norm": _ON_OFF,
        "xla_gpu_enable_cub_radix_sort": _ON_OFF,
        "xla_gpu_use_runtime_fusion": _ON_OFF,
        "xla_gpu_force_conv_nchw": _ON_OFF,
        "xla_gpu_force_conv_nhwc": _ON_OFF,
        **_XLA_EVERYWHERE,
    },
}
"""XLA's debug options that matter on one device and change no meaning. jaxlib says which it knows, and defaults."""
_XLA_DEFAULTS = """
import json, os, pathlib, re, sys, tempfile
with tempfile.TemporaryDirectory() as place:
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={place} --xla_dump_hlo_as_text"
    import jax
    lowered = jax.jit(lambda x: x + 1).lower(1)
    def is_default(name, value):
        try:
            lowered.compile(compiler_options={name: value})
        except Exception:
            return False
        dumped = list(pathlib.Path(place).glob("*.debug_options"))
        set_to = "".join(each.read_text() for each in dumped)
        for each in dumped:
            each.unlink()
        return bool(dumped) and not re.search(f"^{name}:", set_to, re.MULTILINE)
    asked = json.loads(sys.argv[1]).items()
    print(json.dumps({name: value for name, values in asked for value in values if is_default(name, value)}))
"""
"""Prints the default of each option that is known: what XLA dumps names only options that differ from theirs."""
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")


def suggested(command: str) -> str:
    """Return the name of the space for a command that calls a compiler; `gcc` if it calls another program."""
    called = any(_CLANG.fullmatch(Path(word).name) for word in _words(command))
    return "clang" if called or _ZIG.search(command) else "gcc"


def with_zig(command: str) -> tuple[str, dict[str, str]]:
    """Return a command that calls `zig cc` with the path of the zig from pip, and variables for its caches.

    Any other command stays as it is, and so does one with a zig on the path.
    """
    if not _ZIG.search(command) or (shutil.which("zig") and not find_spec("ziglang")):
        return command, {}
    path, caches = zig("zig cc")
    return _ZIG.sub(lambda found: f"{shlex.quote(path)} {found[1]}", command), caches


def ready(name: str, command: str, run: str, goal: str, start: str = "") -> tuple[list[Entry], dict[str, str]]:
    """Return the parameters of a space for a build and what runs, and flags to compare with, by name.

    The level is a parameter unless the command sets one.

    Args:
      start: its default, one of `STARTS`; if not given, -O3, or for the goal `size` the smallest.

    Raises:
      UserError: there is no such compiler.
    """
    if name in _XLA:
        return _of_xla(_named(run, _PYTHON) or sys.executable, _XLA[name]), {}
    level = next((word for word in _words(command) if re.fullmatch("-O[0-9a-z]*", word)), "")
    start = level or start or ("-Oz" if goal == "size" else "-O3")
    plain, _, linked = start.partition(" ")
    if name == "clang":
        entries, levels = _of_clang(command, plain), LEVELS
    else:
        gcc = read_gcc(installed(_named(command, _GCC) or "gcc", "gcc"), plain)
        entries, plain = _of_gcc(gcc, name == "gcc-wide"), gcc.level
        levels = tuple(each for each in LEVELS if each != "-Oz" or gcc.has_oz)
    start = f"{plain} {linked}".rstrip()
    levels = tuple(dict.fromkeys((*levels, start)))
    if not level:
        entries.insert(0, (choice("level", levels), levels, levels.index(start)))
    others = (*levels, f"{plain} -flto")
    return entries, {each: each for each in others if each not in ("-O1", start)}


def _words(command: str) -> list[str]:
    return re.split(r"[\s=;&|\"']+", command)


def _named(command: str, pattern: re.Pattern[str]) -> str:
    """Return the first word of a command that calls a compiler."""
    return next((word for word in _words(command) if pattern.fullmatch(Path(word).name) and shutil.which(word)), "")


def _of_gcc(gcc: Gcc, wide: bool) -> list[Entry]:
    """Return flags and parameters; their defaults put nothing into the command, as the level sets them."""
    entries: list[Entry] = []
    for name, on in gcc.flags.items():
        values = (f"-fno-{name[2:]}", name)
        entries.append((choice(name, values), ("", values[1]) if not on else (values[0], ""), int(on)))
    for name, (words, place) in (gcc.valued if wide else {}).items():
        entries.append((choice(name, words), _texts(f"{name}=", words, place), place))
    for name, (numbers, place) in (gcc.wide if wide else gcc.parameters).items():
        entries.append((scale(f"--param={name}", numbers), _texts(f"--param={name}=", numbers, place), place))
    return entries


def _texts(start: str, values: tuple[object, ...], default: int) -> tuple[str, ...]:
    return tuple("" if i == default else f"{start}{value}" for i, value in enumerate(values))


def _of_clang(command: str, level: str) -> list[Entry]:
    found = _ZIG.search(command)
    compiler, caches = with_zig(found[0]) if found else (_named(command, _CLANG) or "clang", {})
    known = _known(compiler, level, tuple(caches.items()))
    switches = [name for name in _SWITCHES if f"-f{name}" in known and f"-fno-{name}" in known]
    entries: list[Entry] = [
        (choice(f"-f{name}", ("as the level", "off", "on")), ("", f"-fno-{name}", f"-f{name}"), 0) for name in switches
    ]
    for name, values in _TUNED.items():
        if f"-{name}" in known:
            texts = ("", *(f"-mllvm -{name}={value}" for value in values))
            entries.append((choice(f"-mllvm -{name}", ("as the level", *map(str, values))), texts, 0))
    return entries


def _of_xla(python: str, options: dict[str, tuple[Any, ...]]) -> list[Entry]:
    entries: list[Entry] = []
    for name, default in _xla_defaults(python, json.dumps(options)).items():
        place, values = options[name].index(default), [_xla_text(value) for value in options[name]]
        parameter = choice(f"--{name}", tuple(each or "none" for each in values))
        entries.append((parameter, _texts(f"--{name}=", tuple(values), place), place))
    return entries


def _xla_text(value: Any) -> str:  # noqa: ANN401 - as XLA's options have them
    return str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache(maxsize=4)
def _xla_defaults(python: str, options: str) -> dict[str, Any]:
    """Return the defaults of XLA's options, by name, as the jaxlib of a Python has them, which may not know them all.

    Args:
      options: JSON of the values of each, by name.

    Raises:
      UserError: it has no jax, or knows none of them.
    """
    variables = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    asked = [python, "-c", _XLA_DEFAULTS, options]
    done = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=variables)
    if done.returncode or not (known := json.loads(done.stdout)):
        raise UserError(f"{python} cannot list XLA's options; let --run call a Python that has jax")
    return known


@lru_cache(maxsize=4)
def _known(compiler: str, level: str, caches: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return which flags a clang takes: with those that it has refused left out, it compiles an empty file."""
    if not shutil.which(shlex.split(compiler)[0]):
        raise UserError(f"{compiler} is not installed; install clang, or name another space")
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "empty.c")
        file.write_text("int empty;\n")
        start = [*shlex.split(compiler), level, "-Werror", "-c", str(file), "-o", f"{file}.o"]
        tried: dict[str, tuple[str, ...]] = {
            f"-f{no}{name}": (f"-f{no}{name}",) for name in _SWITCHES for no in ("", "no-")
        }
        tried |= {f"-{name}": ("-mllvm", f"-{name}={values[0]}") for name, values in _TUNED.items()}
        variables = os.environ | dict(caches)
        for _ in range(_ROUNDS):
            command = [*start, *(word for flags in tried.values() for word in flags)]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=variables)
            if not done.returncode:
                return frozenset(tried)
            refused = set(re.findall(r"\W(-[\w-]+)", done.stderr))
            tried = {name: flags for name, flags in tried.items() if name not in refused}
        raise UserError(f"{compiler} does not compile an empty file ({done.stderr[:100]!r}); put one first that does")
