"""The guard rails of an environment, as its file states them."""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.endpoint import (
    InstanceTypes,
    LicenceId,
    OptionName,
    Percentiles,
    Positive,
    TagKey,
    TagPatterns,
    TrialMode,
    TrialUpdate,
    Usd,
)
from seatrial.specs.scaling import Copies
from seatrial_base import bounds
from seatrial_base.catalog.engine_versions import EngineName
from seatrial_base.frozen_model import FrozenModel, model_field

ModelPattern = Annotated[str, StringConstraints(pattern=shapes.MODEL_PATTERN, max_length=1024)]
ImagePattern = Annotated[str, StringConstraints(pattern=shapes.IMAGE_PATTERN, max_length=1024)]
SecretPattern = Annotated[str, StringConstraints(pattern=shapes.SECRET_PATTERN, max_length=1024)]


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


class RequiredTrial(FrozenModel):
    """What each trial must be; the defaults hold with `trial_mode: rollback`, else nothing is required."""

    updates: Annotated[tuple[TrialUpdate, ...], Field(min_length=1)] | None = Field(
        None, description="Allowed values of `trial.update`. Default: `candidate` and `in_place`."
    )
    confidence: Annotated[float, Field(ge=0, le=0.999)] | None = Field(
        None, description="Lowest `trial.confidence`. Default: 0.9."
    )
    on_inconclusive: Literal["fail", "pass"] | None = Field(
        None, description="`fail` requires it of `trial.on_inconclusive`, `pass` allows both. Default: `fail`."
    )
    requests_per_concurrency: Positive | None = Field(
        None, description="Fewest `trial.requests_per_concurrency`. Default: 3."
    )


OF_A_ROLLBACK = RequiredTrial(
    updates=("candidate", "in_place"), confidence=0.9, on_inconclusive="fail", requests_per_concurrency=3
)
"""What a trial must be that shall roll back: another one may pass whatever is deployed."""


def _day(value: object) -> object:
    """Return the day that a text names; other text stays, and is refused: a number would be read as a Unix time."""
    try:
        day = date.fromisoformat(f"{value}")
    except ValueError:
        return value
    return day if value == day.isoformat() else value


Day = Annotated[date, BeforeValidator(_day)]


class Waiver(FrozenModel):
    """A guard rail that does not hold for some endpoints for some time."""

    rail: OptionName = Field(description="The guard rail, by its name below `guard_rails`.")
    endpoint: Annotated[str, StringConstraints(pattern=shapes.NAME_PATTERN, max_length=64)] = Field(
        description="Pattern of the names of endpoints, or of products, in which `*` stands for any text."
    )
    reason: Annotated[str, StringConstraints(pattern=shapes.OWNER, max_length=256)] = Field(
        description="Why, on one line."
    )
    approver: Annotated[str, StringConstraints(pattern=shapes.OWNER, max_length=128)] = Field(
        description="Who answers for it: a person or a team."
    )
    expires: Day = Field(description='Last day on which it holds, in UTC, in quotes, as `"2027-03-31"`.')


class Enforcement(FrozenModel):
    """The hook of AWS CloudFormation that judges what anybody deploys."""

    mode: Literal["warn", "fail"] = Field(
        "warn", description="`warn` lets a resource that breaks a guard rail be made and tells it, `fail` stops it."
    )
    scope: Literal["environment", "account"] = Field(
        "environment",
        description="What is judged: resources with the environment's tag or name, or `account`: all in its region.",
    )


