"""The page in a real browser; skipped where there is none, or no selenium to drive it."""

import shutil

import numpy as np
import pytest

from bbo_suite import figures
from bbo_suite.report import write

webdriver = pytest.importorskip("selenium.webdriver")
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


def luminance(browser, kind):
    colour = browser.execute_script(f"return getComputedStyle(document.body).{kind}")
    return np.mean([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]])


def test_it_loads_without_an_error_and_runs_nothing_of_a_name(opened):
    assert opened.get_log("browser") == []
    assert opened.title == "s: report"
    broken = opened.execute_script("return [...document.images].filter(image => !image.naturalWidth).length")
    assert (len(opened.find_elements("css selector", "img")) > 1, broken) == (True, 0)


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


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(opened, width):
    show(opened, width)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    wide = (
        "return [...document.querySelectorAll('.wide')].map(box => [box.clientWidth, getComputedStyle(box).overflowX])"
    )
    assert all(inner <= width and how == "auto" for inner, how in opened.execute_script(wide))


def test_dark_and_light(opened):
    assert luminance(opened, "backgroundColor") > 200 > 60 > luminance(opened, "color")
    show(opened, 1280, "dark")
    assert luminance(opened, "backgroundColor") < 60 < 200 < luminance(opened, "color")
