"""Reads every part of an endpoint from the account; no call changes anything, and what is denied is reported."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from seatrial.account.live_endpoint import (
    component_names,
    raised_alarms,
    read_component,
    read_endpoint,
    read_model,
    read_tags,
    safe_text,
)
from seatrial.account.reader import AwsReader, aws_failures, count, mapping, moment, rows, text_at
from seatrial.deployment.document import COMPONENT_SUFFIX, service_stack
from seatrial.operations.doctor.facts import (
    LOGS,
    LONGEST_LINE,
    LOST_MINUTES,
    ContainerFacts,
    Examination,
    LogFacts,
    ResourceState,
    StackFacts,
    TargetFacts,
    waiting_for,
)
from seatrial.operations.preflight import Need, ok, problem, quota_checks, secret_check, unread, weights_check
from seatrial_base.catalog.symptoms import plain_lines
from seatrial_base.secrets import redacted
from seatrial_base.tags import ENVIRONMENT_TAG, STACK_TAG, is_candidate_name_of, maker_of
from seatrial_base.text import printable
from seatrial_load.aws.container_metrics import COMPONENT_LABEL, ENDPOINT_LABEL, VARIANT_LABEL, read_container_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from seatrial.account.clients import AccountClients
    from seatrial.account.reader import AwsCalls
    from seatrial.deployment.document import Deployment
    from seatrial.documents.live import LiveComponent, LiveEndpoint, LiveModel
    from seatrial.operations.preflight import AccountCheck
    from seatrial_load.aws.container_metrics import PromQl

LAST_LINES = 40
MOST_STREAMS = 3
_ACCOUNT: Final = 4
"""The place of the account in an ARN."""
MOST_EVENTS = 500
MACHINE_TYPE = "AWS::StepFunctions::StateMachine"
STACK_TYPE = "AWS::CloudFormation::Stack"
_BEGINNINGS = frozenset({"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "REVIEW_IN_PROGRESS"})
_CONSEQUENCE = "cancelled"
_LOOKS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "AWS::IAM::Role": ("iam", "get_role", "RoleName"),
        "AWS::SageMaker::Endpoint": ("sagemaker", "describe_endpoint", "EndpointName"),
        "AWS::SageMaker::EndpointConfig": ("sagemaker", "describe_endpoint_config", "EndpointConfigName"),
        "AWS::SageMaker::InferenceComponent": ("sagemaker", "describe_inference_component", "InferenceComponentName"),
        "AWS::SageMaker::Model": ("sagemaker", "describe_model", "ModelName"),
        "AWS::SSM::Parameter": ("ssm", "get_parameter", "Name"),
    }
)
"""By resource type, the call that finds a resource by its name: service, operation, argument."""
_ALARMS: Final = (
    ("AWS::CloudWatch::Alarm", "MetricAlarm", "MetricAlarms"),
    ("AWS::CloudWatch::CompositeAlarm", "CompositeAlarm", "CompositeAlarms"),
)
"""Resource type, kind in the request of DescribeAlarms, list in its response."""
MOST_ALARMS: Final = 100
"""Names that DescribeAlarms takes at once."""
ASSUMED_BY = "sagemaker.amazonaws.com"
NAMESPACE = "sagemaker"
SERVICE = "application-autoscaling"
_TARGET_TYPE = "AWS::ApplicationAutoScaling::ScalableTarget"
LOOKED_S: Final = 900.0
"""Seconds of metrics that are read: 15 values at SageMaker's usual frequency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointQuery:
    """The endpoint to examine, and the clients of its account.

    Attributes:
        name: Its name on SageMaker.
        calls: Operations of its account and region.
        account: The clients of a preflight there.
        stack: Its stack; empty for the one that its tags name, else `seatrial-NAME`.
        deployment: From its lock; without one, its secrets are not known.
        promql: Queries the metrics of its containers; `None` without.
    """

    name: str
    region: str
    calls: AwsCalls
    account: AccountClients
    stack: str = ""
    deployment: Deployment | None = None
    promql: PromQl | None = None


