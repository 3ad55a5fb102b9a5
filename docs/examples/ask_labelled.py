"""Ask a gateway every labelled row of a file, then tell it the truth about its answers.

    TIERGATE_KEY=tg_… python ask_labelled.py LABELS.jsonl [ROWS] [URL]

Questions that stand in the file as "@name" are that entry of the questions.json beside it.
"""

import json
import os
import sys
import urllib.request
from itertools import islice
from pathlib import Path
from typing import Any


def post(url: str, body: Any) -> tuple[Any, str]:
    """What the gateway answers, and the id of the request."""
    headers = {
        "Authorization": f"Bearer {os.environ['TIERGATE_KEY']}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response), response.headers["x-typesafe-request-id"]


def main(path: Path, rows: int, gateway: str) -> None:
    """Print how many rows went up."""
    named = json.loads(path.with_name("questions.json").read_text())
    outcomes, escalated = [], 0
    with path.open() as lines:
        for row in map(json.loads, islice(lines, rows)):
            asked = row["questions"]
            questions = named[asked[1:]] if isinstance(asked, str) else asked
            ask = {"state": row["state"], "questions": questions}
            answer, request_id = post(f"{gateway}/v1/systemone", ask)
            escalated += answer["x_cascade"]["escalated"]
            outcomes += [
                {"request_id": request_id, "question": question, "truth": truth}
                for question, truth in row["labels"].items()
            ]
    for first in range(0, len(outcomes), 1000):
        post(f"{gateway}/v1/outcomes", {"outcomes": outcomes[first : first + 1000]})
    print(f"{len(outcomes)} questions, {escalated} went up")


if __name__ == "__main__":
    defaults = ["", "1000", "http://127.0.0.1:8080"]
    file, count, url = sys.argv[1:] + defaults[len(sys.argv) - 1 :][: 4 - len(sys.argv)]
    main(Path(file), int(count), url)
