"""One starter engine for all tests of this folder: opening it reads 23 MB."""

from collections.abc import Iterator

import pytest

from engines.starter.engine import StarterEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[StarterEngine]:
    opened = StarterEngine()
    yield opened
    opened.close()
