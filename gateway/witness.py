"""Whoever looks at decisions after they are made."""

from typing import Protocol

from engines.contract import Inquiry
from gateway.auth import Caller
from gateway.decision import Decision
from gateway.plan import Plan


class Witness(Protocol):
    """Whoever looks at the decisions of cascades, after they are made."""

    def saw(
        self, caller: Caller, request_id: str, plan: Plan, inquiry: Inquiry, decision: Decision
    ) -> None:
        """Must return at once; the answer waits for it."""
        ...
