"""The environment spec: where an endpoint is deployed, and the guard rails there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.catalog.regions import INFERENCE_COMPONENT, availability
from seatrial.errors import Problem
from seatrial.model import FrozenModel
from seatrial.spec import shapes
from seatrial.spec.endpoint import Copies, InstanceTypes, Usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.spec.endpoint import EndpointSpec
    from seatrial.spec.yaml_source import Document, FieldPath


EMBEDDED_ACCOUNT = "000000000000"
"""The account of the embedded AWS; it is nobody's on the real one."""

Account = Annotated[str, StringConstraints(pattern=shapes.ACCOUNT)]
Region = Annotated[str, StringConstraints(pattern=shapes.REGION)]
EnvironmentName = Annotated[str, StringConstraints(pattern=shapes.ENVIRONMENT_NAME, max_length=16)]
SubnetId = Annotated[str, StringConstraints(pattern=shapes.SUBNET_ID)]
SecurityGroupId = Annotated[str, StringConstraints(pattern=shapes.SECURITY_GROUP_ID)]
TagKey = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, min_length=1, max_length=128)]
TagValue = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, max_length=256)]
MOST_TAGS = 49  # of each resource but one: `seatrial:environment` is ours
KmsKeyArn = Annotated[str, StringConstraints(pattern=shapes.KMS_KEY_ARN)]
TopicArn = Annotated[str, StringConstraints(pattern=shapes.SNS_TOPIC_ARN)]


PricesFile = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00].*\.ya?ml$", max_length=512)]


class GuardRails(FrozenModel):
    """What no endpoint of this environment may exceed."""

    instance_types: InstanceTypes | None = Field(None, description="Allowed instance types.")
    usd_per_hour: Usd | None = Field(None, description="Highest cost of one endpoint, in US dollars per hour.")
    max_copies: Copies | None = Field(None, description="Most copies of one endpoint.")


class Network(FrozenModel):
    """The VPC of the containers; with no subnets they run in the service's own network."""

    subnet_ids: tuple[SubnetId, ...] = Field((), description="Subnets of the containers.")
    security_group_ids: tuple[SecurityGroupId, ...] = Field((), description="Security groups of the containers.")
    isolated: bool = Field(
        default=False, description="Network isolation: no outbound connections, so the weights must be in S3."
    )


class Alarms(FrozenModel):
    """What is notified of alarms, and of their end."""

    topic_arn: TopicArn | None = Field(
        None,
        description="SNS topic in the same region. Default: the topic `seatrial-ENVIRONMENT-alarms`, which is made.",
    )


class EnvironmentSpec(FrozenModel):
    """One environment: account, region, guard rails, network, keys."""

    name: EnvironmentName = Field(description="Name of the environment in specs and commands.")
    account: Account | None = Field(None, description="AWS account; left out, that of the caller's credentials.")
    region: Region = Field(description="AWS region with inference components.")
    guard_rails: GuardRails = GuardRails()
    network: Network = Network()
    alarms: Alarms = Alarms()
    kms_key_arn: KmsKeyArn | None = Field(None, description="KMS key of volumes and results. Default: a new key.")
    removal: Literal["destroy", "retain"] = Field("retain", description="Action on results at deletion.")
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=MOST_TAGS)] = Field(
        {}, description="Tags of every resource."
    )

    vending: bool = Field(
        default=False, description="Products of `products/` may be offered here: an AWS Service Catalog portfolio."
    )
    prices: PricesFile | None = Field(
        None, description="Prices file, relative to this file. Default: `prices.yaml` beside it, if there is one."
    )

    @property
    def is_embedded(self) -> bool:
        """Whether this is the embedded AWS of the laptop."""
        return self.account == EMBEDDED_ACCOUNT


def guard_rail_problems(endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document) -> Iterator[Problem]:
    """Yield every guard rail that the spec breaks by itself; the planner keeps those on cost."""
    rails = environment.guard_rails
    if rails.max_copies is not None and endpoint.scaling.max_copies > rails.max_copies:
        message = f"max_copies {endpoint.scaling.max_copies} exceeds {environment.name}'s guard rail {rails.max_copies}"
        yield _problem(document, ("scaling", "max_copies"), message, f"at most {rails.max_copies}")
    asked = endpoint.serving.instance_types or ()
    if rails.instance_types is not None and asked and not set(asked) & set(rails.instance_types):
        message = f"none of {', '.join(asked)} is allowed in {environment.name}"
        hint = f"allowed: {', '.join(rails.instance_types)}"
        yield _problem(document, ("serving", "instance_types"), message, hint)
    if environment.network.isolated and endpoint.model.hub_id is not None:
        message = f"{environment.name} has network isolation, so the weights can't come from a hub"
        yield _problem(document, ("model",), message, "stage the weights to S3 and give model.s3_uri")


def _problem(document: Document, path: FieldPath, message: str, hint: str) -> Problem:
    return Problem(document.where(path), document.field(path), "SEA111", message, hint)


_TOPIC_COLONS = 5  # of arn:aws:sns:REGION:ACCOUNT:NAME
_PAIR = ("subnet_ids", "security_group_ids")


def network_problems(document: Document) -> Iterator[Problem]:
    """Yield the half of a VPC that is missing: the service takes subnets and security groups together."""
    network = document.data.get("network")
    if not isinstance(network, dict):
        return
    given = [name for name in _PAIR if network.get(name)]
    if len(given) == 1:
        (missing,) = set(_PAIR) - set(given)
        path = ("network", given[0])
        message = f"{given[0]} without {missing}"
        yield Problem(document.where(path), document.field(path), "SEA108", message, "give both, or leave both out")


def topic_problems(document: Document) -> Iterator[Problem]:
    """Yield a topic of another region: alarms notify topics of their own region only."""
    alarms, region = document.data.get("alarms"), document.data.get("region")
    topic = alarms.get("topic_arn") if isinstance(alarms, dict) else None
    if not isinstance(topic, str) or topic.count(":") != _TOPIC_COLONS or not isinstance(region, str):
        return
    there = topic.split(":")[3]
    if there != region:
        path = ("alarms", "topic_arn")
        message = f"the topic is in {there}, the environment in {region}"
        yield Problem(document.where(path), document.field(path), "SEA108", message, f"give a topic in {region}")


def tag_problems(document: Document) -> Iterator[Problem]:
    """Yield the tags that AWS keeps for itself."""
    tags = document.data.get("tags")
    for key in tags if isinstance(tags, dict) else ():
        if key.lower().startswith("aws:"):
            path = ("tags", key)
            message = f"the tag key {key} begins with aws:, which AWS reserves"
            yield Problem(document.where(path), document.field(path), "SEA107", message, "choose another tag key")


def region_problems(environment: EnvironmentSpec, document: Document) -> Iterator[Problem]:
    """Yield a region where inference components can't be deployed."""
    known = availability()
    if environment.region in known.regions:
        return
    message = f"{environment.region} has no {INFERENCE_COMPONENT} ({known.source.partition(',')[0]}, {known.date})"
    hint = f"known to have it: {', '.join(known.regions)}"
    yield Problem(document.where(("region",)), "region", "SEA107", message, hint)
