"""The environment spec: where an endpoint is deployed, and the guard rails there."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.endpoint import MOST_TAGS, SchemaVersion, Tags
from seatrial.specs.guardrails.limits import NO_RAILS, GuardRails
from seatrial.specs.hosting import EndpointName
from seatrial.specs.relations import broken_rules, is_other, is_set, needs
from seatrial.specs.scaling import LONGEST_WINDOW_MINUTES, rate_minutes, schedule_error
from seatrial_base.catalog.instances import Purchase
from seatrial_base.catalog.resource_types import INFERENCE_COMPONENT, availability
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel, model_field

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import date

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.relations import Fields, Rule
    from seatrial.specs.yaml_source import Document, FieldPath, Yaml


DAYS_PER_YEAR = 366
"""Every year counts as a leap year: Object Lock counts days, and no record goes before its time."""
EMBEDDED_ACCOUNT = "000000000000"
"""The account of the embedded AWS; it is no one's on the real one."""

Account = Annotated[str, StringConstraints(pattern=shapes.ACCOUNT)]
Region = Annotated[str, StringConstraints(pattern=shapes.REGION)]
EnvironmentName = Annotated[str, StringConstraints(pattern=shapes.ENVIRONMENT_NAME, max_length=16)]
SubnetId = Annotated[str, StringConstraints(pattern=shapes.SUBNET_ID)]
SecurityGroupId = Annotated[str, StringConstraints(pattern=shapes.SECURITY_GROUP_ID)]
Owner = Annotated[str, StringConstraints(pattern=shapes.OWNER, max_length=128)]
DEFAULT_WINDOW_MINUTES = 240
Email = Annotated[str, StringConstraints(pattern=shapes.EMAIL, max_length=50)]
ScheduleExpression = Annotated[str, StringConstraints(max_length=256)]
PublicKey = Annotated[str, StringConstraints(pattern=shapes.PUBLIC_KEY)]
KmsKeyArn = Annotated[str, StringConstraints(pattern=shapes.KMS_KEY_ARN)]
PolicyArn = Annotated[str, StringConstraints(pattern=shapes.POLICY_ARN)]
RolePath = Annotated[str, StringConstraints(pattern=shapes.ROLE_PATH, max_length=512)]
TopicArn = Annotated[str, StringConstraints(pattern=shapes.SNS_TOPIC_ARN)]
SecretName = Annotated[str, StringConstraints(pattern=shapes.SECRET_NAME)]
Team = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, min_length=1, max_length=256)]
Uuid = Annotated[str, StringConstraints(pattern=shapes.UUID, to_lower=True)]


PricesFile = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00].*\.ya?ml$", max_length=512)]


class Network(FrozenModel):
    """The VPC of the containers; with no subnets they run in the service's own network."""

    subnet_ids: tuple[SubnetId, ...] = Field((), description="Subnets of the containers.")
    security_group_ids: tuple[SecurityGroupId, ...] = Field((), description="Security groups of the containers.")
    isolated: bool = Field(
        default=False, description="Network isolation: no outbound connections, so the weights must be in S3."
    )


class SlackChannel(FrozenModel):
    """A channel of Slack, by AWS Chatbot: its console has to know the workspace first."""

    workspace_id: Annotated[str, StringConstraints(pattern=shapes.SLACK_WORKSPACE)] = Field(
        description="ID of the workspace, as in T0123ABCD."
    )
    channel_id: Annotated[str, StringConstraints(pattern=shapes.SLACK_CHANNEL)] = Field(
        description="ID of the channel, as in C0123ABCD."
    )


class MicrosoftTeamsChannel(FrozenModel):
    """A channel of Microsoft Teams, by AWS Chatbot: its console has to know the team first."""

    tenant_id: Uuid = Field(description="ID of the tenant.")
    team_id: Uuid = Field(description="ID of the team.")
    channel_id: Annotated[str, StringConstraints(pattern=shapes.TEAMS_CHANNEL, max_length=256)] = Field(
        description="ID of the channel as its link has it, percent-encoded."
    )


