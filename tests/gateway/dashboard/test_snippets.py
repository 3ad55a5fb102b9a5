"""The programs that the playground shows do what it did."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dashboard.snippets import KEY, snippets
from tests.gateway.dashboard.browsing import png
from tests.wire.conftest import locked as locked  # noqa: PLC0414
from tests.wire.serving import KEY as WIRE_KEY
from tests.wire.serving import Address
from tests.wire.test_javascript_sdk import module as module  # noqa: PLC0414

ASKED: dict[str, Any] = {
    "state": 'It\'s "twice" $HOME `x` \\ and\nmore ${y} é',
    "questions": {
        "team": {"type": "choice", "instructions": "Which?", "criteria": {"it's": None, "b": "x"}},
        "sure": {"type": "noul", "instructions": None, "criteria": {"true": "y", "false": None}},
    },
    "model": "jev-latest",
}


def test_the_program_in_python_is_laid_out_as_people_write_it() -> None:
    questions = {"q": {"type": "choice", "instructions": None, "criteria": ["it's", 1.5, []]}}
    body = {"state": "a\x07b", "questions": questions, "model": "jev"}
    (program,) = (
        one.text for one in snippets(body, "http://x", keyless=True) if one.file == "ask.py"
    )

    assert program.splitlines() == [
        "from typesafe_sdk import TypeSafeClient",
        "",
        'client = TypeSafeClient(base_url="http://x", api_key="none-needed")',
        "response = client.system_one(",
        r"    state='a\x07b',",
        "    questions={",
        '        "q": {',
        '            "type": "choice",',
        '            "instructions": None,',
        '            "criteria": [',
        '                "it\'s",',
        "                1.5,",
        "                [],",
        "            ],",
        "        },",
        "    },",
        '    model="jev",',
        ")",
        "print(response.model_dump_json(indent=2))",
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).filter(lambda value: "inf" not in repr(value))
)
def test_any_state_reads_back_from_the_program_in_python(state: Any) -> None:
    body = {"state": state, "questions": {}}
    program = snippets(body, "http://x", keyless=True)[1].text

    call = ast.parse(program).body[-2]

    assert isinstance(call, ast.Assign)
    assert isinstance(call.value, ast.Call)
    assert ast.literal_eval(call.value.keywords[0].value) == state


def test_what_a_program_needs_is_said_and_nothing_more() -> None:
    plain, pictured = (
        {one.language: (one.file, one.needs) for one in snippets(body, "http://x", keyless=True)}
        for body in (ASKED, {**ASKED, "assets": {}})
    )

    assert plain["curl"] == pictured["curl"] == ("", "")
    assert plain["Python"] == pictured["Python"] == ("ask.py", "pip install typesafe-sdk")
    assert plain["JavaScript"] == ("ask.mjs", "npm install @typesafe-ai/sdk")
    assert pictured["JavaScript"] == ("ask.mjs", "")  # what Node.js has itself does


@pytest.mark.parametrize("language", ["curl", "Python"])
def test_the_programs_ask_the_same(locked: Address, tmp_path: Path, language: str) -> None:
    program = next(
        one.text for one in snippets(ASKED, locked.url, keyless=False) if one.language == language
    )
    command = ["bash", "-c", program] if language == "curl" else [sys.executable, "-c", program]
    if language == "curl" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    ran = subprocess.run(
        command,
        env=os.environ | {KEY: WIRE_KEY},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    asked = httpx.post(
        f"{locked.url}/v1/systemone",
        json=ASKED,
        headers={"authorization": f"Bearer {WIRE_KEY}"},
        trust_env=False,
    )

    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)["answers"]
    assert said["team"]["choice"] == asked.json()["answers"]["team"]["choice"]
    assert said["sure"]["noul"] == asked.json()["answers"]["sure"]["noul"]


def test_the_program_in_javascript_asks_the_same(locked: Address, module: Path) -> None:
    folder = module.parents[4]  # where the package is found by its name
    (program,) = (
        one.text
        for one in snippets(ASKED, locked.url, keyless=False)
        if one.language == "JavaScript"
    )
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", program],
        env=os.environ | {KEY: WIRE_KEY},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert list(json.loads(ran.stdout)["answers"]) == ["team", "sure"]


@pytest.mark.parametrize("language", ["curl", "Python", "JavaScript"])
def test_the_programs_send_an_image_too(locked: Address, tmp_path: Path, language: str) -> None:
    body = {**ASKED, "state": "See image-1", "assets": {"image-1": {"type": "image"}}}
    (tmp_path / "image-1.png").write_bytes(png())
    program = next(
        one.text for one in snippets(body, locked.url, keyless=False) if one.language == language
    )
    commands = {
        "curl": ["bash", "-c", program],
        "Python": [sys.executable, "-c", program],
        "JavaScript": ["node", "--input-type=module", "-e", program],
    }
    command = commands[language]
    if language == "JavaScript" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    ran = subprocess.run(
        command,
        env=os.environ | {KEY: WIRE_KEY},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "this model cannot see images" in (ran.stdout + ran.stderr).lower()