def examine(query: EndpointQuery, at: datetime) -> Examination:
    """Read everything about an endpoint.

    Raises:
        BenchError: As `aws_failures`, when AWS does not even return the caller's identity.
    """
    name, reader = query.name, AwsReader(query.calls)
    # Every other call keeps what it was refused and goes on, so without this one a session without credentials
    # would look like an account without an endpoint.
    with aws_failures(name):
        caller = query.account.identity.get_caller_identity()
    endpoint = read_endpoint(name, reader)
    components = tuple(live_components(name, reader))
    named = tuple(_models(endpoint, components, reader))
    models = tuple(model for model in named if model.is_there)
    arns = (endpoint.arn or _arn_of(name, caller, query.region), *(component.arn for component in components))
    tagged = [tags[STACK_TAG] for tags in (endpoint.tags, *(each.tags for each in components)) if STACK_TAG in tags]
    stack = find_stack(name, (*tagged, query.stack), [arn for arn in arns if arn], reader)
    is_tagged = any(ENVIRONMENT_TAG in tags for tags in (endpoint.tags, *(component.tags for component in components)))
    # A stack of any name may hold the endpoint, another team's too: what the user, the usual name or a tag does
    # not claim is explained, and never changed.
    stack = replace(stack, is_ours=is_tagged or stack.name in (query.stack, f"seatrial-{name}"))
    return Examination(
        name=name,
        at=at,
        endpoint=endpoint,
        components=components,
        models=models,
        targets=scalable_targets(name, endpoint, components, stack, reader),
        alarms=raised_alarms(name, [component.name for component in components], reader),
        stack=stack,
        logs=tuple(_logs(name, endpoint, components, reader)),
        checks=tuple(account_checks(query, endpoint, models, components, reader)),
        workflows=_workflows(query, endpoint, stack, at, reader),
        containers=tuple(container_facts(endpoint, components, query.promql, name=name, at=at, reader=reader)),
        missing=tuple(missing_resources(stack, reader)),
        absent=(
            *([f"endpoint configuration {endpoint.config}"] if not endpoint.has_config else ()),
            *(f"model {model.name}" for model in named if not model.is_there),
        ),
        unreadable=tuple(reader.unreadable),
    )


def _workflows(
    query: EndpointQuery, endpoint: LiveEndpoint, stack: StackFacts, at: datetime, reader: AwsReader
) -> tuple[datetime, ...] | None:
    """Return when the running workflows began, where a custom resource has waited longer than a function lives."""
    # Before that time the function that works on the request may still be running: an empty list of workflows
    # would prove nothing.
    if all(minutes < LOST_MINUTES for _, minutes in waiting_for(stack, at)):
        return None
    named = endpoint.tags.get(ENVIRONMENT_TAG, "")
    environment = named if query.deployment is None else query.deployment.environment.name
    service = service_stack(environment)
    listed = reader.rows(
        f"resources of {service}", "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=service
    )
    machine = next(
        (text_at(row, "PhysicalResourceId") for row in listed if text_at(row, "ResourceType") == MACHINE_TYPE), ""
    )
    if not machine:
        return None
    what = f"workflows of {service}"
    response = reader.read(
        what, "stepfunctions", "list_executions", stateMachineArn=machine, statusFilter="RUNNING", maxResults=1000
    )
    if response.state != "found":
        return None
    return tuple(began for row in rows(response.document, "executions") if (began := moment(row, "startDate")))


def live_components(endpoint_name: str, reader: AwsReader) -> Iterator[LiveComponent]:
    """Yield the components of an endpoint with their tags, which mark the candidates of trials."""
    for name in component_names(endpoint_name, reader):
        if (component := read_component(name, reader)) is None:
            continue
        tags = read_tags(f"inference component {name}", component.arn, reader)
        maker = maker_of(name, endpoint_name, tags)
        # Candidates of older releases carry no tag of their maker, and a component of a stack may have a like
        # name: only one without a stack can be a candidate.
        of_trial = maker == "trial service" or (maker == "older release" and _has_no_stack(component.arn, reader))
        yield replace(component, tags=tags, is_candidate=of_trial)


def _has_no_stack(arn: str, reader: AwsReader) -> bool:
    response = reader.read(f"stack of {arn}", "cloudformation", "describe_stack_resources", PhysicalResourceId=arn)
    return response.state != "not asked" and not any(rows(response.document, "StackResources"))


def _models(endpoint: LiveEndpoint, components: Iterable[LiveComponent], reader: AwsReader) -> Iterator[LiveModel]:
    names = {variant.model for variant in endpoint.variants} | {component.model for component in components}
    for name in sorted(names - {""}):
        if model := read_model(name, reader):
            yield replace(model, tags=read_tags(f"model {name}", model.arn, reader)) if model.is_there else model