class GuardRails(FrozenModel):
    """What every endpoint of this environment must keep to."""

    instance_types: InstanceTypes | None = Field(None, description="Allowed instance types.")
    usd_per_hour: Usd | None = Field(
        None,
        description="Highest cost of one endpoint, in US dollars per hour: list prices of the most instances, all "
        "models, variants and pools and an update's instances included. An optimization job may not cost more per hour "
        "either.",
    )
    job_usd: Usd | None = model_field(
        None,
        "Highest cost of the optimization jobs of one endpoint, those of all its models and variants together, in US "
        "dollars: `max_hours` at the list price of the instance type that the artifacts are made for.",
        planned=False,
    )
    max_copies: Copies | None = Field(
        None, description="Most copies of one endpoint: of all its models, variants and its shadow together."
    )
    models: Annotated[tuple[ModelPattern, ...], Field(min_length=1)] | None = model_field(
        None,
        "Allowed models: patterns of hub ids, S3 URIs, JumpStart ids and ARNs, in which `*` stands for any "
        "text, `?` for one character. Upper and lower case differ. Drafts, adapters and what an option loads count. A "
        "revision that may be a pull request of the hub is allowed only by a pattern with `@`, as in "
        "`org/model@refs/pr/7`.",
        planned=False,
    )
    licences: Annotated[tuple[LicenceId, ...], Field(min_length=1)] | None = model_field(
        None,
        "Allowed licences, by their ids on the hub; a model without a known licence is refused, and a revision that "
        "may be a pull request.",
        planned=False,
    )
    engines: Annotated[tuple[EngineName, ...], Field(min_length=1)] | None = model_field(
        None, "Allowed serving containers.", since="0.1"
    )
    images: Annotated[tuple[ImagePattern, ...], Field(min_length=1)] | None = model_field(
        None,
        "Allowed images besides those that AWS publishes for the allowed engines: patterns of their URIs. "
        "Default: those of `account`; none where `models`, `licences` or `engines` is set.",
        planned=False,
    )
    code: Literal["allowed", "refused"] | None = model_field(
        None,
        "Whether `serving.code` may be given. Default: `refused` where `models` or `licences` is set, as "
        "code loads what it likes.",
        planned=False,
    )
    revisions: Literal["any", "pinned"] = model_field(
        "any",
        "`pinned`: each repository of the hub that a container loads needs a revision that is a whole commit, since a "
        "branch or a tag moves.",
        planned=False,
    )
    remote_code: Literal["allowed", "pinned", "refused"] = model_field(
        "allowed",
        "Whether `model.trust_remote_code` may be on; `pinned`: only where every revision is a whole commit.",
        planned=False,
    )
    router: Literal["allowed", "refused"] = model_field(
        "allowed", "Whether `hosting.router` may be on: a function with a public address.", planned=False
    )
    output_targets: Annotated[tuple[ModelPattern, ...], Field(min_length=1)] | None = model_field(
        None,
        "Allowed places of what endpoints write: patterns of the S3 URIs of captures, asynchronous answers and core "
        "dumps, and of the ARNs of topics that are notified of answers.",
        planned=False,
    )
    ssm_access: Literal["allowed", "refused"] = model_field(
        "refused", "Whether `hosting.ssm_access` may be on: a shell in a container reads prompts.", planned=False
    )
    extra: tuple[OptionName, ...] = model_field(
        (),
        "Options of `serving.overrides.extra` that are allowed besides `models` and `licences` though they load "
        "something, or may.",
        planned=False,
    )
    hub_token_secrets: Annotated[tuple[SecretPattern, ...], Field(min_length=1)] | None = model_field(
        None, "Allowed `model.hub_token_secret`: patterns of names, or of ARNs where one is given.", planned=False
    )
    usd_per_million_output_tokens: Usd | None = model_field(
        None, "Highest cost, in US dollars per million output tokens at the planned load, at list prices.", since="0.1"
    )
    blended_usd_per_million_tokens: Usd | None = model_field(
        None,
        "Highest blended cost, in US dollars per million tokens, at list prices: 3 input tokens to 1 output token.",
        since="0.1",
    )
    slo: RequiredSlo = model_field(RequiredSlo(), planned=False)
    trial_mode: TrialMode | None = model_field(None, "Trial mode that each endpoint must have.", planned=False)
    trial: RequiredTrial = model_field(RequiredTrial(), planned=False)
    required_tags: tuple[TagKey, ...] = model_field(
        (),
        "Tags that each endpoint must have, from its own `tags` or the environment's, with a letter or a digit in "
        "their values.",
        planned=False,
    )
    tag_values: dict[TagKey, TagPatterns] = model_field(
        {},
        "Allowed values of tags by key: patterns, in which `*` stands for any text, `?` for one character. They hold "
        "for an endpoint that has the tag.",
        planned=False,
    )
    enforcement: Enforcement | None = model_field(
        None,
        "Judge deployments in the account too, by a Guard hook of AWS CloudFormation in the stack of the environment's "
        "trials. Default: no hook.",
        planned=False,
    )
    waivers: tuple[Waiver, ...] = model_field(
        (),
        "Guard rails that do not hold for some endpoints until a day. Commands refuse an endpoint after it; synthesis "
        "has no clock, and takes them as they are written.",
        planned=False,
    )

    @property
    def stated(self) -> frozenset[str]:
        """The guard rails that are set otherwise than by default."""
        changed = (name for name in GuardRails.model_fields if getattr(self, name) != getattr(_NONE_STATED, name))
        return frozenset(changed) - {"enforcement", "waivers"}

    def waived(self, endpoint: str) -> tuple[Waiver, ...]:
        """Return the waivers of an endpoint, whatever the day."""
        return tuple(each for each in self.waivers if fnmatchcase(endpoint, each.endpoint))

    def for_endpoint(self, endpoint: str) -> GuardRails:
        """Return the guard rails that hold for an endpoint: those that are waived have their loosest values."""
        rails = {each.rail for each in self.waived(endpoint)} & GuardRails.model_fields.keys()
        if not rails:
            return self
        return self.model_copy(update={name: LOOSEST.get(name, getattr(_NONE_STATED, name)) for name in rails})

    @property
    def required_trial(self) -> RequiredTrial:
        """What each trial must be, the defaults of `trial_mode: rollback` included."""
        if self.trial_mode != "rollback":
            return self.trial
        return RequiredTrial.model_validate({**dict(OF_A_ROLLBACK), **self.trial.model_dump(exclude_none=True)})

    @property
    def judges_what_is_loaded(self) -> bool:
        """Whether something must be known of what containers run and load, so that an unknown image is refused."""
        return any(rail is not None for rail in (self.models, self.licences, self.engines, self.images))


_NONE_STATED = GuardRails()
NO_RAILS = frozenset({"enforcement", "extra", "waivers"})
"""The fields that say how guard rails hold, or allow more, and are none."""
LOOSEST = {
    "ssm_access": "allowed",
    "code": "allowed",
    "images": ("*",),
    "trial": RequiredTrial(
        updates=get_args(TrialUpdate), confidence=0, on_inconclusive="pass", requests_per_concurrency=1
    ),
}
"""What lets everything pass where a guard rail refuses by default."""
