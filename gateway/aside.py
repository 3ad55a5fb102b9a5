"""Threads for what would hold up the event loop: all of them there from the start.

asyncio's own pool grows while a gateway is busy, long after its start, and every new thread takes
an arena of the allocator with it that stays.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

_WORKERS = 4


def pool(workers: int, name: str) -> ThreadPoolExecutor:
    """A pool of `workers` threads that are running already.

    Raises:
        RuntimeError: a thread cannot be started.
    """
    threads = ThreadPoolExecutor(workers, thread_name_prefix=name)
    everyone = threading.Barrier(workers)
    try:
        for _ in range(workers):
            threads.submit(everyone.wait)  # nobody is idle until all are there: each starts one
    except RuntimeError:
        everyone.abort()
        threads.shutdown(wait=False)
        raise
    return threads


def work_aside() -> None:
    """From now on `asyncio.to_thread` of the running event loop uses threads that are there.

    The loop's runner ends them.
    """
    asyncio.get_running_loop().set_default_executor(pool(_WORKERS, "aside"))
