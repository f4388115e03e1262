"""Chromium for tests of the page. It has no network; what a page asks for, says and throws is kept."""

import contextlib
import dataclasses
import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclasses.dataclass
class Visit:
    """A page that is open."""
    page: object
    requests: list
    complaints: list  # errors, and what the page writes to the console

    def wide(self):
        """How far the page is wider than its window, in pixels."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def hash(self):
        return self.page.evaluate("location.hash")


def path_of_chromium():
    """The path of Chromium, which scripts/setup --tests installs on Debian."""
    path = os.environ.get("DEVSAN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "no Chromium is installed: run scripts/setup --tests, or name one with DEVSAN_CHROMIUM"
    return path


@contextlib.contextmanager
def browser():
    path = path_of_chromium()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


@contextlib.contextmanager
def visit(running, file, address="", width=1280, **options):
    """Opens a file as a person does who double-clicks it."""
    context = running.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
    context.set_default_timeout(10_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    visited = Visit(page, [], [])
    page.on("request", lambda request: visited.requests.append(request.url))
    page.on("console", lambda message: visited.complaints.append(message.text))
    page.on("pageerror", lambda error: visited.complaints.append(str(error)))
    page.goto(file.resolve().as_uri() + address)
    page.wait_for_selector("main")
    yield visited
    context.close()
