"""One stage of a request, repeated, in a process of its own: what callgrind.py counts.

`python -m bench.instructions STAGE BODY TIMES`. Everything is prepared whatever `TIMES` is, so the
difference between two runs is the stage alone.
"""

import sys
from collections.abc import Callable

from bench.bodies import bodies
from engines.scripted import ScriptedEngine
from gateway.config import Settings
from gateway.decision import Decision, Step
from gateway.dialects import systemone
from gateway.wiring import new_services
from policies.answers import answer

STAGES = ("decode", "answers", "encode")


def stages(body: bytes) -> dict[str, Callable[[], object]]:
    """Stage → the work of one request, on a body of bodies.py."""
    limits = new_services(Settings()).ask
    _, inquiry = systemone.decode(body, None, limits)
    engine = ScriptedEngine(script="even")
    readings = engine.read(engine.prepare(inquiry))[0]

    def answers() -> dict[str, object]:
        return {name: answer(asked, readings[name]) for name, asked in inquiry.questions.items()}

    given_answers = {
        name: answer(asked, readings[name]) for name, asked in inquiry.questions.items()
    }
    decision = Decision("bench", given_answers, (Step("scripted", 1, 0.0),))
    return {
        "decode": lambda: systemone.decode(body, None, limits),
        "answers": answers,
        "encode": lambda: systemone.encode(decision),
    }


def main(stage: str, body: str, times: int) -> None:
    """Do the work of `stage` so often."""
    work = stages(bodies()[body])[stage]
    for _ in range(3):
        work()
    for _ in range(times):
        work()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
