"""What holds for every test."""

import signal


def pytest_configure() -> None:
    """Let tests interrupt: what a shell runs in the background begins with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
