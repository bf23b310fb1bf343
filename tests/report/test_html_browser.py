"""The HTML report in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from tests.report import evidence_samples as samples
from tests.report.browser import chromium, requests, show
from tests.report.test_html_page import HOSTILE, page_of

WIDTHS, SCHEMES = (400, 1600), ("light", "dark")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "out.html"
    path.write_text(page_of(samples.document()), encoding="utf-8")
    return path


OVERFLOWING = """
const room = document.documentElement;
if (room.scrollWidth > room.clientWidth) return [`${room.scrollWidth} > ${room.clientWidth}`];
return [...document.querySelectorAll('body *')].filter(one =>
    one.getBoundingClientRect().right > room.clientWidth + 0.5
    && !one.closest('.scroll, .timeline, .excerpt, nav, details:not([open])')
).map(one => one.outerHTML.slice(0, 200))
"""
OPEN_ALL = "for (const one of document.querySelectorAll('details')) one.open = true"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("opened", [False, True])
def test_it_fits_and_asks_for_nothing(
    driver: Any, page: Path, width: int, scheme: str, opened: bool
) -> None:
    show(driver, page, width, scheme)
    if opened:
        driver.execute_script(OPEN_ALL)
    assert driver.execute_script("return innerWidth") == width
    assert driver.execute_script(OVERFLOWING) == []
    assert driver.get_log("browser") == []
    assert requests(driver) == [page.as_uri()]


# Every text against the nearest background behind it.  WCAG 2.1 AA: 4.5, large text 3.
FAINT = """
const channels = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => {
  const part = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = one => {
  for (let here = one; here; here = here.parentElement) {
    const found = channels(getComputedStyle(here).backgroundColor);
    if (found.length < 4 || found[3] === 1) return found;
  }
};
const faint = [];
let seen = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const one = walker.currentNode.parentElement;
  const box = one.getBoundingClientRect();
  const quiet = one.closest('script, style, svg, title, desc, option, [hidden]');
  if (!walker.currentNode.data.trim() || !box.width || quiet) continue;
  const style = getComputedStyle(one);
  const [a, b] = [light(channels(style.color)), light(behind(one))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const size = parseFloat(style.fontSize);
  seen += 1;
  if (ratio < (size >= 24 ? 3 : 4.5)) faint.push([ratio, one.outerHTML.slice(0, 120)]);
}
return [seen, faint];
"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_stand_out_from_what_is_behind_them(driver: Any, page: Path, scheme: str) -> None:
    show(driver, page, scheme=scheme)
    driver.execute_script(OPEN_ALL)
    seen, faint = driver.execute_script(FAINT)
    assert seen > 200
    assert faint == []


# Marks and texts within pictures against the card or the page: 3 for marks, 4.5 for texts.
FAINT_MARKS = """
const channels = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => {
  const part = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const rgb = text => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d');
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const grounds = ['.card', 'body'].map(
  one => light(rgb(getComputedStyle(document.querySelector(one)).backgroundColor)));
const wanted = [['.bars rect', 3], ['.bands rect', 3], ['.stack rect', 3], ['.held', 3],
  ['.ratio', 3], ['.interval', 3], ['.sum', 3], ['.copy', 3], ['svg > text', 4.5]];
const faint = [];
for (const [kind, least] of wanted) {
  const found = [...document.querySelectorAll(kind)].filter(one => one.closest('svg'));
  if (!found.length) faint.push([kind, 'missing']);
  for (const one of found) {
    const own = light(rgb(getComputedStyle(one).fill));
    for (const ground of grounds) {
      const ratio = (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
      if (ratio < least) faint.push([kind, ratio, one.outerHTML.slice(0, 90)]);
    }
  }
}
return faint;
"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_marks_stand_out_too(driver: Any, page: Path, scheme: str) -> None:
    show(driver, page, scheme=scheme)
    driver.execute_script(OPEN_ALL)
    assert driver.execute_script(FAINT_MARKS) == []


def background(driver: Any) -> str:
    return str(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))


def test_the_scheme_follows_the_system_and_a_key(driver: Any, page: Path) -> None:
    show(driver, page, scheme="dark")
    driver.execute_script("localStorage.clear()")
    dark = background(driver)
    show(driver, page, scheme="light")
    light = background(driver)
    assert light != dark
    button = driver.find_element("id", "theme")
    assert button.get_attribute("aria-pressed") == "false"
    button.send_keys(" ")
    assert (background(driver), button.get_attribute("aria-pressed")) == (dark, "true")
    show(driver, page, scheme="light")
    assert background(driver) == dark  # it is remembered
    driver.find_element("id", "theme").send_keys("\ue007")
    assert background(driver) == light
    driver.execute_script("localStorage.clear()")


def test_all_that_can_be_used_is_reached_by_tabbing(driver: Any, page: Path) -> None:
    show(driver, page)
    reached = set()
    for _ in range(120):
        driver.switch_to.active_element.send_keys("\ue004")
        here = driver.execute_script(
            "const one = document.activeElement; return one === document.body ? '' :"
            " one.id || one.name || one.dataset.zoom || one.localName + '.' + one.className"
        )
        if not here:
            break
        reached.add(here)
    wanted = {
        "theme", "verdict", "code", "text", "open-all", "close-all", "in", "out", "reset", "lanes",
        "summary.", "div.excerpt", "div.scroll", "a.skip", "a.",
    }  # fmt: skip
    assert wanted <= reached


def shown(driver: Any) -> list[str]:
    found = driver.execute_script(
        "return [...document.querySelectorAll('[data-finding]')].filter("
        "one => one.getBoundingClientRect().height).map(one => one.dataset.code)"
    )
    return [str(one) for one in found]


def test_findings_are_filtered(driver: Any, page: Path) -> None:
    show(driver, page)
    every = ["MEM308", "MEM311", "MEM506", "MEM310", "MEM205"]
    assert shown(driver) == every
    box = driver.find_element("css selector", "[name=verdict][value=refuted]")
    box.send_keys(" ")
    assert shown(driver) == [one for one in every if one != "MEM310"]
    assert driver.find_element("id", "shown").text == "4 of 5 shown"
    box.send_keys(" ")
    driver.find_element("css selector", "[name=code]").send_keys("MEM506")
    assert shown(driver) == ["MEM506"]
    driver.find_element("css selector", "[name=code]").send_keys("\ue011")
    text = driver.find_element("css selector", "[name=text]")
    text.send_keys("SYNC-in")
    assert shown(driver) == ["MEM205"]
    text.send_keys("\ue007")
    assert shown(driver) == ["MEM205"]  # nothing is sent, and nothing opened anew
    text.send_keys("nothing")
    assert driver.find_element("id", "shown").text == "0 of 5 shown"


def test_cards_open_and_close(driver: Any, page: Path) -> None:
    show(driver, page)
    driver.find_element("id", "close-all").click()
    assert driver.find_elements("css selector", "details[data-finding][open]") == []
    driver.find_element("css selector", "details[data-finding] summary").send_keys("\ue007")
    assert len(driver.find_elements("css selector", "details[data-finding][open]")) == 1
    driver.find_element("id", "open-all").click()
    assert len(driver.find_elements("css selector", "details[data-finding][open]")) == 5


def test_the_timeline_is_zoomed_and_walked_by_keys(driver: Any, page: Path) -> None:
    show(driver, page)
    region = driver.find_element("id", "lanes")

    def width() -> int:
        return int(driver.execute_script("return arguments[0].scrollWidth", region))

    def fine() -> str:
        return str(
            driver.execute_script(
                "return getComputedStyle(document.querySelector('.axis .fine text')).display"
            )
        )

    whole = width()
    assert fine() == "none"
    region.send_keys("+++")
    assert width() > 4 * whole
    assert fine() != "none"
    region.send_keys("-")
    assert whole < width() < 4 * whole
    region.send_keys("0")
    assert width() == whole
    region.send_keys("nn")
    told = driver.find_element("id", "operation").text
    assert told == "aten::to: 7.20 ms from 12.0 ms, loading, model.py:15 train"
    assert len(driver.find_elements("css selector", ".chosen")) == 1
    region.send_keys("++++" + "n" * 40)
    left, right = driver.execute_script(
        "const box = one => one.getBoundingClientRect();"
        "const bar = box(document.querySelector('.chosen'));"
        "return [bar.left - box(document.querySelector('.label')).right,"
        " box(arguments[0]).right - bar.left]",
        region,
    )
    assert left >= -1  # not under the names of the lanes
    assert right > 0
    region.send_keys("0")
    told = driver.find_element("id", "operation").text
    region.send_keys("p")
    assert driver.find_element("id", "operation").text != told
    driver.find_element("css selector", "[data-zoom=in]").click()
    assert width() > whole


def test_without_scripts_all_is_there(driver: Any, page: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, page, 400)
        for control in ("theme", "filter", "zoom", "operation"):
            assert not driver.find_element("id", control).is_displayed()
        for part in ("phases", "timeline", "memory", "journeys", "lines", "run"):
            assert driver.find_element("id", part).is_displayed()
        closed = driver.find_elements("css selector", "details[data-finding]")[-1]
        closed.find_element("css selector", "summary").click()
        assert closed.find_element("css selector", ".message").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", WIDTHS)
def test_what_the_program_wrote_does_nothing(driver: Any, tmp_path: Path, width: int) -> None:
    text = f"{HOSTILE}<script>hack()</script>"
    wild = samples.with_texts(samples.document(), lambda _: text)
    path = tmp_path / "wild.html"
    path.write_text(page_of(wild, text * 20), encoding="utf-8")
    show(driver, path, width)
    driver.execute_script(OPEN_ALL)
    assert driver.get_log("browser") == []
    assert requests(driver) == [path.as_uri()]
    assert driver.find_elements("css selector", "img, [onload], [onerror]") == []
    assert len(driver.find_elements("css selector", "script")) == 1
    message = driver.find_element("css selector", ".message")
    assert message.text == text
    assert driver.find_element("css selector", "h1").text == "Trace of script>"
    assert driver.execute_script(OVERFLOWING) == []
