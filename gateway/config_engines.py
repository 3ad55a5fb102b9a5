"""The settings of engines: one section per kind, told apart by `kind`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gateway.config_clef import ClefEngineSection
from gateway.config_section import FilePath, Section


class _Lane(Section):
    max_waiting: int = Field(default=64, ge=1, le=100_000)
    """Requests in front of this engine before the next is refused with 529."""
    workers: int = Field(default=0, ge=0, le=256)
    """Threads that read; 0 = as many as the CPU quota of this process allows."""


class StarterEngineSection(_Lane):
    """`[engines.<name>]` with `kind = "starter"`: the small model that comes with the install."""

    kind: Literal["starter"]
    """Which module of engines/ answers."""
    option_cache: int = Field(default=4096, ge=0, le=1_000_000)
    """Texts of options whose vectors are kept in memory: 1.5 KB each, and the text itself."""


class FittedEngineSection(_Lane):
    """`[engines.<name>]` with `kind = "fitted"`: heads made by `tiergate fit` of labelled rows."""

    kind: Literal["fitted"]
    """Which module of engines/ answers."""
    path: FilePath = Field(min_length=1)
    """Folder of heads, one file per question. Questions without a head are unknown to it."""


class ScriptedEngineSection(_Lane):
    """`[engines.<name>]` with `kind = "scripted"`: answers by a rule, for tests and benches."""

    kind: Literal["scripted"]
    """Which module of engines/ answers."""
    script: Literal["hash", "even"] = "hash"
    """`hash`: by the text of state and labels; `even`: by the number of labels alone, for benches
    that measure everything but the engine."""
    max_tokens: int = Field(default=65_536, ge=1, le=10**15)
    """Longest state, in words."""
    delay_s: float = Field(default=0.0, ge=0, le=60)
    """Seconds each read takes."""
    faults: dict[Literal["raise", "nan", "busy", "stall"], Annotated[int, Field(ge=1)]] = {}
    """What goes wrong → in every which read: an exception, weights that are not finite, a refusal
    to read now, a second of nothing. To see what a gateway makes of it."""


class LayaEngineSection(_Lane):
    """`[engines.<name>]` with `kind = "laya"`: a Laya checkpoint, or two of them."""

    kind: Literal["laya"]
    """Which module of engines/ answers."""
    path: FilePath = Field(min_length=1)
    """Checkpoint directory, with `rl_agent_config.json` in it."""
    multilingual_path: FilePath | None = None
    """Second checkpoint, for what is not English."""
    precision: Literal["fp32", "int8"] = "fp32"
    """Arithmetic of the large products. int8 takes a third of the memory; how much faster it is
    depends on the processor."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the network runs; `cuda` needs the extra `cuda` instead of `cpu`."""
    device_fallback: bool = False
    """Without the device, go on with the CPU instead of not starting."""
    on_overflow: Literal["refuse", "truncate"] = "refuse"
    """What happens to a question that does not fit: a refusal with the reason, or what the
    reference does, reported as `x_truncated`."""
    harden: bool = True
    """Special tokens inside texts mean nothing; otherwise, as in the reference, only the mask
    is taken out."""
    tournament: int = Field(default=0, ge=0, le=100)
    """Options per group when there are more than fit into a row; 0 = refuse such questions.
    The probabilities then compare the finalists only."""
    language: Literal["detect", "any"] = "detect"
    """Whether a checkpoint trained on English alone is kept from other languages."""
    max_tokens: int | None = Field(default=None, ge=64, le=8192)
    """Longest row instead of the checkpoint's own."""
    head_max_tokens: int | None = Field(default=None, ge=32, le=8192)
    """Tokens for instructions and options together instead of the checkpoint's own."""
    memo_bytes: int = Field(default=16_777_216, ge=0, le=17_179_869_184)
    """Memory for readings of questions that were asked before; 0 = read every time."""

    @model_validator(mode="after")
    def _refuse_groups_of_one(self) -> "LayaEngineSection":
        if self.tournament == 1:
            raise ValueError("tournament is 0 (off) or at least 2 options per group")
        return self


EngineSection = Annotated[
    StarterEngineSection
    | FittedEngineSection
    | LayaEngineSection
    | ClefEngineSection
    | ScriptedEngineSection,
    Field(discriminator="kind"),
]
