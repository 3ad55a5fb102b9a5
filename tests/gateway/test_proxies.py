"""Where a request comes from: believed of proxies that are trusted, and of nobody else."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.proxies import UNKNOWN, Proxies

CADDY = "127.0.0.1"


def scope(peer: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"host", b"x"), *((b"x-forwarded-for", one.encode()) for one in forwarded)]
    return {"client": None if peer is None else (peer, 5000), "headers": headers}


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (CADDY, ["203.0.113.9"], "203.0.113.9"),
        (CADDY, [], CADDY),
        (CADDY, ["10.0.0.1, 203.0.113.9"], "203.0.113.9"),  # what the caller wrote stands left
        (CADDY, ["10.0.0.1", "203.0.113.9"], "203.0.113.9"),  # two lines are one list
        (CADDY, ["198.51.100.7, 192.168.3.4"], "198.51.100.7"),  # a trusted one before Caddy
        (CADDY, ["192.168.3.4"], "192.168.3.4"),
        (CADDY, ["203.0.113.9:4711"], "203.0.113.9"),
        (CADDY, ["[2001:db8::1]:4711"], "2001:db8::1"),
        (CADDY, ["2001:db8::1"], "2001:db8::1"),
        (CADDY, ["fe80::1%eth0"], "fe80::1"),  # a zone may be any text
        (CADDY, ["[fe80::1%a b=c]:4711"], "fe80::1"),
        (CADDY, ["203.0.113.9, nonsense"], CADDY),
        (CADDY, [""], CADDY),
        (CADDY, ["::ffff:203.0.113.9"], "203.0.113.9"),
        ("::ffff:127.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("203.0.113.50", ["10.0.0.1"], "203.0.113.50"),  # a stranger's word
        (None, ["10.0.0.1"], UNKNOWN),
    ],
)
def test_the_client_is_the_first_stranger_from_the_right(
    peer: str | None, forwarded: list[str], client: str
) -> None:
    proxies = Proxies([CADDY, "192.168.0.0/16"])

    assert proxies.client_of(scope(peer, *forwarded)) == client


def test_without_trust_nothing_is_believed() -> None:
    assert Proxies().client_of(scope(CADDY, "203.0.113.9")) == CADDY


@given(st.lists(st.one_of(st.text(max_size=20), st.ip_addresses().map(str)), max_size=5))
def test_nothing_a_caller_writes_changes_what_its_proxy_says(forged: list[str]) -> None:
    client = "203.0.113.9"
    said = ", ".join([*forged, client]).encode("ascii", "replace").decode()

    assert Proxies([CADDY]).client_of(scope(CADDY, said)) == client


@given(st.lists(st.ip_addresses().map(str), max_size=5))
def test_the_client_is_always_an_address_that_stood_there(hops: list[str]) -> None:
    found = Proxies([CADDY, "10.0.0.0/8"]).client_of(scope(CADDY, ", ".join(hops)))

    address = ipaddress.ip_address(found)
    mapped = {
        getattr(ipaddress.ip_address(hop), "ipv4_mapped", None) or ipaddress.ip_address(hop)
        for hop in hops
    }
    assert address in {*mapped, ipaddress.ip_address(CADDY)}


@pytest.mark.parametrize("wrong", ["caddy", "10.0.0.1/8", "300.1.1.1", ""])
def test_what_is_no_address_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1"):
        Proxies([wrong])
