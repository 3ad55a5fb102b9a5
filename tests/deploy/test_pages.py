"""The pages that an operator follows: their commands exist, and say what the files say."""

import re
from pathlib import Path

from gateway.cli import parser
from gateway.config_file import load
from tests.deploy.test_deploy import COMPOSE, ROOT, services


def test_the_configuration_of_the_deploy_page_is_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
    (toml,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "config.toml"
    path.write_text(toml, encoding="utf-8")

    settings = load(path).settings

    assert settings.server.trusted_proxies == ("127.0.0.1",)
    assert settings.server.leave_s > 1


def test_the_deploy_page_is_in_the_right_folder_for_each_command() -> None:
    page = (ROOT / "docs/deploy.md").read_text(encoding="utf-8").partition("## In containers")[0]
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if not language]
    tracked = {"deploy/tiergate.service", "Caddyfile", "requirements/cpu.lock", "."}
    folder, used = "", set()

    for line in filter(str.strip, "".join(blocks).splitlines()):
        command, *words = line.split()
        folder = words[0] if command == "cd" else folder
        for word in tracked.intersection(words):
            used.add(word)
            assert folder == "/opt/tiergate", line

    assert used == tracked


def test_caddy_may_end_what_is_under_way_wherever_it_runs() -> None:
    front = (ROOT / "Caddyfile").read_text(encoding="utf-8")
    page = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")

    (grace,) = re.findall(r"grace_period (\d+)s", front)
    (answer,) = re.findall(r"response_header_timeout (\d+)s", front)
    (systemd,) = re.findall(r"TimeoutStopSec=(\d+)\\n", page)
    container = COMPOSE["services"]["caddy"]["stop_grace_period"].removesuffix("s")

    assert int(answer) < int(grace) < int(systemd)
    assert int(grace) < int(container)


def test_in_containers_the_first_key_is_made_before_anything_starts() -> None:
    page = (ROOT / "docs/deploy.md").read_text(encoding="utf-8").partition("## In containers")[2]

    commands = re.findall(r"^podman compose -f deploy/compose.yaml (\w+)(.*)$", page, re.MULTILINE)

    assert [verb for verb, _ in commands] == ["build", "run", "up", "exec", "exec"]
    assert commands[1][1].split()[-4:] == ["gateway-a", "keys", "create", "support"]
    assert all(name in services() for _, more in commands for name in re.findall("gateway-.", more))


def test_every_command_of_the_deploy_and_operate_pages_exists() -> None:
    pages = [
        (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("deploy", "operate")
    ]
    named = set(re.findall(r"\btiergate (?!is|needs|on|under)([a-z]+)\b", " ".join(pages)))
    known = {action.dest: action for action in parser()._actions}["command"].choices or ()

    assert named - {"believes"} <= set(known)
    assert {"doctor", "reload", "keys"} <= named
