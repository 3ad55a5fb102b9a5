"""Well-formed inputs to begin with: a fuzzer that starts from nothing learns JSON first."""

import gzip
import json
import sys
from pathlib import Path

from tests.wire.asks import ask, raw

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_ROOT = Path(__file__).parents[2]
_FORM = (
    b'edge\0--edge\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n'
    b'--edge\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n'
    b"Content-Type: image/png\r\n\r\n\x89PNG\r\n--edge--\r\n"
)
_POLICY = """\
version = 1
created = "2026-12-01"
risk = 0.05
delta = 0.1
mode = "labels"
joint = false

[engines.small]
digest = "d"
calibration = "c"

[[floors]]
engine = "small"
cell = "noul"
floor = 0.9
promised = true
labels = 100
accepted = 80
errors = 1
p_value = 0.01
coverage = 0.8
delta = 0.1
start_rule = "s"
needs = 0
"""
_CALIBRATION = {
    "version": 1,
    "engines": {
        "small": {
            "digest": "d",
            "cells": {"noul": {"temperature": 0.8, "knots": [[0.3, 0.2], [0.9, 0.8]]}},
            "questions": {},
        }
    },
}
_OUTCOMES = {"outcomes": [{"request_id": "r", "question": "q", "truth": True}]}
_ROW = {"state": "s", "questions": "@rows", "labels": {"q": True}}

SEEDS: dict[str, tuple[bytes, ...]] = {
    "head": (b"application/json; charset=utf-8\0zstd", b'multipart/form-data; boundary="b"\0'),
    "key": (b"Bearer a-key-that-is-long-enough-0123456789", b"bearer tg_0123456789_" + b"x" * 43),
    "body": (b"\0\4" + zstd.compress(raw()), b"\1\4" + gzip.compress(raw(), mtime=0), b"\2\4{}"),
    "multipart": (_FORM,),
    "ask": (raw(), raw(ask(x_lang="de", assets={"a": {"data_base64": "iVBORw0KGgo="}}))),
    "outcomes": (json.dumps(_OUTCOMES).encode(),),
    "form": (
        b"application/x-www-form-urlencoded\0name=a&scopes=decide&scopes=usage&csrf=x%20y",
        b"multipart/form-data; boundary=" + _FORM,
    ),
    "forwarded": (b"203.0.113.7, 10.0.0.2", b"[2001:db8::1]:443,10.0.0.3:80"),
    "config": ((_ROOT / "config.toml").read_bytes(),),
    "policy": (_POLICY.encode(),),
    "calibration": (json.dumps(_CALIBRATION).encode(),),
    "jsonl": (json.dumps(_ROW).encode(),),
    "csv": (b"state,q,_note\nsome text,yes,x\n",),
}
"""Target → inputs."""
