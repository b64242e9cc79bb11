"""Asks the account for every part of an endpoint; all calls only read, and what is denied is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.reader import AwsReader, aws_failures
from seatrial.account.response import count, mapping, rows, text_at
from seatrial.operations.doctor.account import account_checks
from seatrial.operations.doctor.facts import (
    CANDIDATE,
    AlarmFacts,
    ComponentFacts,
    EndpointFacts,
    Examination,
    LogFacts,
    ModelFacts,
    VariantFacts,
)
from seatrial.operations.doctor.gather_scaling import scalable_targets
from seatrial.operations.doctor.gather_stack import find_stack
from seatrial.operations.doctor.moments import moment
from seatrial_base.printable import printable
from seatrial_base.secrets import redacted
from seatrial_base.tags import STACK_TAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from seatrial.account.clients import AccountClients
    from seatrial.account.reader import AwsCalls
    from seatrial.deployment.document import Deployment

LAST_LINES = 40
LONGEST_LINE = 400
MOST_STREAMS = 3
_LOGS = "/aws/sagemaker"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedEndpoint:
    """Which endpoint is asked about, and whom.

    Attributes:
        name: Its name on SageMaker.
        region: Its region.
        calls: Operations of its account and region.
        account: What a preflight asks there.
        stack: Its stack; empty for the one that its tags name, else `seatrial-NAME`.
        deployment: What its lock says; without one, its secrets are not known.
    """

    name: str
    region: str
    calls: AwsCalls
    account: AccountClients
    stack: str = ""
    deployment: Deployment | None = None


def examine(asked: AskedEndpoint, at: datetime) -> Examination:
    """Ask for everything about an endpoint.

    Args:
        asked: The endpoint.
        at: The time.

    Raises:
        BenchError: As `aws_failures`, when not even the caller's identity is answered.
    """
    name, reader = asked.name, AwsReader(asked.calls)
    with aws_failures(name):
        asked.account.identity.get_caller_identity()
    endpoint = _endpoint(name, reader)
    components = tuple(_components(name, reader))
    models = tuple(_models(endpoint, components, reader))
    there = [each for each in (endpoint.arn, *(each.arn for each in components)) if each]
    stack = find_stack(name, asked.stack or endpoint.tags.get(STACK_TAG, ""), there, reader)
    return Examination(
        name=name,
        at=at,
        endpoint=endpoint,
        components=components,
        models=models,
        targets=scalable_targets(name, endpoint, components, stack, reader),
        alarms=tuple(_alarms(name, components, reader)),
        stack=stack,
        logs=tuple(_logs(name, endpoint, components, reader)),
        checks=tuple(account_checks(asked, endpoint, models, components, reader)),
        not_asked=tuple(reader.not_asked),
    )


def _endpoint(name: str, reader: AwsReader) -> EndpointFacts:
    answer = reader.read(f"endpoint {name}", "sagemaker", "describe_endpoint", EndpointName=name)
    live = answer.document
    if answer.state != "found":
        return EndpointFacts(existence=answer.state)
    config = text_at(live, "EndpointConfigName")
    what = f"endpoint configuration {config}"
    planned = reader.read(what, "sagemaker", "describe_endpoint_config", EndpointConfigName=config).document
    tags = reader.rows(f"tags of {name}", "sagemaker", "list_tags", "Tags", ResourceArn=text_at(live, "EndpointArn"))
    return EndpointFacts(
        existence="found",
        arn=text_at(live, "EndpointArn"),
        status=text_at(live, "EndpointStatus"),
        reason=_safe(text_at(live, "FailureReason")),
        config=config,
        changed=moment(live, "LastModifiedTime"),
        variants=tuple(_variants(live, planned)),
        tags={text_at(row, "Key"): text_at(row, "Value") for row in tags},
    )


def _variants(live: Mapping[str, object], config: Mapping[str, object]) -> Iterator[VariantFacts]:
    """Yield the variants of the configuration, or those that run where it could not be read."""
    running = {text_at(row, "VariantName"): row for row in rows(live, "ProductionVariants")}
    planned = {text_at(row, "VariantName"): row for row in rows(config, "ProductionVariants")}
    for name in sorted(planned.keys() | running.keys()):
        now, wanted = running.get(name, {}), planned.get(name, {})
        initial = count(wanted, "InitialInstanceCount")
        yield VariantFacts(
            name=name,
            instance_type=text_at(wanted, "InstanceType"),
            current=count(now, "CurrentInstanceCount"),
            desired=count(now, "DesiredInstanceCount"),
            most=max(count(mapping(wanted, "ManagedInstanceScaling"), "MaxInstanceCount"), initial),
            ami=text_at(wanted, "InferenceAmiVersion"),
            model=text_at(wanted, "ModelName"),
            told=tuple(
                f"{text_at(row, 'Status')}: {text_at(row, 'StatusMessage')}" for row in rows(now, "VariantStatus")
            ),
        )


def _components(name: str, reader: AwsReader) -> Iterator[ComponentFacts]:
    """Yield the endpoint's components; the service lists them also when the endpoint is gone."""
    listed = reader.rows(
        "inference components", "sagemaker", "list_inference_components", "InferenceComponents", EndpointNameEquals=name
    )
    for component in sorted(text_at(row, "InferenceComponentName") for row in listed):
        what = f"inference component {component}"
        answer = reader.read(what, "sagemaker", "describe_inference_component", InferenceComponentName=component)
        if answer.state == "found":
            yield _component(component, answer.document)


