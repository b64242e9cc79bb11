"""The control plane of Application Auto Scaling for SageMaker: targets, policies, scheduled actions and tags.

It keeps what requests set and makes the alarms of target tracking; `scaling_actions` acts on them. A scheduled action
sets the capacities of its target at its time.
"""

from __future__ import annotations

import math
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from botocore.utils import parse_to_aware_datetime
from ministack.services import eventbridge

from seatrial_base.autoscaling import COPIES, INSTANCES
from seatrial_base.catalog.hosting_kinds import refusals
from seatrial_laptop.aws.api import ApiError, absent, check_api_request, invalid, service_model
from seatrial_laptop.aws.autoscaling.scaling_policies import check_steps, delete_alarms, put_alarms
from seatrial_laptop.aws.control_plane.records import Kind, Store, hosting_kinds, is_asynchronous, live_variants
from seatrial_laptop.aws.json_document import (
    Document,
    child,
    number,
    page_of,
    text_map,
    text_member,
    text_members,
    whole,
)
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Mapping


SERVICE: Final = "application-autoscaling"
LINKED_ROLE: Final = (
    "role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
)

MOST_ACTIVITIES: Final = 50
"""Activities in one answer when the request doesn't say."""

ACTIVE: Final[Document] = {
    "DynamicScalingInSuspended": False,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}
"""The suspended state of a target that was never suspended."""

Key = tuple[str, str, str]
"""Namespace, resource and dimension: what identifies a scalable target."""


UNITS: Final = {"minute": 60, "hour": 3600, "day": 86_400}
"""Seconds of the units of a rate."""
AT: Final = re.compile(r"at\((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})\)")
RATE: Final = re.compile(r"rate\((\d+)\s+(minute|hour|day)s?\)")
CAPACITIES: Final = ("MinCapacity", "MaxCapacity")
LOOKED: Final = "LookedUntil"
"""The member of a kept action with the virtual date up to which it was looked at; in no response."""


@dataclass(slots=True, kw_only=True)
class ScalingActivity:
    """One change of a capacity by Application Auto Scaling.

    Attributes:
        desired: The requested capacity.
        status: InProgress, Successful or Failed.
        message: How it ended; while it goes on, what was requested.
        description: What was done, when it isn't a desired count.
        started_s: Seconds since the epoch.
        ended_s: Seconds since the epoch; None while it goes on.
    """

    key: Key
    desired: int
    scales_out: bool
    cause: str
    status: str = "InProgress"
    message: str = ""
    description: str = ""
    activity_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started_s: float = field(default_factory=time.time)
    ended_s: float | None = None

    @property
    def counted(self) -> str:
        """What is counted, as the messages call it."""
        return "desired copy count" if self.key[2] == COPIES else "desired instance count"

    def end(self, failure: str | None) -> None:
        """Note how it ended."""
        done = f"Successfully set {self.counted} to {self.desired}. Change successfully fulfilled by sagemaker."
        self.status, self.message = ("Successful", done) if failure is None else ("Failed", failure)
        self.ended_s = time.time()

    def view(self) -> Document:
        """Return an entry of the response of DescribeScalingActivities."""
        namespace, resource, dimension = self.key
        return {
            "ActivityId": self.activity_id,
            "ServiceNamespace": namespace,
            "ResourceId": resource,
            "ScalableDimension": dimension,
            "Description": self.description or f"Setting {self.counted} to {self.desired}.",
            "Cause": self.cause,
            "StartTime": self.started_s,
            **({} if self.ended_s is None else {"EndTime": self.ended_s}),
            "StatusCode": self.status,
            "StatusMessage": self.message,
        }


@dataclass(frozen=True, slots=True)
class Scaling:
    """What Application Auto Scaling remembers; hold `lock` over every call.

    Attributes:
        policies: The policies of each target, by their names.
        scheduled: The scheduled actions of each target, by their names.
        date_s: Tells the virtual date and time, in seconds since the epoch.
        activities: What was scaled, oldest first.
    """

    store: Store
    targets: dict[Key, Document] = field(default_factory=dict)
    policies: dict[tuple[Key, str], Document] = field(default_factory=dict)
    scheduled: dict[tuple[Key, str], Document] = field(default_factory=dict)
    date_s: Callable[[], float] = time.time
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    activities: list[ScalingActivity] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)


def call_autoscaling(scaling: Scaling, operation: str, request: Document) -> Document:
    """Do one operation of the Application Auto Scaling API.

    Raises:
        ApiError: The request isn't valid, or the embedded AWS has no such operation.
    """
    if operation not in service_model(SERVICE).operation_names or operation not in OPERATIONS:
        raise absent(operation)
    check_api_request(SERVICE, operation, request)
    with scaling.lock:
        return OPERATIONS[operation](scaling, request)


