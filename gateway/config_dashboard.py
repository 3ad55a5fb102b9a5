"""`[dashboard]`: the web page at `/ui`."""

from pydantic import Field

from gateway.config_section import Section


class DashboardSection(Section):
    """`[dashboard]`: the web page at `/ui`, for keys with the scope `admin`."""

    enabled: bool = True
    """Whether there is one. Without any key it is open to this machine, like everything else."""
    session_hours: float = Field(default=8.0, gt=0, le=720)
    """How long a login lasts; it ends with the gateway or with its key in any case."""
