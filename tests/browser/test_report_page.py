"""Reports in a real browser: no error, no request, and everything that moves does so by mouse and by keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_pages import NASTY, evaluated, series, spectrum, words

import genkern
from genkern import recipes

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return pages of sequences, of series, of objects without labels, and of hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    data = words(60)
    walks = series(30)
    fisher = recipes.fisher_svm(2)
    hostile = genkern.Dataset(
        data.X, np.array(NASTY[:2])[np.arange(60) % 2], [f"{NASTY[i % 4]}{i}" for i in range(60)], kind="symbols"
    )
    given: dict[str, tuple[Any, ...]] = {
        "words": (data, evaluated(data, words=recipes.spectrum_svm(1)), recipes.spectrum_svm(1)),
        "walks": (walks, evaluated(walks, fisher=fisher), fisher),
        "plain": (genkern.Dataset(data.X, kind="symbols"),),
        "hostile": (hostile, evaluated(hostile, nasty=spectrum()), spectrum()),
    }
    for name, parts in given.items():
        genkern.write_report(folder / f"{name}.html", *parts)
    return {name: folder / f"{name}.html" for name in given}


@pytest.fixture
def page(browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """Return the browser with the page of sequences, 1280 pixels wide, light."""
    emulate(browser, 1280)
    open_page(browser, pages["words"])
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def emulate(browser: Any, width: int, scheme: str = "light", media: str = "") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    features.append({"name": "prefers-reduced-motion", "value": "reduce"})  # or what is clicked is still moving
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def open_page(browser: Any, path: Path) -> None:
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(path.as_uri())


def view_box(browser: Any) -> list[float]:
    text = browser.execute_script("return document.querySelector('#canvas svg').getAttribute('viewBox')")
    return [float(part) for part in text.split()]


def shown(browser: Any) -> list[dict[str, str]]:
    visible = "[...document.querySelectorAll('#canvas .gk-mark')].filter(m => getComputedStyle(m).display !== 'none')"
    return browser.execute_script(f"return {visible}.map(m => ({{...m.dataset}}))")


def tip(browser: Any) -> str:
    return browser.execute_script("const t = document.getElementById('tip'); return t.hidden ? '' : t.innerText")


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    browser.execute_script("document.getElementById('canvas').focus()")
    ActionChains(browser).send_keys(*keys).perform()


@pytest.mark.parametrize("name", ["words", "walks", "plain", "hostile"])
def test_no_error_and_no_request(browser: Any, pages: dict[str, Path], name: str) -> None:
    emulate(browser, 1280)
    open_page(browser, pages[name])
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in sent if not url.startswith("data:")] == [pages[name].as_uri()]
    assert browser.title != "lost"
    assert browser.execute_script("return document.scripts.length") == 1


def test_pointing_at_a_mark_tells_id_class_and_prediction(page: Any) -> None:
    from selenium.webdriver import ActionChains

    assert tip(page) == ""
    marks = page.find_elements("css selector", "#canvas .gk-mark")
    ActionChains(page).move_to_element(marks[-1]).perform()  # the last one is above all others
    data = page.execute_script("return {...arguments[0].dataset}", marks[-1])
    said = tip(page)
    assert data["id"] in said
    assert f"class {data['label']}" in said
    assert f"predicted {data['predicted']}" in said
    ActionChains(page).move_to_element(page.find_element("id", "title")).perform()
    assert tip(page) == ""


def test_the_filter_hides(page: Any) -> None:
    from selenium.webdriver.support.ui import Select

    every = shown(page)
    assert len(every) == 60
    Select(page.find_element("id", "by-class")).select_by_visible_text("coding")
    assert shown(page) == [mark for mark in every if mark["label"] == "coding"]
    Select(page.find_element("id", "by-outcome")).select_by_visible_text("wrong")
    wrong = [mark for mark in every if mark["label"] == "coding" != mark["predicted"]]
    assert shown(page) == wrong != []
    assert page.find_element("id", "shown").text == f"{len(wrong)} of 60 objects shown"
    Select(page.find_element("id", "by-class")).select_by_index(0)
    Select(page.find_element("id", "by-outcome")).select_by_visible_text("right")
    assert shown(page) == [mark for mark in every if mark["label"] == mark["predicted"]]
    Select(page.find_element("id", "by-outcome")).select_by_index(0)
    page.find_element("id", "by-id").send_keys("SEQ01")
    assert shown(page) == [mark for mark in every if mark["id"].startswith("seq01")] != []


def test_zoom_by_buttons_wheel_and_drag(page: Any) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    whole = view_box(page)
    page.find_element("css selector", "[data-zoom=in]").click()
    inside = view_box(page)
    np.testing.assert_allclose(inside[2:], np.array(whole[2:]) / 1.5, rtol=1e-3)
    np.testing.assert_allclose(np.array(inside[:2]) + np.array(inside[2:]) / 2, np.array(whole[2:]) / 2, rtol=1e-3)
    page.find_element("css selector", "[data-zoom=out]").click()
    assert view_box(page) == whole
    canvas = page.find_element("id", "canvas")
    origin = ScrollOrigin.from_element(canvas)
    ActionChains(page).scroll_from_origin(origin, 0, -100).perform()
    assert view_box(page) == whole  # a page can be scrolled past the map
    canvas.click()
    ActionChains(page).scroll_from_origin(origin, 0, -200).perform()
    near = view_box(page)
    assert near[2] < whole[2]
    ActionChains(page).move_to_element(canvas).click_and_hold().move_by_offset(60, 40).release().perform()
    moved = view_box(page)
    assert moved[0] < near[0]
    assert moved[1] < near[1]
    page.find_element("css selector", "[data-zoom=all]").click()
    assert view_box(page) == whole


def test_everything_by_keys(page: Any) -> None:
    from selenium.webdriver import Keys

    whole = view_box(page)
    press(page, "+", "+")
    near = view_box(page)
    assert near[2] < whole[2]
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert view_box(page)[0] > near[0]
    assert view_box(page)[1] > near[1]
    press(page, "0")
    assert view_box(page) == whole
    ids = [mark["id"] for mark in shown(page)]
    press(page, "n")
    assert ids[0] in tip(page)
    press(page, "n", "n", "p")
    assert ids[1] in tip(page)
    press(page, Keys.ESCAPE)
    assert tip(page) == ""
    page.refresh()
    page.find_element("tag name", "body").send_keys(Keys.TAB)
    assert page.execute_script("return document.activeElement.className") == "skip"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.execute_script("return document.activeElement.id") == "main"


def test_the_order_of_the_matrix_is_switched(page: Any) -> None:
    def orders() -> list[str]:
        parts = page.find_elements("css selector", "[data-order]")
        return [part.get_attribute("data-order") for part in parts if part.is_displayed()]

    assert orders() == ["class"]
    page.find_element("css selector", "input[value=cluster]").click()
    assert orders() == ["cluster"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser: Any, pages: dict[str, Path], scheme: str) -> None:
    emulate(browser, 1280, scheme)
    open_page(browser, pages["words"])

    def lightness() -> tuple[float, float]:
        code = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        values = [
            [float(v) for v in text[text.index("(") + 1 : -1].split(",")[:3]] for text in browser.execute_script(code)
        ]
        return float(np.mean(values[0])), float(np.mean(values[1]))

    back, ink = lightness()
    assert (back > 200 > 100 > ink) if scheme == "light" else (back < 60 < 150 < ink)
    browser.find_element("id", "theme").click()
    turned = lightness()
    assert (turned[0] < 60 < 150 < turned[1]) if scheme == "light" else (turned[0] > 200 > 100 > turned[1])
    browser.find_element("id", "theme").click()
    assert lightness() == (back, ink)


@pytest.mark.parametrize("width", [360, 390, 768, 1100, 1280])
@pytest.mark.parametrize("name", ["words", "walks", "hostile"])
def test_no_page_is_wider_than_its_window(browser: Any, pages: dict[str, Path], name: str, width: int) -> None:
    emulate(browser, width)
    open_page(browser, pages[name])
    code = "const d = document; return Math.max(d.documentElement.scrollWidth, d.body.scrollWidth) - d.documentElement.clientWidth"
    assert browser.execute_script(code) == 0


def test_print_leaves_out_what_cannot_be_pressed(browser: Any, pages: dict[str, Path]) -> None:
    emulate(browser, 1280, "dark", media="print")
    open_page(browser, pages["words"])
    for name in ("nav", "#controls", "#theme", "#keys", ".switch"):
        assert not browser.find_element("css selector", name).is_displayed(), name
    assert browser.find_element("css selector", "#results table").is_displayed()
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.execute_script("return getComputedStyle(document.querySelector('.scroll')).overflow") == "visible"
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
