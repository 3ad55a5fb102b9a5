"""A request as a program that sends it: curl, Python, JavaScript."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.dashboard.questions_form import IMAGE
from gateway.dialects import systemone

KEY = "TIERGATE_KEY"
"""The environment variable that holds the bearer key."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program."""

    language: str
    file: str
    """What it may be saved as; empty = it is a command for a shell."""
    needs: str
    """What has to be installed; empty = nothing."""
    text: str


def snippets(body: Mapping[str, Any], url: str, *, keyless: bool) -> tuple[Snippet, ...]:
    """The request as three programs; an image stands in them as a file of that name.

    `url` is the gateway's root, without a slash at the end.
    """
    asked = {name: value for name, value in body.items() if name != "assets"}
    image = "assets" in body
    return (
        Snippet("curl", "", "", _curl(asked, url, image=image, keyless=keyless)),
        Snippet(
            "Python",
            "ask.py",
            "pip install typesafe-sdk",
            _python(asked, url, image=image, keyless=keyless),
        ),
        Snippet(
            "JavaScript",
            "ask.mjs",
            "" if image else "npm install @typesafe-ai/sdk",
            _javascript(asked, url, image=image, keyless=keyless),
        ),
    )


def _curl(asked: dict[str, Any], url: str, *, image: bool, keyless: bool) -> str:
    lines = [f"curl -sS {shlex.quote(url + systemone.PATH)}"]
    if not keyless:
        lines.append(f'-H "Authorization: Bearer ${KEY}"')
    if image:
        asked = {**asked, "assets": {IMAGE: {"type": "image", "part": "picture"}}}
        lines.append(f"--form-string request={shlex.quote(_json(asked))}")
        lines.append(f"-F picture=@{IMAGE}.png")
    else:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"--data-binary {shlex.quote(_json(asked))}")
    return " \\\n  ".join(lines)


def _python(asked: dict[str, Any], url: str, *, image: bool, keyless: bool) -> str:
    names = "Image, TypeSafeClient" if image else "TypeSafeClient"
    key = '"none-needed"' if keyless else f'os.environ["{KEY}"]'
    arguments = [f"    {name}={_literal(value)}," for name, value in asked.items()]
    if image:
        arguments.append(f'    assets={{"{IMAGE}": Image(Path("{IMAGE}.png"))}},')
    imports = [] if keyless else ["import os"]
    imports += ["from pathlib import Path"] if image else []
    return "\n".join(
        [
            *imports,
            *([""] if imports else []),
            f"from typesafe_sdk import {names}",
            "",
            f"client = TypeSafeClient(base_url={_text(url)}, api_key={key})",
            "response = client.system_one(",
            *arguments,
            ")",
            "print(response.model_dump_json(indent=2))",
        ]
    )


def _javascript(asked: dict[str, Any], url: str, *, image: bool, keyless: bool) -> str:
    key = '"none-needed"' if keyless else f"process.env.{KEY}"
    if image:
        return _fetched(asked, url, keyless=keyless)
    return "\n".join(
        [
            'import { TypeSafeClient } from "@typesafe-ai/sdk";',
            "",
            f"const client = new TypeSafeClient({{ baseURL: {json.dumps(url)}, apiKey: {key} }});",
            f"const response = await client.systemOne({_json(asked)});",
            "console.log(JSON.stringify(response, null, 2));",
        ]
    )


def _fetched(asked: dict[str, Any], url: str, *, keyless: bool) -> str:
    """With an image: nothing but what Node.js has itself."""
    asked = {**asked, "assets": {IMAGE: {"type": "image", "part": "picture"}}}
    sent = "  headers: { Authorization: `Bearer ${process.env." + KEY + "}` },"
    return "\n".join(
        [
            'import { readFile } from "node:fs/promises";',
            "",
            "const form = new FormData();",
            f'form.set("request", JSON.stringify({_json(asked)}));',
            f'form.set("picture", new Blob([await readFile("{IMAGE}.png")]), "{IMAGE}.png");',
            f"const response = await fetch({json.dumps(url + systemone.PATH)}, {{",
            '  method: "POST",',
            *([] if keyless else [sent]),
            "  body: form,",
            "});",
            "console.log(JSON.stringify(await response.json(), null, 2));",
        ]
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _literal(value: object, margin: str = "    ") -> str:
    """The value as Python, for lines that stand `margin` from the left."""
    inner = margin + "    "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{_text(name)}: {_literal(one, inner)}," for name, one in value.items()]
        return "\n".join(["{", *lines, margin + "}"])
    if isinstance(value, list) and value:
        return "\n".join(["[", *(f"{inner}{_literal(one, inner)}," for one in value), margin + "]"])
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """A string as Python, in the quotes that people write where nothing has to be escaped."""
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)
