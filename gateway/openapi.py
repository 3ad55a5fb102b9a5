"""The OpenAPI document of the gateway: the System One routes, and what belongs to them."""

from gateway.dialects import outcomes, outcomes_openapi, systemone_openapi
from gateway.dialects.outcomes_openapi import Node


def document() -> Node:
    """The OpenAPI 3.1 document, as JSON content; the same value for the same code."""
    whole = systemone_openapi.document()
    whole["paths"][outcomes.PATH] = {"post": outcomes_openapi.operation()}
    whole["components"]["schemas"] |= outcomes_openapi.schemas()
    return whole
