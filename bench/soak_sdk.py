"""The official SDK as a client of a soak, on threads of its own: compressing, retrying, parsing."""

import random
import threading
import time

import httpx2
from typesafe_sdk import (
    Choice,
    Noul,
    RetryPolicy,
    Score,
    TypeSafeClient,
    TypeSafeError,
    TypeSafeInternalServerError,
)

from bench.bodies import text
from bench.soak_acts import OVERLOADED, Act
from bench.soak_clients import Notes, Reply

_ACT = Act("sdk", b"")


class SdkUser(threading.Thread):
    """Asks one question set after another until it is told to stop."""

    def __init__(self, number: int, port: int, key: str) -> None:
        super().__init__(name=f"sdk-{number}", daemon=True)
        self.notes = Notes()
        self.stopping = threading.Event()
        self._draw = random.Random(10_000 + number)
        self._number = number
        self._url = f"http://127.0.0.1:{port}"
        self._key = key

    def run(self) -> None:
        """What the thread does."""
        client = httpx2.Client(event_hooks={"response": [self._told]})
        retry = RetryPolicy(max_retries=2, backoff_initial=0.05, backoff_max=0.2)
        with TypeSafeClient(
            api_key=self._key, base_url=self._url, http_client=client, retry=retry
        ) as sdk:
            while not self.stopping.is_set():
                self._ask(sdk)

    def _ask(self, sdk: TypeSafeClient) -> None:
        draw = self._draw
        questions: dict[str, Noul | Choice | Score] = {
            "is": Noul(instructions=text(draw, 60)),
            "which": Choice(criteria={"one": text(draw, 30), "other": None, "none": "neither"}),
            "how": Score(criteria=["low", "middle", "high"]),
        }
        state = f"{draw.getrandbits(48):x} {text(draw, draw.choice([100, 2000, 20_000]))}"
        begun_s = time.perf_counter()
        try:
            answered = sdk.system_one(state, questions)
        except TypeSafeInternalServerError as error:
            if error.status != OVERLOADED:
                self.notes.complain(f"the SDK was refused with {error.status}")
            return
        except TypeSafeError as error:
            self.notes.complain(f"the SDK failed: {type(error).__name__}")
            return
        self.notes.answered_s.append(time.perf_counter() - begun_s)
        if list(answered.answers) != list(questions):
            self.notes.complain("the SDK got other answers than it asked for")

    def _told(self, response: httpx2.Response) -> None:
        lines = [f"{name}: {value}" for name, value in response.headers.items()]
        head = "\r\n".join(["", *lines]).lower().encode()
        reply = Reply(response.status_code, head, response.read())
        self.notes.answered(_ACT, response.headers["x-typesafe-request-id"], reply)
