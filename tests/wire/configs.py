"""Configurations of the gateways that the wire tests start."""

from pathlib import Path

SCRIPTED = """
default_model = "scripted"

[auth.keys]

[engines.scripted]
kind = "scripted"

[models.scripted]
engine = "scripted"
aliases = ["jev-latest", "jev-preview"]
"""
"""A configuration whose engine answers from a hash."""

STARTER = (Path(__file__).parents[2] / "config.toml").read_text(encoding="utf-8")
"""The configuration as it is shipped: the embedded engine, every setting at its default."""

CHECKPOINT = Path(__file__).parents[2] / "build/checkpoints/tiny-english"
"""Where `need` puts a tiny checkpoint; its import is written beside it."""

LAYA = f"""
default_model = "laya"

[auth.keys]

[engines.laya]
kind = "laya"
path = "{CHECKPOINT}"
language = "any"
tournament = 16
max_tokens = 2048
head_max_tokens = 512
on_overflow = "truncate"

[models.laya]
engine = "laya"
aliases = ["jev-latest", "jev-preview"]
"""
"""A configuration with a tiny checkpoint of random weights.

Its tokenizer takes a token for each byte of most scripts, so an option in Japanese has more than
the 48 that Laya reads of one: truncating is allowed here.
"""

CASCADE = (
    LAYA.replace('default_model = "laya"', 'default_model = "cascade"').split("[models.laya]")[0]
    + """
[engines.starter]
kind = "starter"

[models.cascade]
tiers = ["starter", "laya"]
aliases = ["jev-latest", "jev-preview"]

[cascade]
default_floor = 0.6
"""
)
"""A cascade of the embedded engine and the tiny checkpoint."""
CLEF = f"""
default_model = "clef"

[server]
deadline_s = 60.0

[auth.keys]

[engines.clef]
kind = "clef"
path = "{Path(__file__).parents[1] / "data/clef/tiny-clef"}"
devices = ["cpu"]
precision = "fp32"
threads = 1

[models.clef]
engine = "clef"
aliases = ["jev-latest", "jev-preview"]
"""
"""A configuration with a tiny Clef checkpoint of random weights, each question read by itself.

Patient: 255 options are 9,000 tokens, on a machine that may be busy with other things.
"""

PATIENT = STARTER.replace("deadline_s = 8.0\n", "deadline_s = 60.0\n", 1)
"""The same for a machine that is busy with other things: an answer may take a minute."""

KEY = "wire-test-key-0123456789abcdef"
"""The bearer key of `keyed` configurations, through the variable `WIRE_KEY`."""


def keyed(config: str) -> str:
    """The same configuration, but with the key `KEY`."""
    table = "[auth.keys]\n"
    assert table in config
    return config.replace(table, table + 'bench = "${WIRE_KEY}"\n')
