"""The ledger of a running gateway: what happens to it while it cannot be written."""

from pathlib import Path

from gateway.ledger.books import Books
from tests.gateway.ledger.test_writer import NOW_S, Flaky, put, tokens


class Sweeping(Flaky):
    """Counts the sweeps that it was asked for."""

    swept = 0

    def sweep(self, now_s: float, at_most: int) -> int:
        self.swept += 1
        return super().sweep(now_s, at_most)


async def test_a_ledger_that_fails_for_long_keeps_charges_alone_and_finds_back_by_itself(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.db")
    writing = Sweeping(path)
    stores = iter((writing, Flaky(path), Flaky(path)))
    books = Books(lambda: next(stores), interval_s=60.0)
    writing.broken = True
    books.writer.post(put(7))
    for second in range(50):
        await books.sweep(NOW_S + second)
    failed = books.writer.failing
    writing.broken = False
    await books.sweep(NOW_S + 60)

    assert failed
    assert not books.writer.failing
    assert tokens(path) == [7]
    assert writing.swept == 1
    books.close()


async def test_a_writer_that_failed_with_nothing_to_keep_is_asked_again_by_the_sweep(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.db")
    writing = Flaky(path)
    stores = iter((writing, Flaky(path), Flaky(path)))
    books = Books(lambda: next(stores), interval_s=60.0)
    writing.broken = True
    await books.sweep(NOW_S)
    failed = books.writer.failing
    writing.broken = False
    await books.sweep(NOW_S + 1)

    assert failed
    assert not books.writer.failing
    books.close()
