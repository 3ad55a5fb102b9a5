"""The settings of a running gateway: one frozen tree, typed, every field documented.

The docstring under a field becomes its entry in docs/configuration.md. Reading a file, with
lines and origins, is config_file.py.
"""

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from gateway.config_cascade import CascadeSection
from gateway.config_dashboard import DashboardSection
from gateway.config_engines import EngineSection, StarterEngineSection
from gateway.config_ledger import LedgerSection
from gateway.config_limits import LimitsSection
from gateway.config_prices import PricesSection, PricingSection
from gateway.config_section import Name, Section
from gateway.config_server import LogSection, ServerSection, TracesSection, is_loopback
from gateway.config_watch import WatchSection


def _real_date(text: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError("a date is written as YYYY-MM-DD")
    date.fromisoformat(text)
    return text


class AuthSection(Section):
    """`[auth]`: who may ask. Without keys everyone may, and only a loopback bind is allowed."""

    keys: dict[Name, SecretStr] = {}
    """Key name → bearer key, written as `"${VARIABLE}"` or `"${file:PATH}"` so that the key itself
    stays out of this file. At least 20 printable characters without blanks."""

    metrics_keys: dict[Name, SecretStr] = {}
    """The same for keys that may read `/metrics` and nothing else."""

    @model_validator(mode="after")
    def _refuse_weak_keys(self) -> "AuthSection":
        both = [*self.keys.items(), *self.metrics_keys.items()]
        for name, key in both:
            if not re.fullmatch(r"[!-~]{20,512}", key.get_secret_value()):
                raise ValueError(
                    f"the key '{name}' must be 20 to 512 printable ASCII characters without blanks"
                )
        values = [key.get_secret_value() for _, key in both]
        if len(set(values)) < len(values):
            raise ValueError("two names have the same key; give each its own")
        return self


class ModelSection(Section):
    """`[models.<name>]`: a name that clients may ask for."""

    engine: Name | None = None
    """Which `[engines.<name>]` answers."""
    tiers: tuple[Name, ...] = Field(default=(), strict=False)
    """Instead of `engine`: several, the cheapest first. See `[cascade]`."""
    mode: Literal["off", "shadow", "enforce"] | None = None
    """`cascade.mode` for this model."""
    cost_of_error: float | None = Field(default=None, ge=0, le=1_000_000)
    """`cascade.cost_of_error` for this model."""
    aliases: tuple[Name, ...] = Field(default=(), strict=False)
    """Other names for the same model, e.g. those of the hosted API."""
    description: str = ""
    """Shown by `GET /v1/models`; empty = what the engine says of itself."""
    release_date: Annotated[str, AfterValidator(_real_date)] = "2026-11-30"
    """Shown by `GET /v1/models`, as `YYYY-MM-DD`; the default is when the starter came out."""

    @model_validator(mode="after")
    def _refuse_none_or_both(self) -> "ModelSection":
        if (self.engine is None) == (not self.tiers):
            raise ValueError("give either an engine, or tiers: several engines, the cheapest first")
        if len(set(self.tiers)) < len(self.tiers):
            raise ValueError("tiers names the same engine twice")
        return self

    @property
    def engines(self) -> tuple[str, ...]:
        """Names of the engines, the cheapest first."""
        return self.tiers if self.engine is None else (self.engine,)


_HOSTED_ALIASES = ("jev-latest", "jev-preview", "jev-1.13.0", "jev-1.14.0")


class Settings(Section):
    """Everything a gateway can be told."""

    default_model: Name = "starter"
    """The model for requests that name none."""
    server: ServerSection = ServerSection()
    limits: LimitsSection = LimitsSection()
    auth: AuthSection = AuthSection()
    cascade: CascadeSection = CascadeSection()
    ledger: LedgerSection = LedgerSection()
    watch: WatchSection = WatchSection()
    log: LogSection = LogSection()
    traces: TracesSection = TracesSection()
    dashboard: DashboardSection = DashboardSection()
    engines: dict[Name, EngineSection] = {"starter": StarterEngineSection(kind="starter")}
    """One table per engine that is loaded at start."""
    models: dict[Name, ModelSection] = {
        "starter": ModelSection(engine="starter", aliases=_HOSTED_ALIASES)
    }
    """One table per model that clients may name."""
    prices: PricesSection = PricesSection()
    pricing: PricingSection = PricingSection()

    @model_validator(mode="after")
    def _refuse_missing_engines(self) -> "Settings":
        for name, model in self.models.items():
            for engine in model.engines:
                if engine not in self.engines:
                    where = "engine" if model.engine else "tiers"
                    raise ValueError(
                        f"models.{name}.{where} names '{engine}', but there is no "
                        f"[engines.{engine}]; there are: {', '.join(self.engines) or 'none'}"
                    )
        for table in ("floors", "gates"):
            for engine in getattr(self.cascade, table):
                if engine not in self.engines:
                    raise ValueError(
                        f"cascade.{table}.{engine} is for an engine that is not there; there "
                        f"are: {', '.join(self.engines) or 'none'}"
                    )
        return self

    @model_validator(mode="after")
    def _refuse_loose_ends(self) -> "Settings":
        for name in self.prices.engines:
            if name not in self.engines:
                raise ValueError(
                    f"prices.engines.{name} is the price of an engine that is not there; there "
                    f"are: {', '.join(self.engines) or 'none'}"
                )
        names = [*self.models, *(a for model in self.models.values() for a in model.aliases)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the model name '{name}' is given twice under [models]")
        if self.default_model not in names:
            raise ValueError(f"default_model is '{self.default_model}', but no model has that name")
        keyless = not self.auth.keys and not self.ledger.path  # a ledger may hold keys
        if keyless and not is_loopback(self.server.host):
            raise ValueError(
                f"server.host is '{self.server.host}', which others can reach, but [auth.keys] is "
                "empty; add a key or bind to 127.0.0.1"
            )
        if self.ledger.path and self.ledger.lease_s <= self.server.deadline_s:
            raise ValueError(
                f"ledger.lease_s is {self.ledger.lease_s:g}, but a request may take "
                f"{self.server.deadline_s:g} s (server.deadline_s); make it longer"
            )
        return self
