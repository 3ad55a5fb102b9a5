"""CPUs that may be used."""

import os

from gateway.quota import cpu_quota


def test_the_quota_is_at_least_one_and_at_most_what_the_scheduler_gives() -> None:
    assert 1 <= cpu_quota() <= len(os.sched_getaffinity(0))


def test_a_narrower_affinity_is_a_smaller_quota() -> None:
    given = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(given)})
        assert cpu_quota() == 1
    finally:
        os.sched_setaffinity(0, given)
