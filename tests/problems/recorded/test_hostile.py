"""Any error in a file gives one sentence that names the file and the place."""

import gzip
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from bbo_problems.recorded import files
from bbo_suite import UserError

HUGE = 10**400


def change(content, path, value):
    """Return a copy with one thing set, or removed if the value is `...`."""
    copy = json.loads(json.dumps(content))
    *parents, last = path
    target = copy
    for key in parents:
        target = target[key]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return copy


CASES = {
    "another schema of T4": ("t4", ["schema_version"], "2.0.0", "schema_version is '2.0.0'"),
    "no results": ("t4", ["results"], [], "0 measurements"),
    "results that are an object": ("t4", ["results"], {}, "'results' of the file is an object, not a list"),
    "a result that is a number": ("t4", ["results", 2], 7, "result 2 is a number"),
    "another parameter": ("t4", ["results", 1, "configuration", "x"], 3, "result 1 has other parameters"),
    "no parameters": ("kernel_tuner", ["tune_params_keys"], [], "of 0 parameters"),
    "names that are numbers": ("kernel_tuner", ["tune_params_keys"], [1, 2, 3], "not a list of names"),
    "an unknown invalidity": ("t4", ["results", 0, "invalidity"], "odd", "'invalidity' of result 0 is 'odd'"),
    "a time that is NaN": ("t4", ["results", 0, "measurements", 0, "value"], float("nan"), "result 0 is NaN"),
    "a negative time": ("kernel_tuner", ["cache", "16,0,a", "time"], -1, "is -1"),
    "a time that is true": ("kernel_tuner", ["cache", "16,0,a", "time"], True, "not a number"),
    "a row that is a list": ("kernel_tuner", ["cache", "16,0,a"], [], "row '16,0,a' is not an object"),
    "a cache that is a list": ("kernel_tuner", ["cache"], [], "'cache' of the file is a list"),
    "an objective without a direction": ("kernel_tuner", ["objective"], "fitness", "objective is 'fitness'"),
    "an objective without values": ("kernel_tuner", ["objective"], "GFLOP/s", "'GFLOP/s' of row '16,0,a' is null"),
    "a parameter that is NaN": ("t4", ["results", 0, "configuration", "block"], float("nan"), "'block' has the value"),
    "an unknown unit": ("t4", ["metadata", "timeunit"], "fortnights", "not a unit of time"),
    "another objective of T4": ("t4", ["results", 0, "objectives"], ["GFLOP/s"], "no measurement of its objective"),
    "metadata that is a list": ("t4", ["metadata"], [1], "'metadata' of the file is not an object"),
    "a default that is not there": ("t4", ["metadata", "default"], {"block": 7}, "is not among"),
    "a default that failed": (
        *("t4", ["metadata", "default"], {"block": 64, "unroll": 1, "mode": "b"}, "default configuration failed"),
    ),
    "a default that was not measured": (
        *("t4", ["metadata", "default"], {"block": 16, "unroll": 0, "mode": "b"}, "not among its configurations"),
    ),
    "statistics that are a text": ("t4", ["metadata", "statistics"], "size", "'metadata' is not a list of names"),
    "the objective as a statistic": ("t4", ["metadata", "statistics"], ["time"], "which compiling cannot tell"),
    "text as correctness": ("t4", ["results", 0, "correctness"], "0", "correctness of result 0 is the text '0'"),
    "an objective that is a parameter": ("kernel_tuner", ["objective"], "unroll", "both its objective and a parameter"),
    "a parameter without a value": (
        "ktt",
        ["Results", 1, "Configuration", 2, "Value"],
        ...,
        "no value of parameter 'mode'",
    ),
    "an unknown status": ("ktt", ["Results", 0, "Status"], "Odd", "'Status' of result 0 is 'Odd'"),
}


@pytest.mark.parametrize(("metadata", "failure"), [({"unit": "bytes"}, "runtime"), ({}, "runtime"), ({}, "compile")])
def test_a_file_in_which_every_row_failed_is_refused(load, formats, metadata, failure):
    document = change(formats["t4"], ["metadata"], metadata)
    for row in document["results"]:
        row["invalidity"] = failure
    with pytest.raises(UserError, match="configurations failed"):
        load(document)


def test_the_unit_of_the_whole_file_is_that_of_rows_that_name_none(load, formats):
    assert load(change(formats["t4"], ["metadata"], {"unit": "bytes"})).unit == "bytes"
    assert load(change(formats["t4"], ["metadata"], {"unit": "ms"})).unit == "seconds"


def test_results_with_several_objectives_are_refused(load, formats):
    row = formats["t4"]["results"][1]
    row["measurements"], row["objectives"] = [{"name": "energy", "value": 3, "unit": "J"}], ["energy"]
    formats["t4"]["results"] = [row, change(row, ["measurements", 0, "name"], "power")]
    formats["t4"]["results"][1]["objectives"] = ["power"]
    with pytest.raises(UserError, match=r"several objectives, .'energy', 'power'.; keep the measurements of one"):
        load(formats["t4"])


