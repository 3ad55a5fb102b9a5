"""`make serve-tls`: what it prints can be done, and it leaves nothing running."""

import os
import re
import signal
import ssl
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.front.caddy import free_port
from tests.needs import program
from tests.wire.asks import ask
from tests.wire.serving import SCRIPTED

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/serve-tls"
HERE = pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="there is no .venv here")


def trial(folder: Path, config: str) -> dict[str, str]:
    """The environment of a trial with this configuration, on ports of its own."""
    program("caddy", "caddy")
    (folder / "config.toml").write_text(config)
    ports = {name: str(free_port()) for name in ("PORT", "HTTPS_PORT", "HTTP_PORT")}
    return {
        **os.environ,
        **{f"TIERGATE_{name}": port for name, port in ports.items()},
        "TIERGATE_CADDY_ADMIN": f"localhost:{free_port()}",
        "TIERGATE_CONFIG": str(folder / "config.toml"),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }


@HERE
def test_the_front_for_a_trial_answers_as_soon_as_it_says_so_and_ends_with_its_gateway(
    tmp_path: Path,
) -> None:
    environment = trial(tmp_path, SCRIPTED)
    with subprocess.Popen(
        [SCRIPT], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(3)]
            said = re.search(r"SSL_CERT_FILE=(\S+) TYPESAFE_BASE_URL=(\S+)", told[2])
            assert said is not None
            trust = ssl.create_default_context(cafile=said[1])
            with httpx2.Client(verify=trust, trust_env=False, timeout=30) as client:
                answer = client.post(f"{said[2]}/v1/systemone", json=ask())
            child.send_signal(signal.SIGINT)
            assert child.wait(30) == 0
        finally:
            child.terminate()

    assert answer.status_code == 200
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{environment['TIERGATE_PORT']}/health", trust_env=False)


@HERE
def test_a_gateway_that_cannot_start_ends_the_trial_with_its_code(tmp_path: Path) -> None:
    environment = trial(tmp_path, SCRIPTED + "[limits]\nmax_qestions = 1\n")

    ended = subprocess.run(
        [SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 2
    assert "did you mean 'max_questions'" in ended.stderr
    assert "ready" not in ended.stdout
