"""How many connections and files the process may have open: as many as it is allowed.

Systems hand out a small soft limit (often 1024) under a large hard one. A thousand silent
connections would use it up, and every later one, health checks too, would be closed unanswered.
"""

import resource

_ENOUGH = 65_536
"""More helps nobody, and some libraries walk through all of them."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, at most to 65,536; what it is afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