class Notify(FrozenModel):
    """Whom alarms notify, and how; with neither `teams` nor `endpoints`, of every endpoint."""

    # An empty list would be every endpoint's, which whoever removed its last name did not mean.
    teams: Annotated[tuple[Team, ...], Field(min_length=1)] = Field(
        (), description="Of the endpoints with these values of the tag `team`."
    )
    endpoints: Annotated[tuple[EndpointName, ...], Field(min_length=1)] = Field(
        (), description="Of the endpoints with these names."
    )
    topic_arn: TopicArn | None = Field(None, description="Another SNS topic in the same region.")
    emails: tuple[Email, ...] = Field((), description="E-mail addresses; AWS asks each to confirm.")
    slack: SlackChannel | None = Field(None, description="A channel of Slack.")
    microsoft_teams: MicrosoftTeamsChannel | None = Field(None, description="A channel of Microsoft Teams.")
    https_secret: SecretName | None = Field(
        None,
        description="Secret of AWS Secrets Manager whose text is an HTTPS address, as the one of a PagerDuty "
        "integration, which holds its key.",
    )


class Alarms(FrozenModel):
    """What is notified of alarms, and of their end."""

    topic_arn: TopicArn | None = Field(
        None,
        description="SNS topic in the same region. Default: the topic `seatrial-ENVIRONMENT-alarms`, which is made.",
    )
    notify: tuple[Notify, ...] = Field(
        (),
        description="Who else is notified: each team and endpoint that is named has a topic of its own, beside that of "
        "the environment.",
    )
    runbook_url: Annotated[str, StringConstraints(pattern=shapes.RUNBOOK_URL, max_length=256)] | None = Field(
        None,
        description="Address of your runbook, which descriptions of alarms name, with the alarm's section behind `#`. "
        "Default: the command that tells the cause.",
    )


class Observability(FrozenModel):
    """Dashboards and the budget of an environment."""

    dashboards: Literal["none", "endpoint", "environment", "both"] = Field(
        "none", description="CloudWatch dashboards: one for each endpoint, one of all of them, or both."
    )
    budget_usd_per_month: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        None,
        description="Monthly budget of what carries the tag `seatrial:environment`, in USD. The alarm topic is told at "
        "80 % and 100 %, and when the forecast exceeds it.",
    )
    budget_emails: Annotated[tuple[Email, ...], Field(max_length=10)] = Field(
        (), description="E-mail addresses that are notified too."
    )
    team_budgets_usd_per_month: dict[Team, Annotated[float, Field(gt=0, le=1e9)]] = Field(
        {},
        description="Monthly budgets by team, in USD: of what carries `seatrial:environment` and the tag `team`. The "
        "team's topic is told, that of the environment where `alarms.notify` names no such team.",
    )

    @property
    def has_endpoint_dashboards(self) -> bool:
        """Whether each endpoint has a dashboard."""
        return self.dashboards in {"endpoint", "both"}

    @property
    def has_environment_dashboard(self) -> bool:
        """Whether the environment has one."""
        return self.dashboards in {"environment", "both"}


class PromotionSpec(FrozenModel):
    """The environment before this one, and what a plan of it must have shown before it is deployed here."""

    source: EnvironmentName | None = Field(
        None, description="Environment before this one: its tried plans are promoted to this one."
    )
    required: bool = Field(
        default=False, description="Refuse a plan that was not promoted from `source` after a passed trial."
    )
    public_keys: tuple[PublicKey, ...] = Field(
        (),
        description="Public keys of the trial service of `source`, which signs results, as `seatrial keys` writes "
        "them: the new one, and the one before while locks rest on it. With keys, and where `required`, a promoted "
        "plan is taken only with a signed result that verifies.",
    )
    max_age_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        30, description="Age in days of the oldest trial whose plan may be promoted."
    )
    accept_simulated: bool = Field(
        default=False,
        description="Take a trial on simulated hardware as proof where one is needed, which shows the pipeline and no "
        "speed. The embedded AWS takes it without.",
    )
    approval: Literal["manual", "none"] = Field(
        "none", description="`manual`: a pipeline asks a person before it deploys to this environment."
    )


