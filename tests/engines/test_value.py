"""Values that many are made of: what they promise beside being cheap."""

from dataclasses import fields, replace

import pytest

from engines.contract import Choice, Noul, Reading


def test_values_are_equal_by_their_fields_and_of_one_kind_only() -> None:
    choice: object = Choice({})

    assert Noul("?") == Noul("?", None, None)
    assert Noul("?") != Noul("!")
    assert choice != Noul({})


def test_values_of_hashable_fields_have_a_hash() -> None:
    assert len({Reading((0.0,), 1), Reading((0.0,), 1), Reading((0.0,), 2)}) == 2


def test_a_value_is_replaced_and_not_changed() -> None:
    reading = Reading((0.0,), 7, "not_competent")

    assert replace(reading, tokens=0) == Reading((0.0,), 0, "not_competent")
    assert reading.tokens == 7


def test_a_value_has_no_more_than_its_fields() -> None:
    reading = Reading((0.0,), 7)

    with pytest.raises(AttributeError):
        setattr(reading, "token", 0)  # noqa: B010 - the type checker would not have it
    assert [field.name for field in fields(reading)] == ["log_weights", "tokens", "doubt", "cut"]