@pytest.mark.parametrize("case", CASES)
def test_wrong_json_is_refused(load, formats, case):
    name, path, value, message = CASES[case]
    with pytest.raises(UserError, match=r"^cannot use .*rec.rded0: ") as refused:
        load(change(formats[name], path, value))
    assert "\n" not in str(refused.value)
    assert any(part in str(refused.value) for part in message.split("|"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"[1, 2]", "its JSON is a list"),
        (b'{"ConfigurationSpace": {}}', "no measurements"),
        (b'{"results": [], "results": []}', "'results' occurs twice"),
        (b"null", "neither an object in JSON nor a table with a column 'compute_time'"),
        (b"a;compute_time\n1;2\n", "neither an object in JSON nor a table"),
        (b"\xff\xfe\x00", "UTF-16"),
        (b"\xc3\x28 \xa0", "not text in UTF-8"),
        (b'{"results": [{"configu', "truncated or damaged"),
        (b'{"tune_params_keys": ["a"], "cache": {', "0 measurements"),
        (b'{"results": ' + b"[" * 100_000, "too deep"),
        (b'{"results": [%s]}' % (b"9" * 5000), "cannot use"),
        (gzip.compress(b"{}" * 99, mtime=0)[:-9], "gzip file that is truncated or damaged"),
        (gzip.compress(b"{}" * 99, mtime=0)[:12] + b"garbage" * 9, "gzip file that is truncated or damaged"),
        (b"a,compute_time\n", "0 measurements of 1 parameters"),
        (b"a,compute_time", "0 measurements of 1 parameters"),
        (b",a,compute_time\n0,1,2\n", "column 1 has no name"),
        (b"Unnamed: 0,a,compute_time\n0,1,2\n", "column 1 has no name"),
        (b"a,compute_time\n1,1_0\n", "'compute_time' of row 1 is '1_0', not a number"),
        (b"compute_time,energy\n3,4\n", "1 measurements of 0 parameters"),
        (b"a,compute_time\n1,2\n3\n", "row 2 has 1 cells, and the header 2"),
        (b"a,a,compute_time\n1,2,3\n", "names a column twice"),
        (b"a,compute_time\n1,2\n2,soon\n", "'compute_time' of row 2 is 'soon', not a number"),
        (b"a,compute_time\n1,-2\n", "'compute_time' of row 1 is -2"),
        (b"a,compute_time,Feasibility\n1,2,no\n", "'Feasibility' of row 1 is 'no'"),
        (b"a,compute_time\n1,2\n,3\n", "row 2 has no value of parameter 'a'"),
        (b"a,compute_time\nnan,2\n", "'a' has the value nan"),
        (b"a,compute_time\n1,\n2,0\n", "configurations failed"),
        (b"a,compute_time\n" + b"1" * 200_000 + b",2\n", "no table in CSV|'a' has the value inf"),
        (b"PK\x03\x04 and nothing", "npz file that is truncated or damaged"),
        (b"PAR1 and nothing", "damaged|pyarrow"),
    ],
)
def test_wrong_bytes_are_refused(load, data, message):
    with pytest.raises(UserError) as refused:
        load(data)
    assert any(part in str(refused.value) for part in message.split("|")), refused.value


@pytest.mark.parametrize("name", ["kernel_tuner", "t4", "ktt", "catbench", "tile", "layout"])
def test_damage_anywhere_is_one_sentence_or_harmless(write, formats, name):
    whole, rng = write(formats[name]).read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        try:
            files.read(write(bytes(data)))
        except UserError as error:
            assert "\n" not in str(error)


def test_a_gzip_bomb_is_not_unpacked(load, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 1 << 16)
    with pytest.raises(UserError, match="unpacks to more than"):
        load(b" " * (1 << 20), packed=True)


ARRAYS = {
    "no normalizers": ("tile", "config_runtime_normalizers", ..., "no array 'config_runtime_normalizers'"),
    "a normalizer of 0": ("tile", "config_runtime_normalizers", np.array([1, 0, 1, 1]), "row 1 is not positive"),
    "fewer run times": ("tile", "config_runtime", np.array([1, 2]), "differ in length: 4, 2, 4"),
    "a wrong shape": ("tile", "config_feat", np.zeros((4, 3, 2)), r"has shape \(4, 3, 2\)"),
    "NaN": ("tile", "config_runtime", np.array([1, np.nan, 1, 1]), r"NaN or infinity at \[1\]"),
    "nodes that do not fit": ("layout", "node_config_ids", np.arange(5), "has 5 nodes"),
    "something else": ("layout", "node_config_feat", ..., "neither 'config_feat'"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_wrong_arrays_are_refused(load, formats, case):
    name, key, value, message = ARRAYS[case]
    arrays = {k: v for k, v in formats[name].items() if k != key} | ({} if value is ... else {key: value})
    with pytest.raises(UserError, match=message):
        load(arrays)


class Malicious:
    """Fails the test if it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a file ran code",)


def test_objects_are_never_unpickled(load, formats):
    objects = np.array([Malicious()] * 4, object)
    with pytest.raises(UserError, match="may run code"):
        load(formats["tile"] | {"config_runtime": objects})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:  # np.load reads an entry that is not an array as a pickle, or as bytes
        packed.writestr("config_feat.npy", pickle.dumps(Malicious()))
    with pytest.raises(UserError, match="cannot use"):
        load(buffer.getvalue())


def test_a_missing_file_is_named(load, tmp_path):
    from bbo_suite.registry import Registry

    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(UserError, match="cannot read"):
            Registry().load(f"recorded:{path}")
