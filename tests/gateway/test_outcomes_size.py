"""How much a body of outcomes may hold before it is parsed."""

import pytest

from gateway.dialects.outcomes import decode
from gateway.errors import Refusal


def test_a_body_of_many_small_values_is_refused_before_it_is_parsed() -> None:
    body = b'{"outcomes": [' + b"1," * 20_000 + b"1]}"

    with pytest.raises(Refusal) as refused:
        decode(body)

    assert refused.value.problem.status == 422
    assert refused.value.problem.faults[0].type == "too_many_values"
