"""What is seen at once, and what is said where it is needed."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Demo

ANSWERS = ("Spent $", "Hosted instead $", "Escalated", "Promises hold Yes", "Near a limit support")
"""Begins of what the links say."""


def test_five_answers_are_in_the_first_screen_and_lead_to_their_reasons(inside: Page) -> None:
    links = inside.locator(".glance a")

    said = [" ".join(one.split()) for one in links.all_inner_texts()]
    begun = [one.startswith(begin) for one, begin in zip(said, ANSWERS, strict=True)]
    assert begun == [True] * 5, said
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 400
        target = link.get_attribute("href")
        expect(inside.locator(f"h2{target}")).to_have_count(1)


@pytest.mark.parametrize("path", ["", "/decisions", "/keys", "/keys/support-desk", "/playground"])
def test_the_ways_to_all_pages_are_seen_on_a_phone(inside: Page, gateway: Demo, path: str) -> None:
    inside.set_viewport_size({"width": 360, "height": 740})
    inside.goto(gateway.url + path)

    hidden = inside.locator(".top nav").evaluate("nav => nav.scrollWidth - nav.clientWidth")

    assert hidden == 0


def test_whether_a_decision_was_answered_is_seen_on_a_phone(inside: Page, gateway: Demo) -> None:
    inside.set_viewport_size({"width": 360, "height": 740})
    inside.goto(f"{gateway.url}/decisions")

    badge = inside.locator("tbody .badge").first.bounding_box()

    assert badge is not None
    assert badge["x"] + badge["width"] <= 344  # within the card


def test_what_is_said_about_labels_fits_the_question(inside: Page) -> None:
    page = inside
    page.get_by_role("link", name="Playground").click()
    said = page.locator(".question").first.locator(".labels label")

    for kind, words in (
        ("choice", "Options one a line, as name: meaning"),
        ("score", "Levels one a line, the lowest first"),
        ("noul", "What yes and no mean may be empty; otherwise a line each, as yes: meaning"),
    ):
        page.get_by_label("Kind").first.select_option(kind)
        expect(said).to_have_text(words, use_inner_text=True)


def test_bars_without_traffic_are_not_drawn(page: Page, gateway: Demo) -> None:
    page.goto(gateway.url)

    assert page.locator(".chart").count() == 0
