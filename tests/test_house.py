"""The rules of the house that a program can check."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from gateway.config import Settings
from gateway.config_reference import SECTIONS, reference

ROOT = Path(__file__).parents[1]
ROOMS = ("engines", "policies", "gateway", "tests", "bench", "training", "scripts")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_has_at_most_300_lines_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert len(text.splitlines()) <= 300
    assert text == "" or text.startswith(('"""', "#!"))


def test_every_setting_is_documented() -> None:
    sections: list[type[BaseModel]] = [Settings, *SECTIONS.values()]
    undocumented = [
        f"{section.__name__}.{name}"
        for section in sections
        for name, field in section.model_fields.items()
        if not field.description and section is not Settings
    ]

    assert undocumented == []


def test_every_section_is_in_the_reference() -> None:
    def below(section: type[BaseModel]) -> set[type[BaseModel]]:
        found = {section}
        for field in section.model_fields.values():
            said = str(field.annotation)
            for module, name in re.findall(r"(gateway\.config\w*)\.(\w+Section)", said):
                found |= below(getattr(sys.modules[module], name))
        return found

    assert below(Settings) - {Settings} == set(SECTIONS.values())


def test_the_configuration_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    assert written == reference(), "run: .venv/bin/python scripts/reference"


def test_the_import_contracts_hold() -> None:
    checked = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout


def package(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0]


def test_every_runtime_dependency_is_locked_and_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    lock = (ROOT / "requirements" / "cpu.lock").read_text(encoding="utf-8")
    for wanted in (*project["dependencies"], *extras["cpu"]):
        name = package(wanted)
        assert f"`{name}`" in page
        assert re.search(rf"^{re.escape(name.replace('.', '-'))}==", lock, re.MULTILINE), name
    for wanted in (*extras["cuda"], *extras["clef"], *extras["laya"], *extras["dev"]):
        assert f"`{package(wanted)}`" in page


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), f"{name_of(path)} links to {target}"