def _logs(
    name: str, endpoint: LiveEndpoint, components: Iterable[LiveComponent], reader: AwsReader
) -> Iterator[LogFacts]:
    every = [*components]
    # A candidate's log is read only where nothing else is there: what serves explains what users see.
    live = [component for component in every if not component.is_candidate] or every
    groups = [f"{LOGS}/InferenceComponents/{each.name}" for each in live]
    if any(variant.model for variant in endpoint.variants) or not groups:
        groups.append(f"{LOGS}/Endpoints/{name}")
    for group in sorted(groups):
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
    # The newest stream comes first in the response and last here, as in one log: the last error decides.
    for stream in reversed([*rows(streams.document, "logStreams")]):
        place = {"logGroupName": group, "logStreamName": text_at(stream, "logStreamName")}
        events = reader.read(f"log {group}", "logs", "get_log_events", **place, limit=LAST_LINES)
        # Redacted as one text and cut afterwards: a credential may span lines, and the cut end of one would no longer
        # look like one.
        whole = "\n".join(text_at(row, "message").rstrip() for row in rows(events.document, "events"))
        lines += [line[:LONGEST_LINE] for line in plain_lines([safe_text(whole)])]
    return LogFacts(group, "found", tuple(lines))


def _arn_of(name: str, caller: Mapping[str, object], region: str) -> str:
    """Return the ARN that an endpoint of the caller's account has or would have; empty where the caller is unknown."""
    parts = text_at(caller, "Arn").split(":")
    return f"{parts[0]}:{parts[1]}:sagemaker:{region}:{parts[4]}:endpoint/{name}" if len(parts) > _ACCOUNT else ""


def find_stack(endpoint: str, named: Iterable[str], resources: Iterable[str], reader: AwsReader) -> StackFacts:
    """Read the stack of an endpoint: the first of those named that is there, else the one that has a resource of it.

    Args:
        named: The stack as tags and an environment name it; none for `seatrial-ENDPOINT`.
        resources: Physical IDs of what is or was there: a stack of any name may manage it.
    """
    # CloudFormation's tag on what is there comes first: only it can set it, and a spec may be of another stack.
    for name in dict.fromkeys([each for each in named if each] or [f"seatrial-{endpoint}"]):
        stack = read_stack(name, reader)
        if stack.existence != "absent":
            return stack
    for resource in resources:
        response = reader.read(
            f"stack of {resource}", "cloudformation", "describe_stack_resources", PhysicalResourceId=resource
        )
        if response.state == "not asked":
            return replace(stack, existence="not asked")
        owner = next((text_at(row, "StackName") for row in rows(response.document, "StackResources")), "")
        if owner:
            return read_stack(owner, reader)
    return stack


def read_stack(name: str, reader: AwsReader) -> StackFacts:
    """Read a stack; its resources and events only where it is there."""
    response = reader.read(f"stack {name}", "cloudformation", "describe_stacks", StackName=name)
    found = next(rows(response.document, "Stacks"), None)
    if found is None:
        return StackFacts(name=name, existence="absent" if response.state == "found" else response.state)
    listed = reader.rows(
        f"resources of {name}", "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name
    )
    events = reader.rows(f"events of {name}", "cloudformation", "describe_stack_events", "StackEvents", StackName=name)
    last = next(events, {})
    return StackFacts(
        name=name,
        existence="found",
        status=text_at(found, "StackStatus"),
        reason=text_at(found, "StackStatusReason"),
        outputs={text_at(row, "OutputKey"): text_at(row, "OutputValue") for row in rows(found, "Outputs")},
        resources=tuple(_resource(row) for row in listed),
        failures=tuple(reversed([*_failures(islice(chain([last], events), MOST_EVENTS))])),
        last_event=text_at(last, "EventId"),
    )


def _failures(events: Iterable[Mapping[str, object]]) -> Iterator[ResourceState]:
    """Yield the failed events of the last operation, newest first; what was only cancelled is a consequence."""
    for event in events:
        # Events come newest first: the beginning of the last operation ends the search, else a failure of
        # last week would explain today.
        if text_at(event, "ResourceType") == STACK_TYPE and text_at(event, "ResourceStatus") in _BEGINNINGS:
            return
        failed = _resource(event)
        if failed.status.endswith("FAILED") and _CONSEQUENCE not in failed.reason.lower():
            yield failed


