"""`[cascade]`: when a cheaper engine's answer is kept, and what happens when a better one fails."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from gateway.config_section import FilePath, Name, Section
from policies.cells import CELLS

OTHERWISE = "otherwise"
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_KINDS = ("noul", "choice", "score")


class GateSection(Section):
    """`[cascade.gates.<engine>]`: what never reaches an engine that has a better one above it."""

    max_options: int | None = Field(default=None, ge=1, le=255)
    """Most options of a choice."""
    languages: tuple[str, ...] | None = Field(default=None, strict=False)
    """Languages it is trusted with, as `en`; looked at where the asker gives a hint (`x_lang`)."""
    known_bad: tuple[str, ...] = Field(default=(), strict=False)
    """Fingerprints of questions that it is known to be bad at."""

    @field_validator("known_bad")
    @classmethod
    def _refuse_other_than_fingerprints(cls, found: tuple[str, ...]) -> tuple[str, ...]:
        for one in found:
            if not _FINGERPRINT.fullmatch(one):
                raise ValueError(f"'{one}' is no fingerprint: 16 hexadecimal digits")
        return found

    @field_validator("languages")
    @classmethod
    def _refuse_regions(cls, found: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for one in found or ():
            if not re.fullmatch(r"[a-z]{2,3}", one):
                raise ValueError(f"'{one}' is no language code of two or three small letters")
        return found


class CascadeSection(Section):
    """`[cascade]`: for models with several `tiers`."""

    mode: Literal["off", "shadow", "enforce"] = "enforce"
    """`enforce`: each question is answered by the cheapest engine that is sure enough. `off`,
    `shadow`: the last engine answers everything; under `shadow` the others read it too, where
    there is a ledger, to see what they would have said."""
    policy: FilePath = ""
    """File with floors and what they promise, written by `tiergate calibrate`; empty = the
    floors below."""
    calibration: FilePath = ""
    """File with temperatures, written by `tiergate calibrate`; empty = the engines' own."""
    on_suspended: Literal["escalate", "floors"] = "escalate"
    """What happens to the questions of an engine whose promise does not hold any more, because
    its weights or its calibration changed: all go up, or the floors below count."""
    floors: dict[Name, dict[str, float]] = {}
    """Engine → least probability that an answer is right, per kind (`choice`), kind and number of
    labels (`"choice:11+"`), fingerprint of a question, or `otherwise`."""
    gates: dict[Name, GateSection] = {}
    """Engine → what never reaches it."""
    default_floor: float = Field(default=0.8, ge=0, le=1)
    """For what no floor speaks of: a guess, until there is a policy."""
    max_escalation_share: float = Field(default=1.0, ge=0, le=1)
    """Of the last questions, the most that may go up for want of certainty."""
    escalation_window: int = Field(default=1000, ge=1, le=1_000_000)
    """How many questions back the share is counted."""
    on_cap: Literal["stay_small", "refuse"] = "stay_small"
    """Beyond that share: the unsure answer, marked, or 529."""
    on_exhausted: Literal["refuse", "stay_small"] = "refuse"
    """What happens to a key whose budget has no room for a better engine, but for the first."""
    on_unavailable: Literal["refuse", "small"] = "refuse"
    """The last engine is down, full or too slow: an error, or the unsure answer, marked."""
    cost_of_error: float | None = Field(default=None, ge=0, le=1_000_000)
    """What a wrong answer costs, in US dollars: a question goes up where its chance of being wrong
    times this is more than the better engine's price for it. Unset = floors decide."""
    cost_of_error_by_key: dict[Name, float] = {}
    """The same for single keys, by name."""

    @field_validator("floors")
    @classmethod
    def _refuse_strange_floors(
        cls, floors: dict[str, dict[str, float]]
    ) -> dict[str, dict[str, float]]:
        for engine, own in floors.items():
            for what, floor in own.items():
                known = what in CELLS or what in (*_KINDS, OTHERWISE)
                if not known and not _FINGERPRINT.fullmatch(what):
                    raise ValueError(
                        f"floors.{engine} has '{what}', which is no kind, no cell as "
                        f"'choice:3-5', no fingerprint and not 'otherwise'; cells are: "
                        f"{', '.join(CELLS)}"
                    )
                if not 0 <= floor <= 1:
                    raise ValueError(
                        f"floors.{engine}.{what} is {floor:g}; a probability is in [0, 1]"
                    )
        return floors

    @model_validator(mode="after")
    def _refuse_negative_costs(self) -> "CascadeSection":
        for name, cost in self.cost_of_error_by_key.items():
            if not 0 <= cost <= 1_000_000:
                raise ValueError(f"cost_of_error_by_key.{name} is {cost:g}; it is at least 0")
        return self
