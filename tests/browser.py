"""A browser for tests: the system's own Chromium, without a window."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """Where Chromium is; without one the test is skipped, or fails if it must not be."""
    found = os.environ.get("RAMIFY_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    why = "no Chromium found (Debian, Ubuntu: apt install chromium; elsewhere name it in RAMIFY_CHROMIUM)"
    if os.environ.get("RAMIFY_REQUIRE_BROWSER") == "1":
        pytest.fail(f"RAMIFY_REQUIRE_BROWSER=1 and {why}")
    pytest.skip(why)


@contextmanager
def browser() -> Iterator[Any]:
    """One process of it, for as many pages as a module needs."""
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=100_000)
        yield launched
        launched.close()


def screenshots(otherwise: Path) -> Path:
    """Where pictures are kept: `RAMIFY_SCREENSHOTS`, for CI to keep, else where tests leave theirs."""
    folder = Path(os.environ.get("RAMIFY_SCREENSHOTS") or otherwise)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Visit:
    """A page that was opened, what it asked the network for, and what it complained of. Its clock may be the test's."""

    def __init__(self, launched: Any, url: str, *, dark: bool = False, clock: bool = False) -> None:
        scheme = "dark" if dark else "light"
        self.page = launched.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
        self.page.set_default_timeout(100_000)
        self.page.emulate_media(reduced_motion="reduce")
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if clock:
            self.page.clock.install()
        self.page.goto(url)

    def close(self) -> None:
        """Leave it."""
        self.page.close()