class Security(FrozenModel):
    """What the account asks of every IAM role that is created."""

    permissions_boundary: PolicyArn | None = Field(
        None, description="ARN of the managed policy that bounds the rights of every role. Default: none."
    )
    role_path: RolePath | None = Field(
        None, description="Path of the roles, with a slash at both ends, as `/seatrial/`. Default: `/`."
    )


LogDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
"""Days that CloudWatch Logs can keep a log group: RetentionInDays of AWS::Logs::LogGroup."""


class Retention(FrozenModel):
    """How long results and logs are kept."""

    results_days: Annotated[int, Field(ge=1, le=36500)] | None = Field(
        None,
        description="Days after which the history of trials is deleted; the latest, passed and released results stay. "
        "Default: 365.",
    )
    log_days: LogDays | None = Field(None, description="Days after which log events are deleted. Default: 30.")


class Audit(FrozenModel):
    """The record of what served, which outlasts endpoints and stacks."""

    mode: Literal["governance", "compliance"] = Field(
        description="Mode of S3 Object Lock: `governance` lets who may bypass it delete a record, `compliance` nobody, "
        "the account's root included, before its time."
    )
    years: Annotated[int, Field(ge=1, le=99)] = Field(
        description="Years for which each record is locked and the history of trials is kept."
    )


class EnvironmentSpec(FrozenModel):
    """One environment: account, region, guard rails, promotion, network, keys."""

    schema_version: SchemaVersion = model_field(
        1, "Version of the fields of this file; `seatrial migrate` brings an older file to it.", planned=False
    )
    name: EnvironmentName = Field(description="Name of the environment in specs and commands.")
    account: Account | None = model_field(
        None, "AWS account; left out, that of the caller's credentials.", planned=False
    )
    region: Region = Field(description="AWS region with inference components.")
    owner: Owner | None = model_field(
        None, "Who set the guard rails; each message of a guard rail tells it.", planned=False
    )
    guard_rails: GuardRails = GuardRails()
    promotion: PromotionSpec = model_field(PromotionSpec(), planned=False)
    retention: Retention = model_field(Retention(), planned=False)
    audit: Audit | None = model_field(
        None, "Record each change of what serves, with its trial, for auditors. Default: no record.", planned=False
    )
    trial_schedule: ScheduleExpression | None = model_field(
        None,
        "When each endpoint is tried as a candidate, as an EventBridge `cron(…)` in UTC or `rate(…)`. "
        "Default: only when it is deployed.",
        planned=False,
    )
    trial_window_minutes: int = model_field(
        DEFAULT_WINDOW_MINUTES,
        "Minutes after that in which the trials of the endpoints start, each at a time of its own; 0: all at once.",
        ge=0,
        le=LONGEST_WINDOW_MINUTES,
        planned=False,
    )
    network: Network = model_field(Network(), planned=False)
    alarms: Alarms = model_field(Alarms(), planned=False)
    observability: Observability = model_field(Observability(), planned=False)
    kms_key_arn: KmsKeyArn | None = model_field(
        None, "KMS key of volumes and results. Default: a new key.", planned=False
    )
    security: Security = model_field(Security(), planned=False)
    outputs: Literal["cloudformation", "both"] = model_field(
        "cloudformation",
        "Where names and results of an endpoint are written: outputs of its stack, or `both` these and SSM "
        "parameters `/seatrial/ENVIRONMENT/NAME/OUTPUT`.",
        planned=False,
    )
    removal: Literal["destroy", "retain"] = model_field("retain", "Action on results at deletion.", planned=False)
    tags: Tags = model_field(
        {}, "Tags of every resource; keys that begin with `aws:` or `seatrial:` are reserved.", planned=False
    )

    vending: bool = model_field(
        default=False,
        description="Products of `products/` may be offered here: an AWS Service Catalog portfolio.",
        planned=False,
    )
    prices: PricesFile | None = model_field(
        None, "Prices file, relative to this file. Default: `prices.yaml` next to it, if there is one.", planned=False
    )

    purchase: Purchase = model_field(
        "on_demand",
        "How you buy instance hours: the plan counts the price that the prices file has for it, and guard "
        "rails count list prices. A Savings Plan is paid every hour of its term; a capacity block is paid upfront.",
        since="0.2",
    )

    @property
    def is_embedded(self) -> bool:
        """Whether this is the embedded AWS of the laptop."""
        return self.account == EMBEDDED_ACCOUNT


