"""Licences: of what is installed all are accepted, and what is not understood is not."""

from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from .loading import script

licences = script("licences")


class Declaring(Distribution):
    """A package whose metadata has these fields."""

    def __init__(self, *fields: tuple[str, str]) -> None:
        self._fields = fields

    @property
    def metadata(self) -> Any:
        message = Message()
        for name, value in self._fields:
            message[name] = value
        return message

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True),
        ("MIT AND BSD-3-Clause", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT OR GPL-3.0-only AND GPL-2.0-only", True),
        ("(MIT OR GPL-3.0-only) AND GPL-2.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND MIT", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("MIT WITH", False),
        ("MIT GPL-3.0-only", False),
        ("(MIT", False),
        ("MIT)", False),
        ("MIT AND", False),
        ("OR", False),
        ("()", False),
        ("", False),
        ("True", False),
        ("Proprietary", False),
    ],
)
def test_an_expression_is_accepted_only_when_it_can_be_met(expression: str, met: bool) -> None:
    assert licences.accepted(expression) is met


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT"), ("License", "GPL")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: MIT License"), ("License", "x")], "MIT"),
        (
            [
                ("Classifier", "License :: OSI Approved :: MIT License"),
                ("Classifier", "License :: OSI Approved :: GNU Affero General Public License v3"),
            ],
            "MIT AND GNU Affero General Public License v3",
        ),
        ([("Classifier", "License :: OSI Approved"), ("License", "Apache 2.0")], "Apache-2.0"),
        ([("License", "BSD 2-Clause License\n\nCopyright")], "BSD-2-Clause"),
        ([], ""),
        ([("Name", "torchao")], "BSD-3-Clause"),
        ([("Name", "something else")], ""),
    ],
)
def test_the_expression_counts_before_classifiers_and_these_before_words(
    fields: list[tuple[str, str]], licence: str
) -> None:
    assert licences.declared(Declaring(*fields)) == licence


def test_every_installed_package_that_is_locked_has_an_accepted_licence() -> None:
    assert licences.main() == 0


def test_a_package_that_is_not_accepted_is_named_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(licences, "ACCEPTED", licences.ACCEPTED - {"Apache-2.0"})

    assert licences.main() == 1
    assert "not accepted: pytest-asyncio: Apache-2.0" in capsys.readouterr().err
