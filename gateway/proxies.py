"""Who is asking, by address, when somebody trusted stands in front."""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from starlette.types import Scope

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

UNKNOWN = "unknown"
"""The client of a connection without an address."""


class Proxies:
    """Addresses whose word about others is believed."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        """See `trust`. Raises: ValueError."""
        self.trust(trusted)

    def trust(self, trusted: Iterable[str]) -> None:
        """From now on believe these and no others: addresses, or networks in CIDR notation.

        Raises:
            ValueError: one of them is neither.
        """
        self._trusted = tuple(network_of(one) for one in trusted)

    def client_of(self, scope: Scope) -> str:
        """The address that the request comes from.

        Whoever is connected says who sent it, in X-Forwarded-For, only if it is trusted; and the
        one before it only if that one is. What stands left of the first stranger is hearsay: a
        caller can write anything there.
        """
        client = scope.get("client")
        believed: str = client[0] if client else UNKNOWN
        if not self._trusted or not self._trusts(believed):
            return believed
        for hop in _hops_from_the_right(scope):
            if (address := _address(hop)) is None:
                break
            believed = str(address)
            if not self._trusts(believed):
                break
        return believed

    def _trusts(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in network for network in self._trusted)


def network_of(text: str) -> Network:
    """An address or network. Raises: ValueError: with a sentence."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is no address and no network; write e.g. 127.0.0.1 or 10.0.0.0/8"
        ) from None


def _hops_from_the_right(scope: Scope) -> Iterator[str]:
    lines = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    for line in reversed(lines):
        yield from reversed(line.decode("latin-1").split(","))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address in a hop, which may be in brackets and have a port."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # A zone (`%eth0`) names an interface of whoever wrote it, and may be any text.
    return address.ipv4_mapped or ipaddress.IPv6Address(int(address))