_PARTITIONS = {"cn": "aws-cn", "us-gov": "aws-us-gov"}


def partition_of(region: str) -> str:
    """Return the AWS partition of a Region, as ARNs begin with it."""
    return next((name for start, name in _PARTITIONS.items() if region.startswith(f"{start}-")), "aws")


MOST_PORTFOLIO_TAGS = 20
"""Of a portfolio and of a product (AWS Service Catalog API reference, CreatePortfolio and CreateProduct)."""
Audience: TypeAlias = tuple[Literal["all", "team", "endpoint"], str]
"""Whose alarms notify: those of every endpoint, of a team's, of one."""
EVERYONE: Audience = ("all", "")
MOST_ACTIONS = 5
"""Actions of an alarm in one state (CloudWatch API reference, PutMetricAlarm)."""
_ARN_COLONS = 5  # of arn:aws:sns:REGION:ACCOUNT:NAME, at least


def _elsewhere(document: Document) -> Iterator[Finding]:
    """Yield topics of another region than the alarms', and secrets of another region or account than the stack's."""
    region, account = document.data.get("region"), document.data.get("account")
    listed = document.value("alarms", "notify")
    entries: list[tuple[FieldPath, Yaml]] = [(("alarms",), document.data.get("alarms"))]
    entries += [(("alarms", "notify", i), each) for i, each in enumerate(listed if isinstance(listed, list) else ())]
    for (path, entry), (name, what) in product(entries, (("topic_arn", "topic"), ("https_secret", "secret"))):
        arn = entry.get(name) if isinstance(entry, dict) else None
        if not isinstance(arn, str) or arn.count(":") < _ARN_COLONS:
            continue
        there = arn.split(":")
        if isinstance(region, str) and there[3] != region:
            message = f"the {what} is in {there[3]}, the environment in {region}"
            yield document.problem((*path, name), "SEA108", message, f"give a {what} in {region}")
        if what == "secret" and isinstance(account, str) and there[4] != account:
            message = f"the secret is in account {there[4]}, the environment in {account}"
            yield document.problem((*path, name), "SEA108", message, f"give a secret in {account}")


def audiences(entry: Notify) -> tuple[Audience, ...]:
    """Return whose alarms an entry is of."""
    teams: list[Audience] = [("team", each) for each in entry.teams]
    return (*dict.fromkeys((*teams, *(("endpoint", each) for each in entry.endpoints))),) or (EVERYONE,)


def named_audiences(alarms: Alarms) -> tuple[Audience, ...]:
    """Return the teams and endpoints that entries name, each of which has a topic of its own, in the order written."""
    named = dict.fromkeys(audience for entry in alarms.notify for audience in audiences(entry))
    return tuple(each for each in named if each != EVERYONE)


def alarm_audiences(alarms: Alarms, *, team: str, endpoint: str) -> tuple[Audience, ...]:
    """Return what is notified of an endpoint's alarms: the environment, its team and itself where entries name them.

    Args:
        team: Value of its tag `team`; empty without one.
        endpoint: Its name in the spec.
    """
    own: tuple[Audience, ...] = (("team", team), ("endpoint", endpoint))
    return (EVERYONE, *(each for each in own if each in named_audiences(alarms)))


def given_topics(alarms: Alarms, audience: Audience) -> tuple[str, ...]:
    """Return the ARNs of the topics of others that are notified of what an audience is."""
    return tuple(each.topic_arn for each in alarms.notify if each.topic_arn and audience in audiences(each))


def channels(entry: Notify) -> dict[FieldPath, object]:
    """Return how an entry notifies, by field."""
    single = ("topic_arn", "slack", "microsoft_teams", "https_secret")
    emails: dict[FieldPath, object] = {("emails", index): each for index, each in enumerate(entry.emails)}
    return emails | {(name,): value for name in single if (value := getattr(entry, name)) is not None}


