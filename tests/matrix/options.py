"""The options that meet: each has values, and each value is what it changes in the documents of a configuration.

A row of the matrix takes one value of every option. `REFUSED` are the pairs that can't meet, each with the rule that
says so: no row has one of them, and a configuration of each is refused by its rule, before synthesis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

Document = dict[str, object]

ACCOUNT = "123456789012"
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:on-call"
SLACK = {"workspace_id": "T0123ABCD", "channel_id": "C0123ABCD"}
PUBLIC_KEY = (  # of the private key 1
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q=="
)
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/every-role"
SUBNETS = {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
MANY_TAGS = {f"key-{number}": "value" for number in range(30)}
LORA = {"lora": {"max_adapters": 2, "max_rank": 16}}
SMALL, LARGE = "ml.g5.2xlarge", "ml.g6e.2xlarge"
COMMIT = "4f2b1e0c" * 5
RESERVABLE = "ml.p5.4xlarge"
RESERVATION = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/may"


@dataclass(frozen=True, slots=True)
class Change:
    """What a value changes: dotted fields of the endpoint's spec and of the environment's, and the form of delivery.

    Attributes:
        endpoint: Values by dotted field of the endpoint's spec.
        environment: Values by dotted field of the environment.
        is_product: The endpoint is vended as a product.
        is_repaired: It is deployed with the context `rollback_alarms=off`.
    """

    endpoint: Document = field(default_factory=dict)
    environment: Document = field(default_factory=dict)
    is_product: bool = False
    is_repaired: bool = False


NOTHING = Change()


def endpoint(**fields: object) -> Change:
    """Return a change of fields of the endpoint's spec, whose dots are written `__`."""
    return Change(endpoint={name.replace("__", "."): value for name, value in fields.items()})


def environment(**fields: object) -> Change:
    """Return a change of fields of the environment, whose dots are written `__`."""
    return Change(environment={name.replace("__", "."): value for name, value in fields.items()})


SINGLE = {"hosting__kind": "single_model", "trial__mode": "off"}

OPTIONS: Final[dict[str, dict[str, Change]]] = {
    "network": {
        "none": NOTHING,
        "subnets": environment(network=SUBNETS),
        "isolated": environment(network={**SUBNETS, "isolated": True}),
    },
    "key": {"none": NOTHING, "given": environment(kms_key_arn=KEY)},
    "roles": {
        "free": NOTHING,
        "bounded": environment(security={"permissions_boundary": BOUNDARY, "role_path": "/platform/"}),
    },
    "tags": {"none": NOTHING, "many": environment(tags=MANY_TAGS)},
    "retention": {
        "default": NOTHING,
        "short": environment(retention={"results_days": 7, "log_days": 1}, removal="destroy"),
    },
    "audit": {
        "none": NOTHING,
        "locked": environment(audit={"mode": "compliance", "years": 7}),
    },
    "schedule": {"none": NOTHING, "weekly": environment(trial_schedule="rate(7 days)")},
    "dashboards": {
        "none": NOTHING,
        "both": environment(observability__dashboards="both"),
    },
    "budget": {
        "none": NOTHING,
        "set": environment(
            observability__budget_usd_per_month=1000.0, observability__budget_emails=["team@example.com"]
        ),
    },
    "topic": {"own": NOTHING, "given": environment(alarms__topic_arn=TOPIC)},
    "on call": {
        "environment": NOTHING,
        "teams": environment(
            alarms__runbook_url="https://wiki.example.com/llm",
            alarms__notify=[
                {"teams": ["search"], "emails": ["search@example.com"], "slack": SLACK},
                {"endpoints": ["chat"], "topic_arn": f"{TOPIC}-2"},
            ],
            observability__team_budgets_usd_per_month={"search": 500.0},
        ),
    },
    "outputs": {"cloudformation": NOTHING, "both": environment(outputs="both")},
    "enforcement": {
        "none": NOTHING,
        "hook": environment(
            guard_rails__enforcement={"mode": "fail", "scope": "account"},
            guard_rails__licences=["mit"],
            guard_rails__waivers=[
                {"rail": "licences", "endpoint": "*", "reason": "r", "approver": "platform", "expires": "2030-01-31"}
            ],
        ),
    },
    "pins": {
        "none": NOTHING,
        "pinned": Change(
            endpoint={"model.revision": COMMIT},
            environment={"guard_rails.revisions": "pinned", "guard_rails.router": "refused"},
        ),
    },
    "promotion": {
        "none": NOTHING,
        "from dev": environment(promotion={"source": "dev", "max_age_days": 7, "public_keys": [PUBLIC_KEY]}),
    },
    "hosting": {
        "component": NOTHING,
        "single": endpoint(**SINGLE),
        "asynchronous": endpoint(**SINGLE, hosting__asynchronous={"output_s3_uri": "s3://results-of-ours/answers/"}),
        "captured": endpoint(**SINGLE, hosting__data_capture={"s3_uri": "s3://results-of-ours/captures/"}),
        "variants": endpoint(**SINGLE, hosting__variants=[{"name": "a"}, {"name": "b", "spec": "other"}]),
        "shadow": endpoint(**SINGLE, hosting__shadow={"spec": "other"}),
    },
    "trial": {
        "rollback": NOTHING,
        "report in place": endpoint(trial__mode="report", trial__update="in_place", trial__start="together"),
        "off": endpoint(trial__mode="off"),
    },
    "copies": {
        "one": NOTHING,
        "zero": endpoint(scaling__min_copies=0, scaling__max_copies=2),
        "nights": endpoint(
            scaling__max_copies=2,
            scaling__schedules=[{"name": "night", "schedule": "cron(0 20 * * ? *)", "max_copies": 1}],
        ),
    },
    "pools": {"one": NOTHING, "two": endpoint(hosting__instance_pools=[SMALL, LARGE])},
    "reservation": {
        "none": NOTHING,
        "ending": endpoint(
            serving__instance_types=[RESERVABLE],
            hosting__capacity_reservation_arn=RESERVATION,
            hosting__capacity_reservation_ends_at="2027-01-31T11:30:00Z",
        ),
    },
    "guests": {
        "none": NOTHING,
        "one": endpoint(hosting__more_models=["other"]),
        "split": endpoint(
            hosting__more_models=["other"],
            hosting__traffic=[{"spec": "chat", "weight": 3}, {"spec": "other", "weight": 1}],
        ),
        "router": endpoint(
            hosting__more_models=["other"],
            hosting__traffic=[{"spec": "chat", "weight": 3}, {"spec": "other", "weight": 1}],
            hosting__router=True,
        ),
    },
    "adapters": {
        "none": NOTHING,
        "one": endpoint(
            serving__overrides__lora=LORA["lora"],
            serving__adapters=[{"name": "sql", "s3_uri": "s3://weights-of-ours/sql.tar.gz"}],
        ),
    },
    "placement": {
        "default": NOTHING,
        "spread": endpoint(hosting__placement={"strategy": "spread"}, hosting__data_cache=True),
    },
    "debugging": {
        "none": NOTHING,
        "both": Change(
            endpoint={"hosting.ssm_access": True, "hosting.core_dump_s3_uri": "s3://results-of-ours/dumps/"},
            environment={
                "guard_rails.ssm_access": "allowed",
                "guard_rails.output_targets": ["s3://results-of-ours/*"],
                "guard_rails.remote_code": "refused",
                "guard_rails.tag_values": {"team": ["*"]},
            },
        ),
    },
    "metrics": {"default": NOTHING, "detailed": endpoint(hosting__metrics={"detailed": True, "enhanced": True})},
    "overload": {
        "queue": NOTHING,
        "refuse": endpoint(serving__overload="refuse", slo__ttft_ms={"p95": 60_000}, trial__overload="require"),
    },
    "engine": {
        "lmi": NOTHING,
        "vllm": endpoint(serving__engine="vllm"),
        "tgi": endpoint(serving__engine="tgi"),
        "sglang": endpoint(serving__engine="sglang"),
    },
    "weights": {
        "hub": NOTHING,
        "gated": endpoint(model__hub_token_secret="seatrial/hub-token"),
        "s3": endpoint(model={"s3_uri": "s3://weights-of-ours/mistral/", "architecture": "mistralai/Mistral-7B-v0.1"}),
    },
    "traffic": {
        "in flight": NOTHING,
        "rate": endpoint(workload__concurrency=None, workload__requests_per_second=2.0, objective={"headroom": 0.9}),
    },
    "api": {"invoke": NOTHING, "openai": endpoint(workload__api="openai")},
    "delivery": {"endpoint": NOTHING, "product": Change(is_product=True)},
    "repair": {"none": NOTHING, "alarms off": Change(is_repaired=True)},
}

