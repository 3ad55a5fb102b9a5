"""`make serve-tls`: what it prints can be done, and it leaves nothing running."""

import os
import re
import signal
import ssl
import subprocess
import time
from pathlib import Path

import httpx2
import pytest

from tests.front.caddy import free_port
from tests.needs import program
from tests.wire.asks import ask
from tests.wire.serving import SCRIPTED

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="there is no .venv here")
def test_the_front_for_a_trial_answers_as_it_says_and_ends_with_its_gateway(
    tmp_path: Path,
) -> None:
    program("caddy", "caddy")
    config = tmp_path / "config.toml"
    config.write_text(SCRIPTED)
    ports = {name: str(free_port()) for name in ("PORT", "HTTPS_PORT", "HTTP_PORT")}
    environment = {
        **os.environ,
        **{f"TIERGATE_{name}": port for name, port in ports.items()},
        "TIERGATE_CADDY_ADMIN": f"localhost:{free_port()}",
        "TIERGATE_CONFIG": str(config),
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    with subprocess.Popen(
        [ROOT / "scripts/serve-tls"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(3)]
            said = re.search(r"SSL_CERT_FILE=(\S+) TYPESAFE_BASE_URL=(\S+)", told[2])
            assert said is not None
            status = answered(Path(said[1]), said[2])
            child.send_signal(signal.SIGINT)
            assert child.wait(30) == 0
        finally:
            child.terminate()

    assert status == 200
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{ports['PORT']}/health", trust_env=False)


def answered(root: Path, url: str) -> int:
    """The status of a question, as soon as there is an answer."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        try:
            trust = ssl.create_default_context(cafile=str(root))
            with httpx2.Client(verify=trust, trust_env=False) as client:
                answer = client.post(f"{url}/v1/systemone", json=ask())
            if answer.status_code != 503:
                return answer.status_code
        except (OSError, httpx2.HTTPError):
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")
