"""English or not, where it is plain; undecided where it is not."""

import pytest

from engines.laya.language import Languages, Verdict, hinted

pytest.importorskip("py3langid")


@pytest.fixture(scope="module")
def languages() -> Languages:
    return Languages()


@pytest.mark.parametrize(
    "text",
    [
        "Hi, we were billed twice for March. Please refund the duplicate today.",
        "the app crashes when I open the settings",
        "Where is my order #4411? Tracking says delivered, but nothing arrived.",
        "ERROR 500 at /api/v1/users: NullPointerException in UserService.java:42 retry=3",
        "user u_8812 login failed from 10.2.3.4 port 22 ssh2 invalid user admin",
        "def main(): return [x for x in range(10) if x % 2]",
    ],
)
def test_english_logs_and_code_are_english(languages: Languages, text: str) -> None:
    assert languages.verdict(text) == "english"


@pytest.mark.parametrize(
    "text",
    [
        "Bitte kündigen Sie mein Abonnement zum Monatsende.",
        "Meine Karte ist weg",
        "Je voudrais annuler mon abonnement",
        "Quiero cancelar mi suscripción",
        "Vreau să anulez comanda",
        "Ik wil mijn abonnement opzeggen",
        "Chcę anulować zamówienie",
        "Tôi muốn hủy đơn hàng",
        "Отмените мою подписку",
        "我想取消订阅",
        "注文をキャンセルしたい",
        "أريد إلغاء اشتراكي",
        "发票",
        "error code 7: 服务器无法连接，请稍后再试",
    ],
)
def test_other_languages_and_scripts_are_foreign(languages: Languages, text: str) -> None:
    assert languages.verdict(text) == "foreign"


@pytest.mark.parametrize("content", ["", "   ", "12.50 / 4411", "ok", {"amount": 12, "x": None}])
def test_too_little_text_is_undecided(languages: Languages, content: object) -> None:
    assert languages.verdict(content) == "undecided"


def test_english_with_foreign_names_in_it_is_not_foreign(languages: Languages) -> None:
    text = "Café Müller in Zürich has a reservation for José García at 8pm"

    assert languages.verdict(text) != "foreign"


def test_a_foreign_field_cannot_hide_among_english_ones(languages: Languages) -> None:
    english = "the customer wrote a long letter about everything that went wrong " * 20
    german = "Ich habe die Rechnung zweimal bezahlt und möchte mein Geld zurück."

    assert languages.verdict({"a": english}) == "english"
    assert languages.verdict({"a": english, "b": [{"c": german}]}) == "foreign"
    assert languages.verdict(f"{english}\n{german}") == "foreign"


def test_keys_are_not_language(languages: Languages) -> None:
    assert languages.verdict({"Überweisungsbetrag in Schweizer Franken": 12}) == "undecided"


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("en", "english"),
        ("en-GB", "english"),
        ("EN_us", "english"),
        ("english", "english"),
        ("de", "foreign"),
        ("zh-Hant", "foreign"),
        ("und", "undecided"),
        ("C", "undecided"),
        ("", "undecided"),
        (None, "undecided"),
    ],
)
def test_a_language_code_is_a_hint(code: str | None, verdict: Verdict) -> None:
    assert hinted(code) == verdict
