"""The page in a real browser: what people do on it, with what hostile texts do to it."""

import json
import re

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Demo, slides
from tests.gateway.conftest import ASK

EVIL = "</textarea></script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{7*7}}"


def asks(gateway: Demo, key: str) -> int:
    """The status of a request with this bearer key."""
    headers = {"authorization": f"Bearer {key}"}
    answer = httpx.post(f"{gateway.api}/v1/systemone", json=ASK, headers=headers, trust_env=False)
    return answer.status_code


def test_a_key_is_made_used_rotated_limited_and_revoked(inside: Page, gateway: Demo) -> None:
    page = inside
    page.get_by_role("link", name="Keys").click()
    page.get_by_label("Name").fill("browser-key")
    page.get_by_label("Tokens a day").fill("1,000,000")
    page.get_by_label("usage").uncheck()
    page.get_by_role("button", name="Make the key").click()
    old = page.locator("#secret").inner_text()
    assert asks(gateway, old) == 200

    page.reload()  # shown once
    expect(page.locator("#secret")).to_have_count(0)
    page.get_by_role("button", name="Rotate").click()
    new = page.locator("#secret").inner_text()
    assert (asks(gateway, old), asks(gateway, new)) == (200, 200)

    page.get_by_label("Requests a minute").fill("0")
    page.get_by_role("button", name="Change limits").click()
    expect(page.get_by_role("status")).to_contain_text("limits of browser-key are changed")
    assert asks(gateway, new) == 429

    page.get_by_text("Revoke this key").click()
    page.get_by_label("I mean it").check()
    page.get_by_role("button", name="Revoke browser-key").click()
    expect(page.get_by_role("heading", name="browser-key")).to_contain_text("revoked")
    assert (asks(gateway, old), asks(gateway, new)) == (401, 401)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src='http://127.0.0.1:1/x'>",
        "<b style='color: red'>x</b>",
    ],
)
def test_what_a_hostile_text_could_do_would_be_noticed(
    watched: Page, gateway: Demo, complaints: list[str], hostile: str
) -> None:
    watched.goto(gateway.url)
    assert complaints == []

    with watched.expect_console_message(lambda said: "violates" in said.text):
        watched.evaluate(
            """html => document.querySelector("main").append(
                document.createRange().createContextualFragment(html))""",
            hostile,
        )

    assert any("violates" in one for one in complaints)


def test_the_overview_draws_its_charts_from_its_tables(inside: Page) -> None:
    charts = inside.locator(".chart[data-drawn]")

    expect(charts).to_have_count(2)
    for chart in charts.all():
        canvas = chart.locator("canvas")
        box = canvas.bounding_box()
        assert box is not None
        assert box["width"] > 300
        colours = canvas.evaluate(
            """canvas => {
                const { data } = canvas.getContext("2d")
                    .getImageData(0, 0, canvas.width, canvas.height);
                const found = new Set();
                for (let at = 0; at < data.length; at += 4)
                    if (data[at + 3] === 255) found.add(data.slice(at, at + 3).join());
                return found.size;
            }"""
        )
        assert colours > 1  # bars, and more than their background
        chart.hover(position={"x": box["width"] / 2, "y": 80})
        expect(chart.locator(".readout")).to_contain_text(re.compile(r"^\d{4}-\d\d-\d\d[A-Z]"))
    for question in ("spend", "hosted have cost", "escalated", "promises hold", "near a limit"):
        expect(inside.get_by_role("heading", level=2).filter(has_text=question)).to_be_visible()


def test_the_playground_answers_with_bars_tiers_and_programs(inside: Page) -> None:
    page = inside
    page.get_by_role("link", name="Playground").click()
    page.get_by_role("button", name="Add a question").click()
    page.get_by_label("Id").nth(3).fill("fourth")
    page.get_by_label("What is asked").nth(3).fill("Is it long?")
    page.get_by_label("Kind").nth(3).select_option("noul")
    page.get_by_role("button", name="Ask", exact=True).click()

    answers = page.locator("#answers")
    expect(answers).to_be_focused()
    expect(answers.locator(".answer")).to_have_count(4)
    expect(answers.locator(".bars tbody tr")).to_have_count(3 + 2 + 3 + 2)
    for bar in answers.locator(".bar").all():
        widths = [rect.bounding_box() for rect in bar.locator("rect").all()]
        assert widths[0] is not None
        assert widths[1] is not None
        assert 0 < widths[1]["width"] <= widths[0]["width"]
    expect(answers.get_by_text(re.compile(r"^tier \d$"))).to_have_count(4)
    for language, word in (
        ("curl", "curl -sS"),
        ("Python", "typesafe_sdk"),
        ("JavaScript", "await"),
    ):
        answers.get_by_text(language, exact=True).click()
        expect(answers.locator("details[open] pre")).to_contain_text(word)


def test_questions_as_json_are_asked_too(inside: Page) -> None:
    page = inside
    page.get_by_role("link", name="Playground").click()
    expect(page.get_by_label("Questions as JSON")).to_be_hidden()
    page.get_by_label("as JSON", exact=True).check()
    expect(page.get_by_label("What is asked").first).to_be_hidden()
    questions = {"only": {"type": "choice", "criteria": {"a": None, "b": None}}}
    page.get_by_label("Questions as JSON").fill(json.dumps(questions))
    page.get_by_role("button", name="Ask", exact=True).click()

    expect(page.locator(".answer")).to_have_count(1)
    expect(page.get_by_label("as JSON", exact=True)).to_be_checked()


