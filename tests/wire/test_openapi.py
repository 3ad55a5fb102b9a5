"""docs/openapi.json: the same as the code says, and kept by the running gateway."""

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from starlette.routing import Route

from gateway.config import Settings
from gateway.errors import STATUS
from gateway.openapi import document
from gateway.routes import build_app
from gateway.wiring import new_services

from .serving import Address

_CHECKED_IN = Path(__file__).parents[2] / "docs/openapi.json"

SCHEMA = schemathesis.openapi.from_dict(json.loads(_CHECKED_IN.read_text(encoding="utf-8")))

_CHECKS: list[Any] = [
    checks.not_a_server_error,
    *(
        checks.CHECKS.get_one(name)
        for name in (
            "status_code_conformance",
            "content_type_conformance",
            "response_headers_conformance",
            "response_schema_conformance",
        )
    ),
]


def test_the_checked_in_document_is_the_one_that_the_code_gives() -> None:
    text = _CHECKED_IN.read_text(encoding="utf-8")

    assert text == json.dumps(document(), indent=2, ensure_ascii=False) + "\n", (
        "run scripts/openapi"
    )


def test_every_system_one_route_under_v1_stands_in_the_document() -> None:
    app = build_app(new_services(Settings()), access_log=False)

    routes = {
        route.path: (route.methods or set()) - {"HEAD"}
        for route in app.routes
        if isinstance(route, Route) and _is_own(route.path)
        if not route.path.startswith(("/v1/admin/", "/v1/usage"))  # keys.md, accounting.md
    }

    described = {
        path: {method.upper() for method in operations}
        for path, operations in document()["paths"].items()
        if path.startswith("/v1/")
    }
    assert routes == described


def test_every_status_of_a_refusal_stands_in_the_document() -> None:
    statuses = {str(STATUS[kind]) for kind in STATUS if kind not in ("not_found",)}

    described = set(document()["paths"]["/v1/systemone"]["post"]["responses"])

    assert statuses - described == {"405"}


def test_every_reference_leads_somewhere() -> None:
    root = document()

    for reference in _references(root):
        node: Any = root
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        assert node


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_schemathesis_finds_nothing_that_the_document_does_not_say(
    case: schemathesis.Case[Any], scripted: Address
) -> None:
    _leave_out_what_leads_nowhere(case.body)

    response = case.call(base_url=scripted.url, timeout=20)

    case.validate_response(response, checks=_CHECKS)
    assert response.headers["x-typesafe-request-id"]


def _leave_out_what_leads_nowhere(body: Any) -> None:
    """Takes made-up model names and images out of a body: nearly all of them are refused alike."""
    if not isinstance(body, dict):
        return
    if isinstance(body.get("model"), str):
        del body["model"]
    if isinstance(body.get("assets"), dict) and len(body["assets"]) < 3:
        del body["assets"]
    _leave_out_what_leads_nowhere(body.get("request"))


def _is_own(path: str) -> bool:
    return path.startswith("/v1/") and not path.startswith("/v1/v1/")


def _references(node: Any) -> set[str]:
    match node:
        case {"$ref": str(reference)}:
            return {reference}
        case dict():
            return set().union(*map(_references, node.values()))
        case list():
            return set().union(*map(_references, node))
        case _:
            return set()
