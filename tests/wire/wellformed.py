"""What every 200 must be, checked on the bytes: stricter than any client is."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

_ONE = Decimal(1)
_STEP = Decimal("0.000001")


def decision(asked: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The parsed body (numbers with a point as `Decimal`) of a well-formed answer to `asked`.

    Raises:
        AssertionError: it is not.
    """
    parsed: dict[str, Any] = json.loads(
        body, parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_unique
    )
    _only(parsed, "model", "answers", "usage")
    assert isinstance(parsed["model"], str)
    assert parsed["model"]
    _only(parsed["usage"], "input_tokens", "output_tokens")
    for count in (parsed["usage"]["input_tokens"], parsed["usage"]["output_tokens"]):
        assert type(count) is int
        assert count >= 0
    assert list(parsed["answers"]) == list(asked["questions"])
    for name, question in asked["questions"].items():
        answer = parsed["answers"][name]
        assert answer["type"] == question["type"]
        _KINDS[question["type"]](question.get("criteria"), answer)
    return parsed


def refusal(body: bytes) -> dict[str, Any]:
    """The parsed body of a well-formed problem: a `detail` object, or a list with locations.

    Raises:
        AssertionError: it is not one.
    """
    parsed: dict[str, Any] = json.loads(body, parse_constant=_refuse_constant)
    assert list(parsed) == ["detail"]
    detail = parsed["detail"]
    if isinstance(detail, list):
        assert detail
        for fault in detail:
            assert fault["loc"][0] == "body"
            assert isinstance(fault["type"], str)
            assert fault["msg"]
    else:
        assert isinstance(detail["error_type"], str)
        assert detail["message"]
    return parsed


def _noul(_: Any, answer: dict[str, Any]) -> None:
    _only(answer, "type", "noul")
    _shares([answer["noul"]])


def _choice(criteria: Mapping[str, Any], answer: dict[str, Any]) -> None:
    _only(answer, "type", "choice", "confidence", "probabilities")
    assert list(answer["probabilities"]) == list(criteria)
    p = _distribution(answer["probabilities"])
    assert answer["choice"] == list(criteria)[p.index(max(p))]
    n = len(p)
    expected = _ONE if n == 1 else max(Decimal(0), (n * max(p) - 1) / (n - 1))
    assert abs(answer["confidence"] - expected) <= _STEP


def _score(criteria: list[Any], answer: dict[str, Any]) -> None:
    _only(answer, "type", "score", "confidence", "legend", "probabilities")
    levels = [str(i) for i in range(len(criteria))]
    assert list(answer["probabilities"]) == levels
    assert list(answer["legend"]) == levels
    given = json.loads(json.dumps(criteria), parse_float=Decimal)
    assert list(answer["legend"].values()) == given
    p = _distribution(answer["probabilities"])
    assert answer["score"] == sum(i * q for i, q in enumerate(p))
    assert abs(answer["confidence"] - _gathered(p)) <= _STEP


def _gathered(p: list[Decimal]) -> Decimal:
    """Confidence of a score: `1 - Σ pᵢ·|i - k| / ((1/n)·Σ |i - (n-1)/2|)`, at least 0."""
    n, k = len(p), p.index(max(p))
    if n == 1:
        return _ONE
    even = Decimal(sum(abs(2 * i - n + 1) for i in range(n))) / (2 * n)
    away = sum((q * abs(i - k) for i, q in enumerate(p)), Decimal(0))
    return max(Decimal(0), 1 - away / even)


def _distribution(probabilities: Mapping[str, Any]) -> list[Decimal]:
    p = [Decimal(q) for q in probabilities.values()]
    _shares(p)
    assert sum(p) == _ONE
    return p


def _shares(p: list[Any]) -> None:
    for share in p:
        assert type(share) in (Decimal, int)
        assert 0 <= share <= 1
        assert Decimal(share) % _STEP == 0


def _only(found: dict[str, Any], *names: str) -> None:
    """Exactly these keys in this order, apart from extensions."""
    assert [name for name in found if not name.startswith("x_")] == list(names)


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a key stands twice in an object"
    return found


_KINDS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "noul": _noul,
    "choice": _choice,
    "score": _score,
}