def _addressee(name: FieldPath, channel: object) -> object:
    """Return whom a channel reaches: an address has no capitals, a secret's ARN six characters behind its name."""
    if name[0] == "emails":
        return f"{channel}".casefold()
    is_arn = name[0] == "https_secret" and f"{channel}".startswith("arn:")
    return re.sub(r"^.*:|-[A-Za-z0-9]{6}$", "", f"{channel}") if is_arn else channel


def _notify(fields: Fields) -> Iterator[Finding]:
    """Yield entries that notify nobody or twice, and channels where Chatbot is not."""
    document, region = fields.document, str(fields.written("region"))
    alarms: Alarms = fields.value("alarms")
    others: dict[tuple[Audience, object], str] = {(EVERYONE, alarms.topic_arn): "alarms.topic_arn"}
    for index, entry in enumerate(alarms.notify):
        path: FieldPath = ("alarms", "notify", index)
        reached = channels(entry)
        if not reached:
            hint = "give emails, slack, microsoft_teams, https_secret or topic_arn"
            yield document.problem(path, "SEA660", "the entry notifies nobody", hint)
        for name, channel in reached.items():
            if name[0] in {"slack", "microsoft_teams"} and region.startswith(("cn-", "us-gov-", "us-iso")):
                hint = "give emails, https_secret or topic_arn"
                yield document.problem((*path, *name), "SEA661", f"AWS Chatbot is not in {region}", hint)
            here, addressee = document.field((*path, *name)), _addressee(name, channel)
            for audience in audiences(entry):
                if (other := others.setdefault((audience, addressee), here)) != here:
                    who = " ".join(audience).strip() if audience != EVERYONE else "every endpoint"
                    yield document.problem((*path, *name), "SEA662", f"{other} has it for {who} too", "leave one out")


def _topics(fields: Fields) -> Iterator[Finding]:
    """Yield that an alarm would notify more topics than it has actions."""
    alarms: Alarms = fields.value("alarms")
    named = named_audiences(alarms)
    teams, endpoints = (["", *(name for kind, name in named if kind == wanted)] for wanted in ("team", "endpoint"))
    for team, endpoint in product(teams, endpoints):
        notified = alarm_audiences(alarms, team=team, endpoint=endpoint)
        given = {topic for each in notified for topic in given_topics(alarms, each)}
        # As `on_call_of` does: a topic that two entries give, or that is the environment's, is one action.
        if (count := len({alarms.topic_arn or EVERYONE, *notified[1:], *given})) > MOST_ACTIONS:
            who = f"an alarm of {endpoint or 'an endpoint'}{f' of team {team}' if team else ''}"
            message = f"{who} would notify {count} topics; CloudWatch takes {MOST_ACTIONS}"
            yield fields.document.problem(("alarms", "notify"), "SEA663", message, "leave out entries with topic_arn")
            return


def reserved_prefix(tag: str) -> str | None:
    """Return the prefix for which a tag's key is not for users, `aws:` or `seatrial:`; `None` where it is for them.

    Capitals make no other key: `aws:` is reserved in all of them, and rights that ask for `aws:ResourceTag/KEY` don't
    tell them apart (IAM user guide, condition keys).
    """
    key = tag.strip().casefold()
    return next((prefix for prefix in ("aws:", "seatrial:") if key.startswith(prefix)), None)


def tag_problems(document: Document) -> Iterator[Finding]:
    """Yield the tags that AWS and Seatrial keep for themselves, required ones included: no spec could set them."""
    tags, required = document.data.get("tags"), document.value("guard_rails", "required_tags")
    named: list[tuple[FieldPath, Yaml]] = [(("tags", key), key) for key in (tags if isinstance(tags, dict) else ())]
    listed = required if isinstance(required, list) else ()
    named += [(("guard_rails", "required_tags", index), key) for index, key in enumerate(listed)]
    for path, key in named:
        if isinstance(key, str) and (prefix := reserved_prefix(key)) is not None:
            who = "AWS" if prefix == "aws:" else "Seatrial"
            message = f"the tag key {key} begins with {prefix}, which {who} reserves"
            yield document.problem(path, "SEA107", message, "choose another tag key")


