"""`[ledger]`: where keys and charges are kept, and what a crash may cost."""

from typing import Literal

from pydantic import Field, field_validator

from gateway.config_section import FilePath, Section
from gateway.ledger.calendar import Calendar


class LedgerSection(Section):
    """`[ledger]`: keys with limits, and a charge for every answer, in one SQLite file."""

    path: FilePath = ""
    """The file, created when it is not there; empty = no ledger, and no keys but `[auth.keys]`."""
    durability: Literal["group", "async"] = "group"
    """`group`: an answer leaves only after its charge is committed. `async`: the charge is
    committed within `interval_ms` after it."""
    interval_ms: int = Field(default=50, ge=1, le=1000)
    """Under `async`: the longest time before a charge is committed, so what a crash can lose."""
    synchronous: Literal["normal", "full"] = "normal"
    """SQLite's: what is committed survives the end of the process; under `full` also a power
    cut, at the price of a disk flush for each group."""
    lease_s: float = Field(default=60.0, ge=1, le=3600)
    """How long a budget holds room for a request that never came to its end, e.g. in a crash.
    Longer than `server.deadline_s`."""
    timezone: str = "UTC"
    """Whose midnights begin the days and months of budgets, e.g. `Europe/Berlin`."""
    retention_days: int = Field(default=90, ge=1, le=36_500)
    """Charges older than this become daily sums; what a report adds up stays the same."""
    store_text: bool = False
    """Keep states, questions and answers with their charges, readable by whoever can read the
    file, until `retention_days` are over."""
    text_bytes: int = Field(default=16_384, ge=256, le=1_048_576)
    """Under `store_text`: the most that is kept of what was asked, and of what was answered."""

    @field_validator("timezone")
    @classmethod
    def _refuse_unknown_timezone(cls, name: str) -> str:
        Calendar(name)
        return name
