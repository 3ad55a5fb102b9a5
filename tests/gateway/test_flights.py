"""Requests in flight: who joins whom."""

from gateway.flights import Flights


async def test_a_body_is_never_taken_for_the_idempotency_key_of_another_key() -> None:
    flights = Flights()
    flights.begin("config/a", b"body", b"{}")

    assert flights.found("config/a once", b"{}", None, retried=True) is None
    assert flights.found("config/a", b"{}", None, retried=True) is None
    assert flights.found("config/a", b"body", b"{}", retried=False) is not None


async def test_nothing_is_left_of_a_request_that_has_ended() -> None:
    flights = Flights()
    own = flights.begin("k", b"body", b"header")
    other = flights.begin("k", b"another", b"header")
    flights.end(other, None)
    joined = flights.found("k", b"body", b"header", retried=False)
    flights.end(own, None)

    assert joined is not None
    assert await joined is None
    assert not flights._waiting
    assert not flights._bodies