def _component(name: str, live: Mapping[str, object]) -> ComponentFacts:
    copies = mapping(live, "RuntimeConfig")
    return ComponentFacts(
        name=name,
        arn=text_at(live, "InferenceComponentArn"),
        status=text_at(live, "InferenceComponentStatus"),
        reason=_safe(text_at(live, "FailureReason")),
        copies=count(copies, "CurrentCopyCount"),
        desired=count(copies, "DesiredCopyCount"),
        model=text_at(mapping(live, "Specification"), "ModelName"),
        artifact=text_at(mapping(mapping(live, "Specification"), "Container"), "ArtifactUrl"),
        created=moment(live, "CreationTime"),
        changed=moment(live, "LastModifiedTime"),
    )


def _models(endpoint: EndpointFacts, components: Iterable[ComponentFacts], reader: AwsReader) -> Iterator[ModelFacts]:
    names = {each.model for each in endpoint.variants} | {each.model for each in components}
    for name in sorted(names - {""}):
        found = reader.read(f"model {name}", "sagemaker", "describe_model", ModelName=name)
        if found.state == "found":
            yield _model(name, found.document)


def _model(name: str, live: Mapping[str, object]) -> ModelFacts:
    container = mapping(live, "PrimaryContainer") or next(rows(live, "Containers"), {})
    prefix = text_at(mapping(mapping(container, "ModelDataSource"), "S3DataSource"), "S3Uri")
    return ModelFacts(
        name=name,
        image=text_at(container, "Image"),
        uris=tuple(sorted({text_at(container, "ModelDataUrl"), prefix} - {""})),
        role_arn=text_at(live, "ExecutionRoleArn"),
    )


def _alarms(name: str, components: Iterable[ComponentFacts], reader: AwsReader) -> Iterator[AlarmFacts]:
    ours = {("EndpointName", name)} | {("InferenceComponentName", each.name) for each in components}
    found = reader.rows("alarms", "cloudwatch", "describe_alarms", "MetricAlarms", StateValue="ALARM")
    for row in sorted(found, key=lambda each: text_at(each, "AlarmName")):
        if ours & {*_dimensions(row)} and not _only_scales(row):
            yield AlarmFacts(text_at(row, "AlarmName"), text_at(row, "StateReason"))


def _only_scales(alarm: Mapping[str, object]) -> bool:
    """Tell whether an alarm does nothing but scale: that of scaling in is raised whenever there is little traffic."""
    actions = alarm.get("AlarmActions")
    return isinstance(actions, list) and bool(actions) and all(":scalingPolicy:" in f"{each}" for each in actions)


def _dimensions(alarm: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    watched = [alarm, *(mapping(mapping(row, "MetricStat"), "Metric") for row in rows(alarm, "Metrics"))]
    for metric in watched:
        for row in rows(metric, "Dimensions"):
            yield text_at(row, "Name"), text_at(row, "Value")


def _logs(
    name: str, endpoint: EndpointFacts, components: Iterable[ComponentFacts], reader: AwsReader
) -> Iterator[LogFacts]:
    groups = [f"{_LOGS}/InferenceComponents/{each.name}" for each in components]
    if any(each.model for each in endpoint.variants) or not groups:
        groups.append(f"{_LOGS}/Endpoints/{name}")
    for group in sorted(groups):
        if CANDIDATE not in group or len(groups) == 1:
            yield _log(group, reader)


def _log(group: str, reader: AwsReader) -> LogFacts:
    streams = reader.read(
        f"log group {group}",
        "logs",
        "describe_log_streams",
        logGroupName=group,
        orderBy="LastEventTime",
        descending=True,
        limit=MOST_STREAMS,
    )
    if streams.state != "found":
        return LogFacts(group, streams.state)
    lines: list[str] = []
    for stream in rows(streams.document, "logStreams"):
        lines += _last_lines(group, text_at(stream, "logStreamName"), reader)
    return LogFacts(group, "found", tuple(lines))


def _last_lines(group: str, stream: str, reader: AwsReader) -> Iterator[str]:
    answer = reader.read(
        f"log {group}", "logs", "get_log_events", logGroupName=group, logStreamName=stream, limit=LAST_LINES
    )
    whole = "\n".join(text_at(row, "message").rstrip() for row in rows(answer.document, "events"))
    for line in _safe(whole).splitlines():
        yield line[:LONGEST_LINE]


def _safe(told: str) -> str:
    """Return a text of AWS or of a container without credentials and control characters."""
    return printable(redacted(told))
