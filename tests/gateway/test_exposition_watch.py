"""What `/metrics` says of the watch, from requests that really were watched."""

from collections.abc import Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families as families

from engines.contract import Choice, Inquiry, Question, Reason, Text, Unreadable
from engines.scripted import ScriptedEngine
from gateway.ledger.decisions import Alarm
from tests.gateway.watched import TEAM, URGENT, Running, pair, running, says, watched_settings


async def scraped(gateway: Running) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) → value, of the watch alone."""
    response = await gateway.client.get("/metrics")
    assert response.status_code == 200, response.text
    ours = ("tiergate_alarms", "tiergate_second_opinions", "tiergate_kept_answers_compared")
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in families(response.text)
        for sample in family.samples
        if sample.name.startswith(ours) and sample.name.endswith(("_total", "alarms"))
    }


async def test_second_opinions_and_what_they_say_are_counted(tmp_path: Path) -> None:
    def large(_: Text, question: Question) -> Sequence[float]:
        return [0.0, 9.0] if isinstance(question, Choice) else [9.0, 0.0]

    engines = {"small": says(0), "large": ScriptedEngine(script=large)}
    async with running(watched_settings(tmp_path), engines) as gateway:
        await gateway.ask(team=TEAM, urgent=URGENT)
        await gateway.settled()

        found = await scraped(gateway)

    assert found == {
        ("tiergate_second_opinions_total", "read"): 2,
        ("tiergate_second_opinions_total", "dropped"): 0,
        ("tiergate_second_opinions_total", "failed"): 0,
        ("tiergate_kept_answers_compared_total", "small", "agreed"): 1,
        ("tiergate_kept_answers_compared_total", "small", "disagreed"): 1,
    }


async def test_alarms_that_hold_are_counted(tmp_path: Path) -> None:
    async with running(watched_settings(tmp_path), pair()) as gateway:
        books, vigil = gateway.services.books, gateway.services.vigil
        assert books is not None
        assert vigil is not None
        alarm = Alarm("disagreement", "small", "choice:2", "They disagree.", 5.0)
        await books.writer.submit(lambda store: store.raise_alarm(alarm))
        vigil.obey()

        found = await scraped(gateway)

    assert found["tiergate_alarms", "small", "disagreement"] == 1


async def test_one_question_that_cannot_be_read_does_not_lose_the_others(tmp_path: Path) -> None:
    class ChoicesOnly(ScriptedEngine):
        def prepare(self, inquiry: Inquiry) -> object:  # type: ignore[override]
            for name, question in inquiry.questions.items():
                if not isinstance(question, Choice):
                    raise Unreadable("no", reason=Reason.TOO_LONG, question=name)
            return super().prepare(inquiry)

    engines = {"small": says(0), "large": ChoicesOnly()}
    async with running(watched_settings(tmp_path), engines) as gateway:
        await gateway.ask(team=TEAM, urgent=URGENT)
        await gateway.settled()

        team, urgent = gateway.logged()
        found = await scraped(gateway)
    assert (team.shadow is not None, urgent.shadow is not None) == (True, False)
    assert found["tiergate_second_opinions_total", "failed"] == 1
    assert found["tiergate_second_opinions_total", "read"] == 1
