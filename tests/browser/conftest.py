"""A browser in front of a gateway; whatever its console has to complain about fails the test."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from tests.browser import demo
from tests.browser.chromium import found_chromium
from tests.wire.serving import process

PATIENCE_MS = 15_000


@dataclass(frozen=True, slots=True)
class Demo:
    """A gateway with a month of invented traffic."""

    url: str
    """Of the page."""
    api: str
    """Root of the API."""
    key: str
    """Of an admin."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium; skips where there is none, and fails in CI.

    Not for the whole session: as long as it lives its event loop runs in this thread, and the
    asynchronous tests elsewhere want theirs.
    """
    program = found_chromium()
    if program is None:
        lack = "Chromium is not installed (apt install chromium, or CHROMIUM=/path/to/it)"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(lack)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A gateway in a process of its own."""
    folder = tmp_path_factory.mktemp("demo")
    key = demo.fill(folder)
    with process(demo.config(folder), folder) as address:
        yield Demo(f"{address.url}/ui", address.url, key)


@pytest.fixture
def complaints() -> list[str]:
    """What the page's console, its security policy or a dialog has said."""
    return []


@pytest.fixture
def page(watched: Page, complaints: list[str]) -> Iterator[Page]:
    """A page with cookies of its own; violations of its security policy fail the test."""
    yield watched
    watched.context.close()
    assert complaints == []


@pytest.fixture
def watched(browser: Browser, complaints: list[str]) -> Iterator[Page]:
    """A page that may complain."""

    def alarmed(dialog: Dialog) -> None:
        complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def note(message: ConsoleMessage) -> None:
        # A page that answers 4xx on purpose is an entry of its own.
        if message.type == "error" and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(
        "document.addEventListener('securitypolicyviolation', (event) =>"
        " console.error(`violates ${event.violatedDirective}: ${event.blockedURI}`))"
    )
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    opened.on("console", note)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", alarmed)
    yield opened
    context.close()


@pytest.fixture(scope="module")
def cookie(gateway: Demo) -> str:
    """Of one login for many tests: tries to log in are limited."""
    with httpx.Client(trust_env=False) as client:
        token = re.search(r'name="token" value="(\w+)"', client.get(f"{gateway.url}/login").text)
        assert token is not None
        client.post(f"{gateway.url}/login", data={"token": token[1], "key": gateway.key})
        found: str = client.cookies["tiergate_ui"]
        return found


@pytest.fixture
def inside(page: Page, gateway: Demo, cookie: str) -> Page:
    """The overview, seen by an admin."""
    page.context.add_cookies([{"name": "tiergate_ui", "value": cookie, "url": gateway.url}])
    page.goto(gateway.url)
    page.get_by_role("heading", name="At a glance").wait_for()
    return page


def slides(page: Page) -> int:
    """Points by which the whole page can be scrolled sideways; should be 0."""
    found: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found


__all__ = ["Demo", "slides"]