def _register_target(scaling: Scaling, request: Document) -> Document:
    key = _key(request)
    _check_resource(scaling.store, request)
    arn = f"arn:aws:application-autoscaling:{REGION}:{own_account()}:scalable-target/{uuid.uuid5(uuid.NAMESPACE_URL, '|'.join(key)).hex[:22]}"  # noqa: E501 (an ARN reads as one)
    new = {
        "RoleARN": f"arn:aws:iam::{own_account()}:{LINKED_ROLE}",
        "CreationTime": time.time(),
        "ScalableTargetARN": arn,
        "SuspendedState": ACTIVE,
    }
    given = {name: value for name, value in request.items() if name != "Tags"}
    target = {**new, **scaling.targets.get(key, {}), **given}
    target["SuspendedState"] = {**ACTIVE, **child(target, "SuspendedState")}
    if "MinCapacity" not in target or "MaxCapacity" not in target:
        raise invalid("MinCapacity and MaxCapacity are required to register a scalable target.")
    if whole(target, "MinCapacity") > whole(target, "MaxCapacity"):
        raise invalid("MaxCapacity must be greater than or equal to MinCapacity.")
    scaling.targets[key] = target
    scaling.tags.setdefault(arn, {}).update(text_map(request, "Tags"))
    return {"ScalableTargetARN": arn}


def _deregister_target(scaling: Scaling, request: Document) -> Document:
    key = _key(request)
    if scaling.targets.pop(key, None) is None:
        raise _not_found(f"No scalable target found for {' '.join(key)}.")
    for action_key in [action_key for action_key in scaling.scheduled if action_key[0] == key]:
        del scaling.scheduled[action_key]
    for policy_key in [policy_key for policy_key in scaling.policies if policy_key[0] == key]:
        delete_alarms(scaling.policies.pop(policy_key))
    return {}


def _describe_targets(scaling: Scaling, request: Document) -> Document:
    wanted = text_members(request, "ResourceIds")
    targets = [target for target in scaling.targets.values() if not wanted or target["ResourceId"] in wanted]
    return {"ScalableTargets": [target for target in targets if _has(target, request)]}


def _put_policy(scaling: Scaling, request: Document) -> Document:
    key, name = _key(request), text_member(request, "PolicyName")
    if key not in scaling.targets:
        raise _not_found(f"No scalable target registered for {' '.join(key)}.")
    old = scaling.policies.get((key, name), {})
    kind = text_member(request, "PolicyType", text_member(old, "PolicyType", "StepScaling"))
    if kind not in ("TargetTrackingScaling", "StepScaling"):
        raise absent(f"{kind} policies: they would never act")
    place = f"resource/{key[0]}/{key[1]}:policyName/{name}"
    arn = f"arn:aws:autoscaling:{REGION}:{own_account()}:scalingPolicy:{uuid.uuid4()}:{place}"
    new = {"PolicyARN": arn, "CreationTime": time.time()}
    policy: dict[str, object] = {**new, **old, **request, "PolicyType": kind, "Alarms": []}
    if kind == "StepScaling":
        check_steps(child(policy, "StepScalingPolicyConfiguration"))
    else:
        policy["Alarms"] = put_alarms(policy, child(policy, "TargetTrackingScalingPolicyConfiguration"))
    if old:
        delete_alarms(old)
    scaling.policies[key, name] = policy
    return {"PolicyARN": policy["PolicyARN"], "Alarms": policy["Alarms"]}


def _describe_policies(scaling: Scaling, request: Document) -> Document:
    names = text_members(request, "PolicyNames")
    policies = [policy for policy in scaling.policies.values() if not names or policy["PolicyName"] in names]
    return {"ScalingPolicies": [policy for policy in policies if _has(policy, request)]}


def _delete_policy(scaling: Scaling, request: Document) -> Document:
    policy = scaling.policies.pop((_key(request), text_member(request, "PolicyName")), None)
    if policy is None:
        raise _not_found(f"No scaling policy found for {' '.join(_key(request))} {text_member(request, 'PolicyName')}.")
    delete_alarms(policy)
    return {}


def _put_scheduled(scaling: Scaling, request: Document) -> Document:
    key, name = _key(request), text_member(request, "ScheduledActionName")
    if key not in scaling.targets:
        raise _not_found(f"No scalable target registered for {' '.join(key)}.")
    scaling.scheduled[key, name] = kept_action(scaling.scheduled.get((key, name), {}), request, scaling.date_s())
    return {}