def _waivers(document: Document) -> Iterator[Finding]:
    """Yield waivers of what is no guard rail."""
    waivers = document.value("guard_rails", "waivers")
    known = sorted(GuardRails.model_fields.keys() - NO_RAILS)
    for index, waiver in enumerate(waivers if isinstance(waivers, list) else ()):
        rail = waiver.get("rail") if isinstance(waiver, dict) else None
        if isinstance(rail, str) and rail not in known:
            path: FieldPath = ("guard_rails", "waivers", index, "rail")
            yield document.problem(path, "SEA646", f"{rail} is no guard rail", f"one of {', '.join(known)}")


def unmatched_waivers(environment: EnvironmentSpec, document: Document, names: Iterable[str]) -> Iterator[Finding]:
    """Yield waivers for whose pattern there is neither an endpoint nor a product among some names."""
    names = tuple(names)
    for index, waiver in enumerate(environment.guard_rails.waivers):
        if not any(fnmatchcase(name, waiver.endpoint) for name in names):
            message = f"the waiver of {waiver.rail} is for {waiver.endpoint}, and no endpoint or product has that name"
            path: FieldPath = ("guard_rails", "waivers", index, "endpoint")
            yield document.problem(path, "SEA646", message, "correct the name, or remove the waiver")


def expired_waivers(environment: EnvironmentSpec, document: Document, today: date, name: str) -> Iterator[Finding]:
    """Yield waivers of an endpoint or product whose last day is over; `today` is in UTC."""
    for index, waiver in enumerate(environment.guard_rails.waivers):
        if waiver.expires < today and fnmatchcase(name, waiver.endpoint):
            message = (
                f"the waiver of {waiver.rail} for {name} ended on {waiver.expires} (approved by {waiver.approver})"
            )
            path: FieldPath = ("guard_rails", "waivers", index, "expires")
            mend = f"keep {name} to the guard rail and remove the waiver, or have it approved anew"
            yield document.problem(path, "SEA645", message, mend)


def tag_count_problems(endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document) -> Iterator[Finding]:
    """Yield tags of an endpoint that, with those of its environment, are more than AWS allows."""
    # A tag of both is one: the endpoint's value replaces the environment's.
    count = len({**environment.tags, **endpoint.tags})
    if count > MOST_TAGS:
        message = f"{count} tags with those of {environment.name}; AWS allows {MOST_TAGS} besides seatrial:environment"
        yield document.problem(("tags",), "SEA124", message, f"remove at least {count - MOST_TAGS}")


def _vending_tags(document: Document) -> Iterator[Finding]:
    """Yield tags of an environment that offers products, which its portfolio can't have."""
    tags, is_vending = document.data.get("tags"), document.data.get("vending")
    if is_vending is not True or not isinstance(tags, dict) or len(tags) <= MOST_PORTFOLIO_TAGS:
        return
    message = (
        f"{len(tags)} tags and vending: true; a portfolio of AWS Service Catalog has at most {MOST_PORTFOLIO_TAGS}"
    )
    hint = f"remove at least {len(tags) - MOST_PORTFOLIO_TAGS}, or set them in the endpoint of a product"
    yield document.problem(("tags",), "SEA142", message, hint)


def _audit(document: Document) -> Iterator[Finding]:
    """Yield what would delete the evidence of a record before the record."""
    audit = document.data.get("audit")
    years, days = document.value("audit", "years"), document.value("retention", "results_days")
    if not isinstance(audit, dict) or not isinstance(years, int):
        return
    if isinstance(days, int) and days < years * DAYS_PER_YEAR:
        path = ("retention", "results_days")
        message = f"{days} days; audit keeps records for {years} years, which rest on the results of trials"
        yield document.problem(path, "SEA586", message, "leave it out: the results are kept as long as the records")
    if document.data.get("removal") == "destroy":
        message = "destroy deletes the results with the stack, and audit's records rest on them"
        yield document.problem(("removal",), "SEA586", message, "set removal: retain, or leave audit out")


