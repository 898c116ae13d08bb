"""Halide itself: the algorithms against numpy, schedules against the algorithms, and bad schedules."""

import numpy as np
import pytest

pytest.importorskip("halide")

from bbo_problems.halide import schedules, worker
from bbo_problems.halide.problem import HalideProblem
from bbo_problems.halide.schedules import PIPELINES, source
from bbo_suite import Status, UserError

from ..candidates import changed

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.filterwarnings("ignore:The floating-point value"),
]


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return [rng.random(shape, np.float32).astype(float) for shape in shapes]


def moved(image, dy, dx):
    """Return the image with its border repeated, read at an offset."""
    rows = np.clip(np.arange(image.shape[0]) + dy, 0, image.shape[0] - 1)
    columns = np.clip(np.arange(image.shape[1]) + dx, 0, image.shape[1] - 1)
    return image[rows][:, columns]


def inside(image, border):
    return image[..., border:-border, border:-border]


def blur():
    (image,) = drawn((1024, 1536))
    return sum(
        np.outer([1, 2, 1], [1, 2, 1])[i, j] / 16 * moved(image, i - 1, j - 1) for i in range(3) for j in range(3)
    )


def brightness(image):
    return np.tensordot([0.299, 0.587, 0.114], image, 1)


def unsharp():
    (image,) = drawn((3, 512, 768))
    gray, weights = brightness(image), np.exp(-(np.arange(-3, 4) ** 2) / 4.5)
    smooth = (
        sum(weights[i] * weights[j] * moved(gray, i - 3, j - 3) for i in range(7) for j in range(7))
        / weights.sum() ** 2
    )
    return (2 * gray - smooth) / (gray + 0.01) * image


def harris():
    from scipy import ndimage

    (image,) = drawn((3, 512, 768))
    gray = brightness(image)
    ix, iy = (ndimage.sobel(gray, axis) / 12 for axis in (1, 0))
    a, b, c = (9 * ndimage.uniform_filter(product, 3) for product in (ix * ix, iy * iy, ix * iy))
    return a * b - c * c - 0.04 * (a + b) ** 2


def matmul():
    left, right, bias = drawn((384, 384), (384, 384), (384,))
    return np.maximum(0, left @ right + bias - 96)


def conv():
    image, weights, bias = drawn((48, 48, 32), (3, 3, 32, 32), (32,))
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    total = sum(padded[i : i + 48, j : j + 48] @ weights[i, j] for i in range(3) for j in range(3))
    return np.maximum(0, total + bias - 72)


def pyramid():
    def shrunk(image, axis):
        taps = {-1: 0.125, 0: 0.375, 1: 0.375, 2: 0.125}
        every = np.arange(0, image.shape[axis], 2)
        return sum(w * image.take(np.clip(every + d, 0, image.shape[axis] - 1), axis=axis) for d, w in taps.items())

    def up(image):
        def along(image, axis):
            places = np.arange(2 * image.shape[axis])
            far = np.clip(places // 2 - 1 + 2 * (places % 2), 0, image.shape[axis] - 1)
            return 0.75 * image.take(places // 2, axis=axis) + 0.25 * image.take(far, axis=axis)

        return along(along(image, 1), 0)

    (image,) = drawn((1024, 1024))
    level_1 = shrunk(shrunk(image, 1), 0)
    level_2 = shrunk(shrunk(level_1, 1), 0)
    return 1.5 * (image - up(level_1)) + up(1.5 * level_1 - 0.5 * up(level_2))


RIGHT = {function.__name__: function for function in (blur, unsharp, harris, matmul, conv, pyramid)}


def timed(name, threads=1):
    pipeline = PIPELINES[name]
    space = schedules.space(pipeline, False)
    default = source(pipeline, space.describe(schedules.default(pipeline, False, 8)))
    return worker.Timed(name, pipeline.extents, pipeline.output.name, default, threads), default


def entered(stage, seconds):
    assert stage and seconds > 1


@pytest.mark.parametrize("name", RIGHT)
def test_the_default_computes_what_the_algorithm_says(name):
    """The pyramid has a margin, because its higher levels are computed beyond the image, not repeated at its border."""
    result, right = timed(name)[0].correct, RIGHT[name]()
    border = {"pyramid": 16, "harris": 2}.get(name)
    if border:
        result, right = inside(result, border), inside(right, border)
    assert np.abs(result - right).max() < 1e-4 * np.abs(right).max()


def test_schedules_and_autoschedulers_are_timed_and_compared():
    timer, default = timed("blur")
    assert 0.2 < timer.answer(default, entered) < 5
    slow = default.replace(".vectorize(xi, 8)", "").replace(".vectorize(x, 8)", "")
    assert timer.answer(slow, entered) > 1.5
    assert timer.answer(("autoscheduler", "Adams2019", (("beam_size", "1"),)), entered) > 0.1
    assert 0 < timer.answer("seconds", entered) < 10
    timer.correct = timer.correct + 0.01
    status, reason = timer.answer(default, entered)
    assert status == "wrong_result" and "differs from the default's result by 0.01" in reason


def test_a_problem_evaluates_in_a_child_and_a_refused_schedule_is_a_compile_error(monkeypatch):
    problem = HalideProblem("matmul")
    other = changed(problem, {"product.order": 1})
    texts = {problem.request(other): problem.request(other).replace("compute_at(relu, xo)", "compute_at(relu, x)")}
    plain = problem.request
    monkeypatch.setattr(problem, "request", lambda row: texts.get(plain(row), plain(row)))
    result = problem.evaluate(np.array([problem.default_row(), other]))
    assert result.status.tolist() == [Status.OK, Status.COMPILE_ERROR] and 0.2 < result.values[0] < 5
    assert "product" in result.reasons[1]


def test_threads_processor_and_version_are_part_of_the_identity(monkeypatch):
    alone, together = HalideProblem("blur"), HalideProblem("blur@parallel")
    assert len(together.space) == len(alone.space) + 2
    assert ".parallel(yo)" in together.paste(together.default_row())
    assert ".parallel" not in alone.paste(alone.default_row())
    monkeypatch.setattr("bbo_problems.halide.problem.machine", lambda: ("another", 8))
    assert len({alone.fingerprint(), together.fingerprint(), HalideProblem("blur").fingerprint()}) == 3


def test_measuring_ends_when_the_mean_is_settled():
    now, calls = [0.0], []

    def takes(seconds, noise):
        def run():
            calls.append(seconds)
            now[0] += seconds * (1 + noise * (len(calls) % 4 - 1))

        return run

    def pairs(noise, until_settled):
        calls.clear()
        assert worker.ratio(takes(0.001, noise), takes(0.002, 0), lambda: now[0], until_settled) < 1
        return len(calls) // 2

    assert pairs(0, True) == worker.FEWEST
    assert pairs(0, False) == 31 and pairs(0.3, True) == pairs(0.3, False) == 30
    assert HalideProblem("blur@settled").fingerprint() != HalideProblem("blur").fingerprint()
    with pytest.raises(UserError, match="@settled"):
        HalideProblem("blur@now")


def test_a_thread_that_waits_for_its_core_does_not_change_the_ratio_of_the_shortest_times():
    now, calls = [0.0], []

    def takes(seconds):
        def run():
            calls.append(seconds)
            now[0] += seconds * (20 if len(calls) % 3 == 1 else 1)

        return run

    assert worker.least_ratio(takes(0.004), takes(0.002), lambda: now[0]) == pytest.approx(2)
    assert 2 * worker.FEWEST <= len(calls) <= 62
    assert worker.least_ratio(takes(2.0), takes(0.5), lambda: now[0]) == pytest.approx(4)