def _describe_scheduled(scaling: Scaling, request: Document) -> Document:
    names = text_members(request, "ScheduledActionNames")
    views = [view_of(action) for action in scaling.scheduled.values() if _has(action, request)]
    matches = [view for view in views if not names or view["ScheduledActionName"] in names]
    return page_of("ScheduledActions", matches, request, MOST_ACTIVITIES)


def _delete_scheduled(scaling: Scaling, request: Document) -> Document:
    name = text_member(request, "ScheduledActionName")
    if scaling.scheduled.pop((_key(request), name), None) is None:
        raise _not_found(f"No scheduled action found for {' '.join(_key(request))} {name}.")
    return {}


def _describe_activities(scaling: Scaling, request: Document) -> Document:
    """Return the activities, newest first; what was not scaled is no activity here."""
    views = [activity.view() for activity in reversed(scaling.activities)]
    matches = [view for view in views if _has(view, request)]
    return page_of("ScalingActivities", matches, request, MOST_ACTIVITIES)


def _tag(scaling: Scaling, request: Document) -> Document:
    scaling.tags.setdefault(text_member(request, "ResourceARN"), {}).update(text_map(request, "Tags"))
    return {}


def _untag(scaling: Scaling, request: Document) -> Document:
    for name in text_members(request, "TagKeys"):
        scaling.tags.get(text_member(request, "ResourceARN"), {}).pop(name, None)
    return {}


def _list_tags(scaling: Scaling, request: Document) -> Document:
    return {"Tags": scaling.tags.get(text_member(request, "ResourceARN"), {})}


OPERATIONS: Final[dict[str, Callable[[Scaling, Document], Document]]] = {
    "RegisterScalableTarget": _register_target,
    "DeregisterScalableTarget": _deregister_target,
    "DescribeScalableTargets": _describe_targets,
    "PutScalingPolicy": _put_policy,
    "DescribeScalingPolicies": _describe_policies,
    "DeleteScalingPolicy": _delete_policy,
    "PutScheduledAction": _put_scheduled,
    "DescribeScheduledActions": _describe_scheduled,
    "DeleteScheduledAction": _delete_scheduled,
    "DescribeScalingActivities": _describe_activities,
    "TagResource": _tag,
    "UntagResource": _untag,
    "ListTagsForResource": _list_tags,
}


def _key(request: Document) -> Key:
    return (
        text_member(request, "ServiceNamespace"),
        text_member(request, "ResourceId"),
        text_member(request, "ScalableDimension"),
    )


def _has(entry: Document, request: Document) -> bool:
    names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
    return all(entry[name] == request[name] for name in names if name in request)