def _schedule(document: Document) -> Iterator[Finding]:
    """Yield a schedule that EventBridge would refuse, and a rate that is due again before its window ends."""
    expression, window = document.data.get("trial_schedule"), document.data.get("trial_window_minutes")
    if not isinstance(expression, str):
        return
    if (wrong := schedule_error(expression)) is not None:
        hint = "as in cron(0 6 ? * MON *) or rate(7 days)"
        yield document.problem(("trial_schedule",), "SEA123", f"{expression} {wrong}", hint)
        return
    minutes = window if isinstance(window, int) else DEFAULT_WINDOW_MINUTES
    if (rate := rate_minutes(expression)) is not None and rate < minutes:
        message = f"{expression} is due again before its window of {minutes} minutes ends"
        yield document.problem(("trial_schedule",), "SEA123", message, f"set trial_window_minutes to at most {rate}")


def unknown_names(
    environment: EnvironmentSpec, document: Document, *, teams: Collection[str] | None, endpoints: Collection[str]
) -> Iterator[Finding]:
    """Yield teams and endpoints that `alarms.notify` and budgets name and that are not there: nobody is notified.

    Args:
        teams: Every team of the environment; `None` where a product is offered to any.
        endpoints: The name of every endpoint's spec.
    """
    listed = [
        (("alarms", "notify", index, kind, place), name, known)
        for index, entry in enumerate(environment.alarms.notify)
        for kind, names, known in (("teams", entry.teams, teams), ("endpoints", entry.endpoints, endpoints))
        for place, name in enumerate(names)
    ]
    budgets = environment.observability.team_budgets_usd_per_month
    named: list[tuple[FieldPath, str, Collection[str] | None]] = [*listed]
    named += [(("observability", "team_budgets_usd_per_month", team), team, teams) for team in budgets]
    for path, name, known in named:
        if known is not None and name not in known:
            what = "endpoint" if "endpoints" in path else "team"
            hint = f"known: {', '.join(sorted(known)) or 'none'}"
            yield document.problem(path, "SEA664", f"{environment.name} has no {what} {name}", hint)


def region_problems(environment: EnvironmentSpec, document: Document) -> Iterator[Finding]:
    """Yield a region where inference components can't be deployed."""
    known = availability()
    if environment.region in known.regions:
        return
    message = f"{environment.region} has no {INFERENCE_COMPONENT} ({known.source.partition(',')[0]}, {known.date})"
    hint = f"known to have it: {', '.join(known.regions)}"
    yield Finding("SEA107", Place.at(document.where(("region",)), "region"), message, hint)


RULES: tuple[Rule, ...] = (
    # The service takes subnets and security groups together.
    *(
        needs(
            "SEA108",
            is_set(f"network.{name}"),
            is_set(f"network.{other}"),
            message=f"{name} without {other}",
            hint="give both, or leave both out",
        )
        for name, other in (("subnet_ids", "security_group_ids"), ("security_group_ids", "subnet_ids"))
    ),
    lambda fields: tag_problems(fields.document),
    lambda fields: _vending_tags(fields.document),
    lambda fields: _elsewhere(fields.document),
    _notify,
    _topics,
    needs(
        "SEA108",
        is_set("observability.budget_emails"),
        "observability.budget_usd_per_month",
        message="budget_emails without budget_usd_per_month",
        hint="set budget_usd_per_month, or leave the addresses out",
    ),
    lambda fields: _audit(fields.document),
    lambda fields: _waivers(fields.document),
    lambda fields: _schedule(fields.document),
    needs(
        "SEA108",
        is_other("promotion.required", value=False),
        "promotion.source",
        message="required without source",
        hint="name the environment before this one",
    ),
)
"""What contradicts itself in an environment."""


def environment_problems(document: Document) -> Iterator[Finding]:
    """Yield every contradiction of an environment's document."""
    yield from broken_rules(RULES, document, EnvironmentSpec)
