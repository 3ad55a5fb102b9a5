"""Where the browser is."""

import os
import shutil

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def found_chromium() -> str | None:
    """Path of Chromium: the environment's `CHROMIUM`, or the one on the path; `None` = none."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)
