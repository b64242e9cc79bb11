"""The sea trial, as it is asked for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seatrial.bounds import MOST_REQUESTS, MOST_TOKENS, MOST_USD
from seatrial.model import FrozenModel

LONGEST_BUDGET_MINUTES = 50  # CloudFormation waits an hour for a custom resource; the rest is for proof and clean-up
Level = Annotated[int, Field(ge=1, le=4096)]
Requests = Annotated[int, Field(ge=0, le=MOST_REQUESTS)]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Positive = Annotated[int, Field(gt=0, le=MOST_REQUESTS)]


class TrialSpec(FrozenModel):
    """The sea trial that every changed plan is put through."""

    mode: Literal["rollback", "report", "off"] = Field("rollback", description="What a failed trial does.")
    search: Literal["sweep", "adaptive"] = Field(
        "sweep",
        description="`sweep` measures every level; `adaptive` chooses the next level from what it measured, between "
        "the lowest and the highest.",
    )
    goal: Literal["knee", "max_concurrency", "max_goodput"] = Field(
        "knee", description="What an adaptive search looks for."
    )
    concurrency_levels: Annotated[tuple[Level, ...], Field(min_length=1)] | None = Field(
        None, description="Requests in flight per copy."
    )
    ramp_per_concurrency: Annotated[int, Field(ge=0, le=10)] = Field(
        1, description="First requests of a level, times its concurrency, that fill the batch and are not measured."
    )
    requests_per_concurrency: Positive = Field(
        3, description="Measured requests of a level at least, times its concurrency."
    )
    max_requests_per_concurrency: Positive | None = Field(
        None,
        description="Measured requests of a level at most, times its concurrency, where `precision` wants more; left "
        "out, twice `requests_per_concurrency`.",
    )
    precision: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.05, description="Half the 95 % interval of the median end-to-end latency, over it, that is narrow enough."
    )
    warmup_requests: Requests = Field(2, description="Requests before the first level.")
    shared_prefix_tokens: Tokens = Field(0, description="First tokens of a prompt that other prompts share.")
    prefix_groups: Positive = Field(1, description="Different shared beginnings.")
    budget_minutes: Annotated[float, Field(gt=0, le=LONGEST_BUDGET_MINUTES)] = Field(
        10, description="The trial ends after this."
    )
    budget_usd: Annotated[float, Field(gt=0, le=MOST_USD)] | None = Field(
        None, description="The trial ends before its copies cost more than this."
    )
    request_timeout_s: Annotated[float, Field(gt=0, le=480)] = Field(60, description="A request ends after this.")
    stall_timeout_s: Annotated[float, Field(gt=0, le=480)] | None = Field(
        None, description="A stream that is silent for so long has failed; none waits for `request_timeout_s`."
    )
    max_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        0, description="Repetitions of a request that was throttled or whose model was not ready; each is counted."
    )
    confidence: Annotated[float, Field(ge=0, le=0.999)] = Field(
        0.9,
        description="An objective is proven when its one-sided interval of this confidence says so; 0 takes the "
        "measured value as it is.",
    )
    on_inconclusive: Literal["fail", "pass"] = Field("fail", description="What a trial that proves nothing does.")
    on_regression: Literal["fail", "warn", "ignore"] = Field(
        "warn", description="What a result worse than the last release's does."
    )
    regression_tolerance: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="Share by which a result may be worse before it is a regression."
    )