def _check_resource(store: Store, request: Document) -> None:
    kind, _, rest = text_member(request, "ResourceId").partition("/")
    if kind == "inference-component":
        component = store.need(Kind.INFERENCE_COMPONENT, rest)
        if "BaseInferenceComponentName" in child(component.request, "Specification"):
            raise invalid(f"Inference component {rest} is an adapter: scale its base.")
    elif kind == "endpoint" and len(rest.split("/")) == len(("endpoint", "variant", "name")):
        name, _, variant = rest.split("/")
        endpoint = store.need(Kind.ENDPOINT, name)
        live = next((each for each in live_variants(store, endpoint) if each.name == variant), None)
        if live is None:
            raise invalid(f'Could not find variant "{variant}" of endpoint "{endpoint.arn}".')
        if not live.has_model:
            raise invalid(f"Variant {variant} hosts inference components: register their copies as scalable targets.")
        zero = request.get("MinCapacity") == 0 and text_member(request, "ScalableDimension") == INSTANCES
        config = store.need(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
        if refused := "; ".join(refusals(hosting_kinds(live, config), "target", request)):
            raise invalid(f"{refused}.")
        if zero and not is_asynchronous(store, endpoint):
            raise invalid(f"MinCapacity of variant {variant} must be at least 1: the endpoint is not asynchronous.")
    else:
        raise invalid(f"Unsupported resource ID: {text_member(request, 'ResourceId')}.")


def _not_found(message: str) -> ApiError:
    return ApiError("ObjectNotFoundException", message)


def kept_action(old: Document, request: Document, now_s: float) -> Document:
    """Return a scheduled action to keep; a later request replaces the members that it gives.

    Raises:
        ApiError: ValidationException, the schedule, the capacities or the times are not valid.
    """
    place = f"resource/{text_member(request, 'ServiceNamespace')}/{text_member(request, 'ResourceId')}"
    name = text_member(request, "ScheduledActionName")
    owner = f"arn:aws:autoscaling:{REGION}:{own_account()}:scheduledAction:{uuid.uuid4()}"
    arn = f"{owner}:{place}:scheduledActionName/{name}"
    times = {key: _seconds(request[key]) for key in ("StartTime", "EndTime") if key in request}
    new = {"ScheduledActionARN": arn, "CreationTime": now_s}
    action: Document = {**new, **old, **request, **times, LOOKED: now_s}
    if "Schedule" not in action:
        raise invalid("Schedule is required to create a scheduled action.")
    expression, next_time = text_member(action, "Schedule"), _schedule(action)
    if AT.fullmatch(expression) and next_time(number(action, LOOKED)) is None:
        raise invalid(f"Schedule {expression} is in the past.")
    wanted = capacities_of(action)
    if not wanted:
        raise invalid("ScalableTargetAction must set MinCapacity, MaxCapacity or both.")
    if any(value < 0 for value in wanted.values()):
        raise invalid("MinCapacity and MaxCapacity must be 0 or more.")
    if len(wanted) == len(CAPACITIES) and wanted["MinCapacity"] > wanted["MaxCapacity"]:
        raise invalid("MaxCapacity must be greater than or equal to MinCapacity.")
    if {"StartTime", "EndTime"} <= action.keys() and number(action, "StartTime") >= number(action, "EndTime"):
        raise invalid("EndTime must be later than StartTime.")
    return action


def view_of(action: Document) -> Document:
    """Return an entry of the response of DescribeScheduledActions."""
    return {key: value for key, value in action.items() if key != LOOKED}


def is_due(action: Document, now_s: float) -> bool:
    """Return whether an action came due since it was looked at, at a virtual date and time in seconds."""
    next_time = _schedule(action)
    due_s = next_time(number(action, LOOKED))
    first_s = number(action, "StartTime") if "StartTime" in action else float("-inf")
    last_s = number(action, "EndTime") if "EndTime" in action else float("inf")
    # A time before StartTime is passed over: the first one that counts comes after it.
    if due_s is not None and due_s < first_s:
        due_s = next_time(first_s - 1)
    return due_s is not None and due_s <= min(now_s, last_s)


def is_over(action: Document, now_s: float) -> bool:
    """Return whether an action never comes due again: Application Auto Scaling then deletes it."""
    next_s = _schedule(action)(now_s)
    return next_s is None or ("EndTime" in action and next_s > number(action, "EndTime"))


def capacities_of(action: Document) -> Mapping[str, int]:
    """Return the capacities that an action sets."""
    wanted = child(action, "ScalableTargetAction")
    return {name: whole(wanted, name) for name in CAPACITIES if name in wanted}


def _schedule(action: Document) -> NextTime:
    start_s = number(action, "StartTime" if "StartTime" in action else "CreationTime")
    return parsed_schedule(text_member(action, "Schedule"), text_member(action, "Timezone"), start_s)


def _seconds(written: object) -> float:
    if isinstance(written, int | float):
        return float(written)
    try:
        return float(parse_to_aware_datetime(str(written)).timestamp())
    except (ValueError, OverflowError) as error:
        raise invalid(f"{written} is no time.") from error


NextTime = Callable[[float], float | None]
"""The next moment of a schedule after another one, in seconds since the epoch; None for no more within 4 years."""


def parsed_schedule(expression: str, timezone: str, start_s: float) -> NextTime:
    """Return when the schedule of an expression comes due.

    Args:
        start_s: When a rate begins, in seconds since the epoch.

    Raises:
        ApiError: ValidationException, the expression or the time zone isn't valid.
    """
    try:
        zone: tzinfo = ZoneInfo(timezone) if timezone else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise invalid(f"Timezone {timezone} is not valid.") from error
    wrong = invalid(f"Schedule expression {expression} is not valid: use at(...), rate(...) or cron(...).")
    if match := AT.fullmatch(expression):
        try:
            at_s = datetime.fromisoformat(match[1]).replace(tzinfo=zone).timestamp()
        except ValueError as error:
            raise wrong from error
        return lambda after_s: at_s if at_s > after_s else None
    if (match := RATE.fullmatch(expression)) and int(match[1]) > 0:
        every_s = int(match[1]) * UNITS[match[2]]
        return lambda after_s: start_s + max(1, math.floor((after_s - start_s) / every_s) + 1) * every_s
    if (fields := eventbridge._parse_cron_fields(expression)) is None:  # noqa: SLF001 (the contract)
        raise wrong

    def next_fire(after_s: float) -> float | None:
        fires = eventbridge._cron_next_fire(fields, datetime.fromtimestamp(after_s, zone))  # noqa: SLF001 (the contract)
        return float(fires.timestamp()) if fires else None

    return next_fire
