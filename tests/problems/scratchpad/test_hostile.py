"""Any error in a file of the contest gives one sentence that names it."""

import numpy as np
import pytest

from bbo_problems.scratchpad.problem import ScratchpadProblem
from bbo_suite import UserError

CASES = {
    "no key": ({"widths": ...}, "it has no 'widths'"),
    "an unknown key": ({"colour": 3}, "'colour' is not a key"),
    "lengths of tensors": ({"widths": [128, 128]}, "lists differ in length: widths 2, heights 3"),
    "a negative size": ({"widths": [128, -1, 128]}, "entry 1 of 'widths' is -1"),
    "a fraction": ({"widths": [128, 1.5, 128]}, "entry 1 of 'widths' is 1.5"),
    "an infinite cost": ({"base_costs": [float("inf"), 1]}, "entry 0 of 'base_costs' is Infinity"),
    "a text": ({"widths": "128"}, "'widths' is not a list"),
    "a tensor that is not there": ({"inputs": [[0], [7]]}, "'inputs[1]' names tensor 7, but there are 3"),
    "two results": ({"outputs": [[1], [2, 0]]}, "operation 1 writes 2 tensors"),
    "a result twice": ({"outputs": [[1], [1]]}, "operations 0 and 1 both write tensor 1"),
    "an operation that reads its result": ({"inputs": [[1], [1]]}, "wait for each other"),
    "an unknown operation": ({"op_types": ["Pointwise", "Conv"]}, "entry 1 of 'op_types' is \"Conv\""),
    "a product of one": ({"op_types": ["Pointwise", "MatMul"]}, "operation 1 is a MatMul of 1 tensors"),
    "no bandwidth": ({"slow_memory_bandwidth": 0}, "entry 0 of 'slow_memory_bandwidth' is 0"),
    "too many inputs": ({"inputs": [[0], [1] * 17]}, "at most 16 are supported"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_file_is_refused(load, contents, case):
    changes, message = CASES[case]
    content = {key: value for key, value in (contents["chain"] | changes).items() if value is not ...}
    with pytest.raises(UserError, match=r"^cannot use .*graph.json: ") as refused:
        load(content)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_product_of_tensors_that_do_not_fit_is_refused(load, contents):
    with pytest.raises(UserError, match="do not fit together"):
        load(contents["product"] | {"widths": [64, 128, 128]})


def test_a_memory_below_what_any_candidate_needs_is_refused(load, contents):
    with pytest.raises(UserError, match="needs 3 elements"):
        load(contents["product"] | {"fast_memory_capacity": 2})


@pytest.mark.slow
def test_the_largest_numbers_give_a_finite_cost(load, contents):
    big = 1 << 31
    changes = {"widths": [big] * 3, "heights": [big] * 3, "base_costs": [big], "slow_memory_bandwidth": 1}
    problem = load(contents["product"] | changes | {"fast_memory_capacity": 3})
    costs = problem.evaluate(np.vstack([problem.default_row(), 0 * problem.default_row()])).values
    assert np.isfinite(costs).all()
    assert (costs > float(big) ** 3).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON, or truncated"),
        ("[]", "its JSON is not an object"),
        ('{"widths": [1', "not JSON, or truncated"),
        ('{"widths": [1], "widths": [2]}', "'widths' occurs twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"widths": [%s]}' % ("9" * 5000), "thousands of digits"),
    ],
)
def test_a_cut_file_is_refused(load, text, message):
    with pytest.raises(UserError, match=message):
        load(text)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path, load):
    for path, message in ((tmp_path / "none", "cannot read"), (tmp_path, "cannot read")):
        with pytest.raises(UserError, match=message):
            ScratchpadProblem(path)
    (tmp_path / "bytes").write_bytes(b"\xc3\x28 \xa0")
    with pytest.raises(UserError, match="not text in UTF-8"):
        ScratchpadProblem(tmp_path / "bytes")