def _resource(row: Mapping[str, object]) -> ResourceState:
    return ResourceState(
        logical_id=text_at(row, "LogicalResourceId"),
        physical_id=text_at(row, "PhysicalResourceId"),
        resource_type=text_at(row, "ResourceType"),
        status=text_at(row, "ResourceStatus"),
        reason=printable(redacted(text_at(row, "ResourceStatusReason"))),
        changed=moment(row, "LastUpdatedTimestamp") or moment(row, "Timestamp"),
    )


def missing_resources(stack: StackFacts, reader: AwsReader) -> Iterator[ResourceState]:
    """Yield what a stack at rest has, and the account has not: CloudFormation never looks, and so never repairs it.

    Resources whose type is in no table are not looked for; one that could not be read is not missing.
    """
    # While an operation runs, resources come and go by its own doing.
    if stack.existence != "found" or stack.is_at_work:
        return
    made = [part for part in stack.resources if part.physical_id and not part.status.startswith("DELETE_")]
    for resource in made:
        if (look := _LOOKS.get(resource.resource_type)) is not None and not resource.is_nameless:
            service, operation, argument = look
            name = resource.name
            if reader.read(f"{resource.logical_id} {name}", service, operation, **{argument: name}).state == "absent":
                yield resource
    for resource_type, kind, member in _ALARMS:
        alarms = [resource for resource in made if resource.resource_type == resource_type]
        for first in range(0, len(alarms), MOST_ALARMS):
            page = {alarm.name: alarm for alarm in alarms[first : first + MOST_ALARMS]}
            response = reader.read(
                "alarms of the stack",
                "cloudwatch",
                "describe_alarms",
                AlarmNames=[*page],
                AlarmTypes=[kind],
                MaxRecords=MOST_ALARMS,
            )
            for row in rows(response.document, member):
                page.pop(text_at(row, "AlarmName"), None)
            yield from page.values() if response.state == "found" else ()


def account_checks(
    query: EndpointQuery,
    endpoint: LiveEndpoint,
    models: Iterable[LiveModel],
    components: Iterable[LiveComponent],
    reader: AwsReader,
) -> Iterator[AccountCheck]:
    """Yield the checks of what a new copy or instance would need, each thing once, in order."""
    deployment = query.deployment
    models = tuple(models)
    for arn in sorted({model.role_arn for model in models} - {""}):
        yield _role(arn, reader)
    read = {uri for model in models for uri in model.uris} | {component.artifact for component in components}
    for uri in sorted(uri for uri in read if uri.startswith("s3://")):
        yield weights_check(uri, query.account.objects)
    for secret in sorted({*deployment.serving.secret_env.values()}) if deployment is not None else ():
        yield secret_check(secret, query.account.secrets)
    yield from _quotas(query, endpoint)


def _quotas(query: EndpointQuery, endpoint: LiveEndpoint) -> Iterator[AccountCheck]:
    most: Counter[str] = Counter()
    for variant in endpoint.variants:
        if variant.instance_type:
            # Scaling may go to the most at any time, and more may run where the count was raised by hand.
            most[variant.instance_type] += max(variant.most, variant.desired, variant.current)
    needs = tuple(Need(query.name, instance_type, number) for instance_type, number in sorted(most.items()))
    if query.deployment is not None and query.deployment.environment.is_embedded:
        yield from (unread(f"quota {need.instance_type}", "the embedded AWS has no service quotas") for need in needs)
    elif needs:
        yield from quota_checks(needs, query.region, query.account)


def _role(arn: str, reader: AwsReader) -> AccountCheck:
    subject, name = f"execution role {arn}", arn.rpartition("/")[2]
    # The reader notes every refusal by itself; here it becomes a check of its own, and must not be listed twice.
    before = len(reader.unreadable)
    response = reader.read(subject, "iam", "get_role", RoleName=name)
    if response.state == "not asked":
        return unread(subject, reader.unreadable.pop() if len(reader.unreadable) > before else "it could not be read")
    if response.state == "absent":
        hint = "deploy the stack again; a model keeps the ARN of a role that is deleted and recreated, not its rights"
        return problem(subject, "SEA758", "it does not exist", hint)
    policy = mapping(response.document, "Role").get("AssumeRolePolicyDocument")
    # boto3 decodes a trust policy, other clients leave it as text.
    document = json.loads(policy) if isinstance(policy, str) else policy
    statements = document.get("Statement") if isinstance(document, dict) else None
    services: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        if isinstance(statement, dict) and text_at(statement, "Effect") == "Allow":
            listed = mapping(statement, "Principal").get("Service")
            services |= {name for name in (listed if isinstance(listed, list) else [listed]) if isinstance(name, str)}
    if ASSUMED_BY not in services:
        hint = f"let {ASSUMED_BY} assume it in its trust policy"
        return problem(subject, "SEA758", f"its trust policy does not name {ASSUMED_BY}", hint)
    return ok(subject, f"it exists, and {ASSUMED_BY} may assume it")


