"""Tiny files with the keys, shapes and types of the real ones."""

import gzip
import io
import json

import numpy as np
import pytest

from bbo_suite.registry import Registry

VALUES = {"block": [16, 32, 64], "unroll": [0, 1], "mode": ["a", "b"]}
"""Parameters of the first three formats; the configurations below are a part of the product."""
MEASURED = [((16, 0, "a"), 4.0), ((16, 1, "a"), 2.5), ((32, 0, "b"), 1.25), ((64, 1, "b"), None), ((64, 0, "a"), 8.0)]


def kernel_tuner():
    rows = {}
    for config, time in MEASURED:
        row = dict(zip(VALUES, config, strict=True))
        if time is None:
            row |= {"time": "RuntimeFailedConfig"}
        else:
            row |= {"time": time, "times": [time * 0.99, time * 1.01]}
        row |= {"compile_time": 918.5, "verification_time": 0, "benchmark_time": 126.3, "strategy_time": 0}
        row |= {"framework_time": 105.2, "timestamp": "2023-12-22 09:54:05.502007+00:00"}
        rows[",".join(map(str, config))] = row
    return {
        **{"device_name": "Gerät", "kernel_name": "k", "problem_size": [4096, 4096], "tune_params_keys": list(VALUES)},
        **{"tune_params": VALUES, "objective": "time", "cache": rows},
    }


def t4():
    results = []
    for config, time in MEASURED:
        times = {"compilation": 918.5, "framework": 105.2, "search_algorithm": 0, "validation": 0}
        results.append(
            {
                "timestamp": "2023-12-22 09:54:05.502007+00:00",
                "configuration": dict(zip(VALUES, config, strict=True)),
                "times": times if time is None else {**times, "runtimes": [time * 0.99, time * 1.01]},
                "invalidity": "correct" if time else "runtime",
                "correctness": int(time is not None),
                "measurements": [{"name": "time", "value": time or "RuntimeFailedConfig", "unit": ""}],
                "objectives": ["time"],
            }
        )
    return {"metadata": {"timeunit": "miliseconds"}, "results": results, "schema_version": "1.0.0"}


def ktt():
    results = []
    for config, time in MEASURED:
        pairs = [{"Name": k, "Value": v, "ValueType": "Int"} for k, v in zip(VALUES, config, strict=True)]
        status = {"Status": "Ok" if time else "ComputationFailed", "TotalDuration": (time or 0) * 1000}
        results.append({"ComputationResults": [], "Configuration": pairs, "KernelName": "k", **status})
    return {"Metadata": {"Device": "Gerät", "KttVersion": "2.1.0", "TimeUnit": "Microseconds"}, "Results": results}


def catbench():
    rows = [(*config, time or "", 9.5, 10, 0) for config, time in MEASURED]
    header = (*VALUES, "compute_time", "energy", "iterations", "wait_after_run")
    return "".join(",".join(map(str, row)) + "\n" for row in (header, *rows)).encode()


def tile():
    sizes = np.zeros((4, 24), np.float32)
    sizes[:, 0], sizes[:, 1] = [8, 8, 16, 8], [128, 256, 128, 128]
    sizes[:, 6], sizes[:, 7] = sizes[:, :6].sum(1), sizes[:, 0] * sizes[:, 1]
    normalizers = np.array([1000, 1000, 2000, 4000])
    runtime = np.array([1000, 500, 3000, 4800])
    graph = {"node_feat": np.zeros((5, 140), np.float32), "node_opcode": np.zeros(5, np.uint8)}
    config = {"config_feat": sizes, "config_runtime": runtime, "config_runtime_normalizers": normalizers}
    return graph | {"edge_index": np.zeros((4, 2), np.int64)} | config


def layout():
    features = np.full((4, 2, 18), -1, np.float32)
    features[1, 0, :2], features[2, 0, :2], features[3, :, :2] = (1, 0), (0, 1), (0, 1)
    graph = {"node_feat": np.zeros((9, 140), np.float32), "node_opcode": np.zeros(9, np.uint8)}
    graph |= {"edge_index": np.zeros((8, 2), np.int64), "node_splits": np.zeros((1, 3), np.int64)}
    config = {"node_config_ids": np.array([3, 7]), "config_runtime": np.array([900, 700, 1200, 800])}
    return graph | config | {"node_config_feat": features}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes content in its format and returns the path; the name does not show the format."""

    def put(content, packed=False):
        if isinstance(content, dict) and any(isinstance(value, np.ndarray) for value in content.values()):
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **content)
            content = buffer.getvalue()
        data = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
        path = tmp_path / f"recörded{len(list(tmp_path.iterdir()))}"
        path.write_bytes(gzip.compress(data) if packed else data)
        return path

    return put


@pytest.fixture
def load(write):
    """Return a function that loads content as a problem."""
    return lambda content, **options: Registry().load(f"recorded:{write(content, **options)}")


@pytest.fixture
def formats():
    """Return the sample of each format by its name."""
    return {made.__name__: made() for made in (kernel_tuner, t4, ktt, catbench, tile, layout)}