def test_hostile_texts_in_every_field_do_nothing(page: Page, gateway: Demo) -> None:
    page.goto(gateway.url)
    page.get_by_label("API key").fill(EVIL)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    page.get_by_label("API key").fill(gateway.key)
    page.get_by_role("button", name="Log in").click()

    page.get_by_role("link", name="Keys").click()
    for box in page.locator("main input:not([type=hidden], [type=checkbox])").all():
        box.fill(EVIL)
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert page.locator("#name").input_value() == EVIL

    page.goto(f"{gateway.url}/keys/ada")
    for box in page.locator("main input:not([type=hidden], [type=checkbox])").all():
        box.fill(EVIL)
    page.get_by_role("button", name="Change limits").click()
    expect(page.get_by_role("alert")).to_be_visible()

    page.goto(f"{gateway.url}/playground")
    for box in page.locator("main input:not([type=hidden], [type=radio], [type=file])").all():
        box.fill(f"{EVIL}{box.get_attribute('id')}")
    for area in page.locator(".as-form textarea, #state").all():
        area.fill(f"{EVIL}\n{EVIL}2")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#answers")).to_contain_text(EVIL)
    assert page.locator("main script, main img").count() == 0

    page.goto(f"{gateway.url}/keys/%3Cscript%3Ealert(3)%3C%2Fscript%3E")
    page.goto(f"{gateway.url}/decisions?before=%3Cscript%3E")
    page.goto(f"{gateway.url}?since=%22%3E%3Cscript%3Ealert(4)%3C/script%3E")


def test_everything_but_charts_works_without_scripts(browser: Browser, gateway: Demo) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(gateway.url)
    page.get_by_label("API key").fill(gateway.key)
    page.get_by_role("button", name="Log in").click()

    expect(page.locator(".chart")).to_have_count(0)
    expect(page.locator("table[data-chart] tbody tr").first).to_be_visible()
    page.get_by_role("link", name="Playground").click()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".answer")).to_have_count(3)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    context.close()


@pytest.mark.parametrize("path", ["", "/decisions", "/keys", "/keys/support-desk", "/playground"])
def test_no_page_slides_sideways_on_a_phone(inside: Page, gateway: Demo, path: str) -> None:
    inside.set_viewport_size({"width": 360, "height": 740})

    inside.goto(gateway.url + path)

    assert slides(inside) == 0


def test_the_keyboard_alone_is_enough(page: Page, gateway: Demo) -> None:
    page.goto(gateway.url)
    page.keyboard.type(gateway.key)  # the field has the focus
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="At a glance").wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_enter_in_a_field_asks_and_what_was_made_gets_the_focus(
    inside: Page, gateway: Demo
) -> None:
    page = inside
    page.goto(f"{gateway.url}/playground")
    page.get_by_label("What is asked").first.press("Enter")
    expect(page.locator("#answers")).to_be_focused()

    page.goto(f"{gateway.url}/keys")
    page.get_by_label("Name").fill("by-keyboard")
    page.get_by_label("Name").press("Enter")
    expect(page.get_by_role("status")).to_be_focused()
    expect(page.get_by_role("status")).to_contain_text("Authorization: Bearer")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(browser: Browser, gateway: Demo, scheme: str) -> None:
    context = browser.new_context(color_scheme="light" if scheme == "light" else "dark")
    page = context.new_page()
    page.goto(gateway.url)
    colours = page.evaluate(
        """() => {
            const style = getComputedStyle(document.documentElement);
            const names = ["ground", "card", "ink", "dim", "accent", "accent-ink", "code", "good",
                "good-ground", "warn", "warn-ground", "bad", "bad-ground"];
            return Object.fromEntries(names.map(
                (name) => [name, style.getPropertyValue("--" + name).trim()]));
        }"""
    )
    context.close()
    pairs = [
        ("ink", "card"),
        ("ink", "ground"),
        ("dim", "card"),
        ("dim", "ground"),
        ("dim", "code"),
    ]
    pairs += [("accent", "card"), ("accent-ink", "accent"), ("bad", "card"), ("good", "card")]
    pairs += [(tone, f"{tone}-ground") for tone in ("good", "warn", "bad")]

    contrasts = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in pairs}

    assert {pair: ratio for pair, ratio in contrasts.items() if ratio < 4.5} == {}


def contrast(one: str, other: str) -> float:
    """As in WCAG 2.2, 1.4.3: from 1 to 21."""
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as in WCAG 2.2."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_control_has_a_name_and_every_page_one_heading(inside: Page, gateway: Demo) -> None:
    for path in ("", "/decisions", "/keys", "/keys/support-desk", "/playground"):
        inside.goto(gateway.url + path)
        nameless = inside.evaluate(
            """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
                .filter((one) => !one.labels.length).map((one) => one.outerHTML)"""
        )
        assert nameless == []
        assert inside.locator("h1").count() == 1
        assert inside.locator("[id]").count() == inside.evaluate(
            "new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size"
        )