SINGLES = ("single", "asynchronous", "captured", "variants", "shadow")
GUESTS = ("one", "split", "router")
REFUSED: Final[dict[tuple[tuple[str, str], tuple[str, str]], str]] = {
    # The results of trials would go before the records that rest on them.
    (("retention", "short"), ("audit", "locked")): "SEA586",
    # What has no outbound connection loads no weights of a hub.
    **{(("network", "isolated"), ("weights", weights)): "SEA111" for weights in ("hub", "gated")},
    # The trial service tries components alone, and so does every option of components.
    **{(("hosting", kind), ("trial", trial)): "SEA136" for kind in SINGLES for trial in ("report in place",)},
    **{(("hosting", kind), ("guests", guests)): "SEA125" for kind in SINGLES for guests in GUESTS},
    **{(("hosting", kind), ("adapters", "one")): "SEA125" for kind in SINGLES},
    **{(("hosting", kind), ("placement", "spread")): "SEA125" for kind in SINGLES},
    # A variant with the model keeps an instance, unless its requests wait in a queue.
    **{(("hosting", kind), ("copies", "zero")): "SEA134" for kind in SINGLES if kind != "asynchronous"},
    (("hosting", "asynchronous"), ("api", "openai")): "SEA136",
    (("hosting", "asynchronous"), ("overload", "refuse")): "SEA148",
    (("pins", "pinned"), ("guests", "router")): "SEA111",
    # A product is one spec: there is no other model.
    **{(("hosting", kind), ("delivery", "product")): "SEA130" for kind in ("variants", "shadow")},
    (("tags", "many"), ("delivery", "product")): "SEA142",
    (("guests", "one"), ("delivery", "product")): "SEA128",
    **{(("guests", guests), ("delivery", "product")): "SEA129" for guests in ("split", "router")},
    # Reserved capacity is of one type, and so are the guests that it hosts.
    (("pools", "two"), ("reservation", "ending")): "SEA127",
    **{(("reservation", "ending"), ("guests", guests)): "SEA214" for guests in GUESTS},
    **{(("adapters", "one"), ("engine", engine)): "SEA132" for engine in ("tgi", "sglang")},
}


def first_refused(row: dict[str, str]) -> str | None:
    """Return the rule of the first pair of a row that can't meet; `None` where all can."""
    return next(
        (rule for (one, two), rule in REFUSED.items() if row.get(one[0]) == one[1] and row.get(two[0]) == two[1]), None
    )
