"""Open pages in a headless Chromium for tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """Return the path of Chromium, or None if it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator:
    """Start the installed Chromium; skip the test if there is none."""
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers run as root, and Chromium's sandbox does not start as root.
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


class Visit:
    """An open page, with its console messages and requests."""

    def __init__(self, running, path: Path, *, width=1280, height=800, **context):
        self.page = running.new_page(viewport={"width": width, "height": height}, **context)
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_) -> None:
        self.page.close()

    def evaluate(self, script: str, *values):
        return self.page.evaluate(script, *values)

    def style(self, selector: str, name: str) -> str:
        return self.page.eval_on_selector(selector, f"(e) => getComputedStyle(e).{name}")
