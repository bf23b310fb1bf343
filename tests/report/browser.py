"""A headless Chromium for pages of this project, where one is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium(folder: Path) -> Iterator[Any]:
    """A driver with a profile of its own in ``folder``; skips where there is no browser."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium with a chromedriver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS.split(), f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield running
    finally:
        running.quit()


def show(driver: Any, page: Path, width: int = 1600, scheme: str = "light") -> None:
    """Open a page in a window so wide, on a system with this colour scheme."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get("about:blank")
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    driver.get(page.as_uri())
    waiting = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait(driver, 60)
    waiting.until(lambda here: here.execute_script("return document.readyState") == "complete")


def requests(driver: Any) -> list[str]:
    """The addresses that were asked for since the page was opened."""
    events = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
    return [
        str(one["params"]["request"]["url"])
        for one in events
        if one["method"] == "Network.requestWillBeSent"
    ]
