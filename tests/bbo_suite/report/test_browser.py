"""The page in a real browser; skipped where there is none, or no selenium to drive it."""

import shutil

import numpy as np
import pytest

from bbo_suite import figures
from bbo_suite.report import write

webdriver = pytest.importorskip("selenium.webdriver")
ActionBuilder = pytest.importorskip("selenium.webdriver.common.actions.action_builder").ActionBuilder
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
STRATEGIES = ["annealing", "nevergrad:DiscreteLenglerOnePlusOne", "<script>document.title = 'broken'</script>"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def file(tmp_path_factory, studies_in):
    studies, rng = studies_in(tmp_path_factory.mktemp("page")), np.random.default_rng(0)
    for number in range(6):
        finals = {name: 4 + rng.random(3) + place for place, name in enumerate(STRATEGIES)}
        studies.add(studies.finals(f"fusion/a-program-with-a-long-name-{number}", **finals), structure=STRATEGIES[:1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            figures, "FIGURES", {name: figures.FIGURES[name] for name in ("convergence", "speedup")}
        )  # the others take seconds
        return write("s", studies.path)


@pytest.fixture
def opened(file, browser):
    show(browser, 1280)
    browser.get(file.as_uri())
    return browser


def show(browser, width, scheme="light"):
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def column(browser, table, number):
    rows = f"[...document.querySelectorAll('#{table} tbody tr')].filter(row => !row.hidden)"
    return browser.execute_script(f"return {rows}.map(row => row.cells[{number}].textContent)")


def click(browser, table, number):
    button = browser.find_elements("css selector", f"#{table} th button")[number]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", button)
    button.click()
    return column(browser, table, number)


def test_it_loads_without_an_error_and_runs_nothing_of_a_name(opened):
    assert opened.get_log("browser") == []
    assert opened.title == "s: report"
    figure(opened)
    assert opened.execute_script("return document.querySelectorAll('script, [onerror]').length") == 1


def test_tables_sort_by_number_and_by_text(opened):
    falling = [float(text) for text in click(opened, "speedups", 4)]
    assert falling == sorted(falling, reverse=True) and len(set(falling)) > 5
    assert [float(text) for text in click(opened, "speedups", 4)] == falling[::-1]
    names = click(opened, "speedups", 1)
    assert names == sorted(
        names, key=lambda name: STRATEGIES[::-1].index(name.removesuffix(" *")) if name[0] == "<" else 1
    )
    assert click(opened, "speedups", 0) == sorted(column(opened, "speedups", 0))
    sorted_by = opened.execute_script(
        "return [...document.querySelectorAll('#speedups th[aria-sort]')].map(h => h.cellIndex)"
    )
    assert sorted_by == [0]


def test_rows_are_filtered(opened):
    box = opened.find_element("css selector", "#speedups input")
    box.send_keys("annealing")
    assert set(column(opened, "speedups", 1)) == {"annealing *"}


def figure(browser, number=0):
    """Scroll to a figure and wait until it is unpacked."""
    box = browser.find_elements("css selector", "figure .drawing")[number]
    browser.execute_script("arguments[0].scrollIntoView({block: 'start'})", box)
    WebDriverWait(browser, 5).until(lambda _: box.find_elements("css selector", "svg"))
    return box


def point(browser, element, x, y):
    """Move the pointer to a place in an element, in fractions of its width and height; return the tip."""
    script = """const {left, top, width, height} = arguments[0].getBoundingClientRect();
        return [left + arguments[1] * width, top + arguments[2] * height].map(Math.round)"""
    actions = ActionBuilder(browser)
    actions.pointer_action.move_to_location(*browser.execute_script(script, element, x, y))
    actions.perform()
    return browser.find_element("css selector", ".tip").text


def test_a_curve_is_read_at_the_pointer(opened):
    box = figure(opened)
    curve = box.find_element("css selector", '[data-curve][data-strategy="annealing (uses structure)"] path')
    name, speedup, evaluations = point(opened, curve, 0.998, 0.002).split("\n")
    assert name == "annealing (uses structure)"
    assert evaluations == "evaluations: 2" and speedup.startswith("best speedup over the default: 1.")


VISIBLE = """return [...arguments[0].querySelectorAll('[id*=panel] [data-strategy]')]
    .filter((mark) => getComputedStyle(mark).visibility === 'visible').map((mark) => mark.dataset.strategy)"""


def test_a_strategy_is_hidden_in_every_figure(opened):
    boxes = [figure(opened, 1), figure(opened, 0)]
    opened.find_element("css selector", ".strategies summary").click()
    opened.find_element("css selector", f'.strategies input[value="{STRATEGIES[1]}"]').click()
    for box in boxes:
        shown = set(opened.execute_script(VISIBLE, box))
        assert len(shown) == 2 and STRATEGIES[1] not in shown


def test_a_figure_is_enlarged_zoomed_and_put_back(opened):
    box = figure(opened)
    button = opened.find_element("css selector", "button.enlarge")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    drawing = opened.find_element("css selector", "dialog svg")
    before = drawing.rect["width"]
    opened.find_element("css selector", "dialog button[value=in]").click()
    WebDriverWait(opened, 5).until(lambda _: drawing.rect["width"] > 1.2 * before)
    opened.find_element("css selector", "dialog button[value=close]").click()
    assert box.find_elements("css selector", "svg") and not opened.find_elements("css selector", "dialog svg")
    assert opened.get_log("browser") == []
