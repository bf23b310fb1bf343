"""The page of a run in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from memlint.bench.html.page import render_page
from tests.bench import sessions
from tests.bench.test_html_page import HOSTILE, wild
from tests.report.browser import chromium, requests, show
from tests.report.test_html_browser import FAINT, OPEN_ALL, OVERFLOWING

WIDTHS, SCHEMES = (400, 800, 1200), ("light", "dark")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "out.html"
    path.write_text(render_page(sessions.SESSION), encoding="utf-8")
    return path


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


# Labels of one picture whose boxes cover each other.
COVERED = """
const found = [];
for (const picture of document.querySelectorAll('svg.plot, svg.side, svg.ratio-scale')) {
  const labels = [...picture.querySelectorAll('text')].map(
    one => [one, one.getBoundingClientRect()]);
  labels.forEach(([one, a], index) => labels.slice(index + 1).forEach(([other, b]) => {
    const apart = a.right <= b.left || b.right <= a.left
      || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
    if (!apart) found.push([one.textContent, other.textContent]);
  }));
}
return found;
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_do_not_cover_each_other(driver: Any, page: Path, width: int) -> None:
    show(driver, page, width)
    assert driver.execute_script(COVERED) == []


def test_points_lie_within_their_plot_and_say_what_they_are(driver: Any, page: Path) -> None:
    show(driver, page, 1200)
    counts = driver.execute_script("""
        return [...document.querySelectorAll('svg.plot')].map(plot => {
          const room = plot.getBoundingClientRect();
          return [...plot.querySelectorAll('.point')].filter(one => {
            const box = one.querySelector('path').getBoundingClientRect();
            const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
            const within = x >= room.left - 1 && x <= room.right + 1
              && y >= room.top - 1 && y <= room.bottom + 1;
            return within && one.querySelector('title').textContent.includes(':');
          }).length;
        });
    """)
    plots = [plot for outcome in sessions.OUTCOMES for plot in outcome.plots]
    assert counts == [sum(len(curve.points) for curve in plot.curves) for plot in plots]


def test_a_point_is_where_its_curve_is(driver: Any, page: Path) -> None:
    show(driver, page, 1200)
    apart = driver.execute_script("""
        const plot = document.querySelector('svg.plot');
        const curve = plot.querySelector('.curve.s0');
        const matrix = curve.getScreenCTM();
        const corners = curve.getAttribute('d').slice(1).split('L').map(one => {
          const [x, y] = one.split(' ').map(Number);
          return new DOMPoint(x, y).matrixTransform(matrix);
        });
        return [...plot.querySelectorAll('.point.s0 path')].map((one, index) => {
          const box = one.getBoundingClientRect();
          return Math.hypot((box.left + box.right) / 2 - corners[index].x,
                            (box.top + box.bottom) / 2 - corners[index].y);
        });
    """)
    assert len(apart) == 4
    assert max(apart) < 1.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [400, 1200])
def test_texts_stand_out_from_what_is_behind_them(
    driver: Any, page: Path, scheme: str, width: int
) -> None:
    show(driver, page, width, scheme)
    driver.execute_script(OPEN_ALL)
    seen, faint = driver.execute_script(FAINT)
    assert seen > 150
    assert faint == []


def test_the_scheme_follows_a_key(driver: Any, page: Path) -> None:
    show(driver, page, scheme="light")
    ask = "return getComputedStyle(document.body).backgroundColor"
    light = driver.execute_script(ask)
    driver.find_element("id", "theme").send_keys(" ")
    assert driver.execute_script(ask) != light
    driver.execute_script("localStorage.clear()")


@pytest.mark.parametrize("width", [400, 1200])
def test_what_others_wrote_does_nothing(driver: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "wild.html"
    path.write_text(render_page(wild()), encoding="utf-8")
    show(driver, path, width)
    driver.execute_script(OPEN_ALL)
    assert driver.get_log("browser") == []
    assert driver.find_elements("css selector", "img, [onload], [onerror]") == []
    assert HOSTILE in driver.find_element("css selector", "h1").text
    assert driver.execute_script(OVERFLOWING) == []
