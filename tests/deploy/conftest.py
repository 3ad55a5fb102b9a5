"""A gateway without sockets, for what is compared with its metrics."""

from tests.gateway.conftest import gateway

__all__ = ["gateway"]
