"""The settings of a Clef engine: `[engines.<name>]` with `kind = "clef"`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gateway.config_section import FilePath, Section

Device = Annotated[str, Field(pattern=r"^(cpu|cuda(:\d{1,2})?)$")]


class ClefEngineSection(Section):
    """`[engines.<name>]` with `kind = "clef"`: a Clef-flash checkpoint in this process."""

    kind: Literal["clef"]
    """Which module of engines/ answers."""
    path: FilePath = Field(min_length=1)
    """Checkpoint directory, with `joint_head_config.json` in it."""
    devices: tuple[Device, ...] = Field(
        default=("cuda",), min_length=1, max_length=16, strict=False
    )
    """Where the model runs: `cuda`, `cuda:0`, …, or `cpu`. Each holds a copy of the weights, and
    an inquiry goes to the one that has the least to do."""
    precision: Literal["bf16", "fp32", "int8", "fp8"] = "bf16"
    """Of the decoder's weights. int8 and fp8 take half the memory of bf16 and move answers a
    little; fp32 takes twice as much and is for comparing."""
    reading: Literal["isolated", "joint"] = "isolated"
    """`isolated`: each question by itself on top of the state, so that neither its id nor its
    neighbours count; `joint`: all questions of a request in one prompt, as the reference does."""
    max_tokens: int = Field(default=16_384, ge=128, le=262_144)
    """Longest prompt: state, question and what stands around them."""
    max_state_tokens: int | None = Field(default=None, ge=1, le=262_144)
    """Longest state, if that is to be less than what fits."""
    on_overflow: Literal["refuse", "truncate"] = "refuse"
    """What happens to a state that does not fit: a refusal with both counts, or the end is cut off
    as the reference does, reported as `x_truncated`."""
    harden: bool = True
    """Control tokens written out in texts are ordinary text; otherwise, as in the reference, they
    control the model."""
    max_images: int = Field(default=4, ge=0, le=16)
    """Most images of a request; 0 = the vision tower is not loaded."""
    chunk_tokens: int = Field(default=2048, ge=64, le=262_144)
    """Longest stretch of a prompt that is computed at once: bounds the memory of long ones."""
    prefix_from_tokens: int = Field(default=128, ge=0, le=262_144)
    """From this length on, a state is read once for several questions about it."""
    cache_from_tokens: int = Field(default=1024, ge=0, le=262_144)
    """From this length on, a state is remembered for later requests. A shorter one is read in one
    go with a question that is alone."""
    prefix_cache_bytes: int = Field(default=2_147_483_648, ge=0, le=1_099_511_627_776)
    """Device memory for states that were read before: about 35 KB a token and 52 MB each, and less
    where the device has less to spare; 0 = a state is kept only while a request is read."""
    batch_tokens: int = Field(default=16_384, ge=64, le=1_048_576)
    """Most tokens computed at once, those of several requests together; fewer where the device has
    no room for them, see `tiergate engine plan`."""
    deterministic: bool = False
    """Each prompt is computed alone, so that not even the last bit of an answer depends on what
    else is asked at the same time; slower under load."""
    graphs: bool = True
    """On a GPU: record the kernels of each shape once and replay them."""
    bucket_tokens: int = Field(default=64, ge=16, le=4096)
    """With graphs: lengths are padded to a multiple of this."""
    tables: Literal["device", "host"] = "device"
    """Where the embeddings and the rows of the output layer lie: 4 GB that are only looked up."""
    threads: int = Field(default=0, ge=0, le=256)
    """On a CPU: threads of one product; 0 = as many as the CPU quota of this process allows."""
    keep_alive_s: float = Field(default=0.0, ge=0, le=604_800)
    """Let go of the weights after so long without a question, and load them again for the next,
    which is refused with 503 and a hint meanwhile; 0 = never."""
    on_lost: Literal["stop", "stay"] = "stop"
    """When a device is lost for good: end with exit code 4, so that whoever started this process
    starts it again, or stay and answer `/ready` with 503."""
    max_waiting: int = Field(default=64, ge=1, le=100_000)
    """Requests in front of each device before the next is refused with 529."""
    memo_bytes: int = Field(default=16_777_216, ge=0, le=17_179_869_184)
    """Memory for readings of questions that were asked before; 0 = read every time. Of no use to
    joint reading, which has none."""

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> "ClefEngineSection":
        if len(set(self.devices)) < len(self.devices):
            raise ValueError("devices names one twice; each holds its own copy of the weights")
        if self.max_state_tokens is not None and self.max_state_tokens > self.max_tokens:
            raise ValueError("max_state_tokens is more than max_tokens, which holds the state too")
        return self
