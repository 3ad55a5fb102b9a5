"""Work at the store's door: who repeats whom, and for how long."""

from pathlib import Path

from gateway.ledger.budget import Admission, Held, Idempotency, admit
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Replay

NOW_S = 1_796_000_000.0


def test_nobody_works_on_a_request_any_more_that_began_before_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    store = SqliteStore(str(tmp_path / "ledger.db"))
    once = Idempotency(bytes(32), bytes(32))

    def begun(lease_id: int, now_s: float) -> bool:
        with store.transaction():
            asked = Admission(lease_id, "k", now_s, 60.0, None, once)
            return isinstance(admit(store, asked), Held)

    assert begun(1, NOW_S)
    assert not begun(2, NOW_S + 59)
    assert not begun(3, NOW_S - 50)
    assert begun(4, NOW_S - 3600)
    store.finish_replay("k", once.header, 1, b"too late", NOW_S)
    assert not begun(5, NOW_S - 3600)
    store.finish_replay("k", once.header, 4, b"answer", NOW_S + 86_400)
    assert store.replay("k", once.header, NOW_S - 3600, NOW_S) == Replay(once.body, b"answer")
    store.close()