def scalable_targets(
    name: str, endpoint: LiveEndpoint, components: Iterable[LiveComponent], stack: StackFacts, reader: AwsReader
) -> tuple[TargetFacts, ...]:
    """Return the targets of an endpoint's variants and components, by resource.

    Another endpoint's name may begin with this one's. So a target of a component that is gone counts as this
    endpoint's only when its name is `NAME-model`, a candidate's, or one of the stack's resources.
    """
    of_stack = {row.physical_id.partition("|")[0] for row in stack.resources if row.resource_type == _TARGET_TYPE}
    known = {f"inference-component/{each.name}" for each in components} | of_stack
    known |= {f"endpoint/{name}/variant/{variant.name}" for variant in endpoint.variants}
    known.add(f"inference-component/{name}{COMPONENT_SUFFIX}")
    listed = reader.rows(
        "scalable targets", SERVICE, "describe_scalable_targets", "ScalableTargets", ServiceNamespace=NAMESPACE
    )
    ours = []  # a variant may have two targets: of its instances, and of its provisioned concurrency
    for row in listed:
        resource_id = text_at(row, "ResourceId")
        kind, _, component = resource_id.partition("/")
        if resource_id in known or (kind == "inference-component" and is_candidate_name_of(component, name)):
            ours.append((resource_id, row))
    return tuple(_target(row, reader) for _, row in sorted(ours, key=lambda pair: pair[0]))


def _target(row: Mapping[str, object], reader: AwsReader) -> TargetFacts:
    resource_id, dimension = text_at(row, "ResourceId"), text_at(row, "ScalableDimension")
    target = {"ServiceNamespace": NAMESPACE, "ResourceId": resource_id, "ScalableDimension": dimension}
    what = f"scaling of {resource_id}"
    policies = reader.rows(what, SERVICE, "describe_scaling_policies", "ScalingPolicies", **target)
    activities = reader.read(what, SERVICE, "describe_scaling_activities", **target, MaxResults=1).document
    last = next(rows(activities, "ScalingActivities"), {})
    return TargetFacts(
        resource_id=resource_id,
        dimension=dimension,
        least=count(row, "MinCapacity"),
        most=count(row, "MaxCapacity"),
        suspended=tuple(sorted(key for key, value in mapping(row, "SuspendedState").items() if value is True)),
        wakes=any(text_at(policy, "PolicyType") == "StepScaling" for policy in policies),
        failure=text_at(last, "StatusMessage") if text_at(last, "StatusCode") == "Failed" else "",
    )


def container_facts(
    endpoint: LiveEndpoint,
    components: Iterable[LiveComponent],
    ask: PromQl | None,
    *,
    name: str,
    at: datetime,
    reader: AwsReader,
) -> Iterator[ContainerFacts]:
    """Yield what the containers of each component, candidates excepted, and of each variant with a model published."""
    if ask is None:
        return
    live = (component.name for component in components if component.copies and not component.is_candidate)
    places = [(f"inference component {component}", {COMPONENT_LABEL: component}) for component in live]
    variants = (variant.name for variant in endpoint.variants if variant.model and variant.current)
    places += [(f"variant {variant}", {ENDPOINT_LABEL: name, VARIANT_LABEL: variant}) for variant in variants]
    for part, labels in places:
        try:
            now_s = at.timestamp()
            series = read_container_series(ask, labels, from_s=now_s - LOOKED_S, to_s=now_s)
            facts = ContainerFacts(part, series.load(now_s - LOOKED_S, now_s), series.simulated_by)
        except (OSError, ValueError) as refused:
            reader.unreadable.append(f"metrics of the containers: {refused}")
            return
        if not facts.load.is_empty:
            yield facts
