"""Chromium, headless, with an empty profile; where it is missing tests are skipped, or fail where CI is set."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # of what is shared with other tests

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


def missing(what: str) -> None:
    """Fail in continuous integration; elsewhere skip and say why."""
    text = f"{what} is missing: install Debian's chromium and chromium-driver, and selenium (the dev extra)."
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a browser that logs its console and its requests."""
    try:
        from selenium import webdriver
    except ImportError:
        missing("selenium")
    for name in ("chromium", "chromedriver"):
        if shutil.which(name) is None:
            missing(name)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()
