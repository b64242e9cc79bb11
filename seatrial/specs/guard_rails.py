"""The guard rails of an environment, and which of them a spec breaks by itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.endpoint import InstanceTypes, LicenceId, Percentiles, TagKey, TrialMode, Usd
from seatrial.specs.scaling import Copies
from seatrial_base import bounds
from seatrial_base.catalog.engine_versions import EngineName
from seatrial_base.frozen_model import FrozenModel

ModelPattern = Annotated[str, StringConstraints(pattern=shapes.MODEL_PATTERN, max_length=1024)]


class RequiredSlo(FrozenModel):
    """Objectives that each endpoint must have, at least as strict."""

    ttft_ms: Percentiles = Field(Percentiles(), description="Time to first token, queueing included.")
    tpot_ms: Percentiles = Field(Percentiles(), description="Time per output token after the first.")
    e2e_latency_ms: Percentiles = Field(Percentiles(), description="Request sent to last token.")
    error_rate: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="Largest share of requests that may fail."
    )
    output_tok_s: Annotated[float, Field(gt=0, le=bounds.MOST_TOK_S)] | None = Field(
        None, description="Lowest output throughput, in tokens per second."
    )


class GuardRails(FrozenModel):
    """What every endpoint of this environment must keep to."""

    instance_types: InstanceTypes | None = Field(None, description="Allowed instance types.")
    usd_per_hour: Usd | None = Field(None, description="Highest cost of one endpoint, in US dollars per hour.")
    max_copies: Copies | None = Field(None, description="Most copies of one endpoint.")
    models: Annotated[tuple[ModelPattern, ...], Field(min_length=1)] | None = Field(
        None,
        description="Allowed models: patterns of hub ids, S3 URIs and JumpStart ids, in which `*` stands for any text, "
        "`?` for one character. Upper and lower case differ.",
    )
    licences: Annotated[tuple[LicenceId, ...], Field(min_length=1)] | None = Field(
        None, description="Allowed licences, by their ids on the hub; a model without a known licence is refused."
    )
    engines: Annotated[tuple[EngineName, ...], Field(min_length=1)] | None = Field(
        None, description="Allowed serving containers."
    )
    usd_per_million_output_tokens: Usd | None = Field(
        None, description="Highest cost, in US dollars per million output tokens at the planned load."
    )
    blended_usd_per_million_tokens: Usd | None = Field(
        None, description="Highest blended cost, in US dollars per million tokens: 3 input tokens to 1 output token."
    )
    slo: RequiredSlo = RequiredSlo()
    trial_mode: TrialMode | None = Field(None, description="Trial mode that each endpoint must have.")
    required_tags: tuple[TagKey, ...] = Field(
        (), description="Tags that each endpoint must have, from its own `tags` or the environment's."
    )
