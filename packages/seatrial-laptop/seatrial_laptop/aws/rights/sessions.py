"""Rights of whoever calls MiniStack's services, and of its services that act with a role.

MiniStack evaluates the policies of users and of roles' sessions (`AUTH=true`), the trust policies of roles, and the
policies of buckets, keys, functions and topics. Added here, through names that are not its interface
(`packages/seatrial-laptop/tests/laptop` holds the contract on them): condition keys and ARNs that it leaves out; and
that Step Functions, EventBridge and EventBridge Scheduler invoke a function only where their role, or the function's
policy, allows it.
"""

from __future__ import annotations

import contextvars
import re
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from ministack.core import iam_evaluator
from ministack.services import eventbridge, lambda_svc, stepfunctions

from seatrial_laptop.aws.json_document import Document, children, text_member
from seatrial_laptop.aws.ministack import find_role, wrap
from seatrial_laptop.aws.rights.role_rights import (
    ALLOW,
    Right,
    encryption_right,
    json_object,
    role_arn_with_path,
    role_denial,
)
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


INVOKE_FUNCTION: Final = "lambda:InvokeFunction"
ROLE_KEYS: Final = frozenset(
    f"iam:{name}"
    for name in (
        "AttachRolePolicy",
        "CreateRole",
        "DeleteRolePolicy",
        "DetachRolePolicy",
        "PutRolePermissionsBoundary",
        "PutRolePolicy",
    )
)
"""Actions that carry `iam:PermissionsBoundary` (Service Authorization Reference, IAM)."""
TARGET_ACTIONS: Final = {"lambda": INVOKE_FUNCTION, "states": "states:StartExecution", "sns": "sns:Publish"}

_ENTRY: Final = re.compile(r"(?P<name>[^.]+)\.member\.(?P<number>[0-9]{1,6})")
"""An entry of a list of texts in the query protocol."""

NOTHING: Final[Document] = MappingProxyType({})
_parameters: Final[contextvars.ContextVar[Document]] = contextvars.ContextVar("_parameters", default=NOTHING)
"""The parameters of the request that this task answers."""
_workflow_role: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("_workflow_role", default="")
"""The role of the workflow whose task runs in this context."""


def request_parameters(query: Mapping[str, Sequence[str]], body: bytes, content_type: str) -> Document:
    """Return the parameters of a request: of a JSON body, or of a query and a form.

    There each name has its first value, and a list one value for each `NAME.member.1` and so on, as clients wrote those
    of CloudWatch before it took JSON (botocore 1.34).
    """
    if body[:1] == b"{":
        return json_object(body)
    form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True) if "form" in content_type else {}
    given = {name: values[0] for name, values in {**query, **form}.items() if values}
    entries: dict[str, dict[int, str]] = {}
    for name, value in given.items():
        if match := _ENTRY.fullmatch(name):
            entries.setdefault(match["name"], {})[int(match["number"])] = value
    return {**given, **{name: [of[number] for number in sorted(of)] for name, of in entries.items()}}


def pin_parameters(parameters: Document) -> None:
    """Remember what this task's request asks for, until the next request."""
    _parameters.set(parameters)


def evaluate_sessions() -> None:
    """Let MiniStack evaluate what it leaves out."""
    iam_evaluator.enforce = _completed(iam_evaluator.enforce)
    wrap("_execute_task", _with_workflow_role, stepfunctions)
    wrap("_call_lambda", _allowed_call, stepfunctions)
    wrap("_invoke_target", _allowed_target, eventbridge)


def _completed(theirs: Callable[..., object]) -> Callable[..., object]:
    def enforce(
        access_key_id: str,
        iam_action: str,
        # The service and the Region.
        *place: str,
        resource_arn: str = "*",
        service_context: Mapping[str, object] | None = None,
    ) -> object:
        parameters = _parameters.get()
        context = {**condition_keys(iam_action, parameters), **(service_context or {})}
        answers = (
            theirs(access_key_id, iam_action, *place, resource_arn=arn, service_context=context)
            for arn in resources_of(iam_action, resource_arn, parameters)
        )
        refused = next((answer for answer in answers if answer is not None), None)
        key = None if refused else encryption_right(iam_action, resource_arn)
        if key is None:
            return refused
        where = ("kms", place[-1])
        return theirs(access_key_id, key.action, *where, resource_arn=key.resource, service_context=dict(key.context))

    return enforce


def condition_keys(action: str, parameters: Document) -> dict[str, str | list[str]]:
    """Return the condition keys of an action that its service reads from the request.

    Source: Service Authorization Reference, the tables of condition keys of each service.
    """
    keys: dict[str, str | list[str]] = {}
    if action == "cloudwatch:PutMetricData":
        keys["cloudwatch:namespace"] = _text(parameters, "Namespace")
    if action == "events:PutEvents":
        entries = children(parameters, "Entries")
        keys["events:source"] = [_text(entry, "Source") for entry in entries]
        keys["events:detail-type"] = [_text(entry, "DetailType") for entry in entries]
    if action in ROLE_KEYS:
        keys["iam:permissionsboundary"] = _text(parameters, "PermissionsBoundary") or _boundary(
            _text(parameters, "RoleName")
        )
    if action == "iam:AttachRolePolicy":
        keys["iam:policyarn"] = _text(parameters, "PolicyArn")
    # A key of several values needs a set operator, so one with a single value is that value.
    plain = {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in keys.items()}
    return {key: value for key, value in plain.items() if value}


def resources_of(action: str, arn: str, parameters: Document) -> Iterator[str]:
    """Return the ARNs that an action is authorized on, where MiniStack knows one of several, or none."""
    prefix = f"{REGION}:{own_account()}"
    names = parameters.get("Names")
    alarms = parameters.get("AlarmNames")
    if action == "cloudwatch:DescribeAlarms":
        # Composite alarms are described with the scope * alone (CloudWatch user guide, permissions reference).
        types = parameters.get("AlarmTypes")
        composite = isinstance(types, list) and "CompositeAlarm" in types
        listed = [f"{name}" for name in alarms] if isinstance(alarms, list) and alarms and not composite else ["*"]
        yield from (f"arn:aws:cloudwatch:{prefix}:alarm:{name}" for name in listed)
    elif action == "ssm:GetParameters" and isinstance(names, list):
        yield from (f"arn:aws:ssm:{prefix}:parameter/{f'{name}'.lstrip('/')}" for name in names)
    elif action == "ssm:GetParametersByPath":
        yield f"arn:aws:ssm:{prefix}:parameter/{_text(parameters, 'Path').strip('/')}"
    elif action == "iam:CreateRole":
        yield f"arn:aws:iam::{own_account()}:role{_text(parameters, 'Path') or '/'}{_text(parameters, 'RoleName')}"
    elif ":role/" in arn and action.startswith("iam:"):
        yield role_arn_with_path(arn)
    else:
        yield arn


def _text(parameters: Document, key: str) -> str:
    value = parameters.get(key)
    return value if isinstance(value, str) else ""


def _boundary(role_name: str) -> str:
    role = find_role(role_name) if role_name else None
    return str((role or {}).get("PermissionsBoundary") or "")


def _with_workflow_role(theirs: Callable[..., object]) -> Callable[..., object]:
    def execute_task(state: object, raw_input: object, execution: Document, ctx: object) -> object:
        machine = stepfunctions._state_machines.get(text_member(execution, "stateMachineArn")) or {}  # noqa: SLF001 (the contract)
        token = _workflow_role.set(str(machine.get("roleArn", "")))
        try:
            return theirs(state, raw_input, execution, ctx)
        finally:
            _workflow_role.reset(token)

    return execute_task


def _allowed_call(theirs: Callable[..., object]) -> Callable[..., object]:
    def call_lambda(function: str, event: object) -> object:
        if refused := role_denial(
            _workflow_role.get(),
            Right(
                INVOKE_FUNCTION,
                function
                if function.startswith("arn:")
                else f"arn:aws:lambda:{REGION}:{own_account()}:function:{function}",
            ),
            "StepFunctions",
        ):
            raise stepfunctions._ExecutionError("Lambda.AWSLambdaException", refused)  # noqa: SLF001 (the contract)
        return theirs(function, event)

    return call_lambda


def _allowed_target(theirs: Callable[..., object]) -> Callable[..., object]:
    """Return what drops, as EventBridge does, an invocation that no policy allows; the log of this process tells it."""

    def invoke_target(target: Document, event: Document, rule: Document, view: object = None) -> object:
        if refused := target_denial(target, rule):
            sys.stderr.write(f"{_text(rule, 'Arn')}: the target was not invoked: {refused}\n")
            return None
        return theirs(target, event, rule, view)

    return invoke_target


def target_denial(target: Document, rule: Document) -> str | None:
    """Return why a rule or a schedule may not invoke its target; `None` when it may.

    A target with a role is invoked with it; a rule without one needs a statement of the function's own policy for
    `events.amazonaws.com` (EventBridge user guide, "Using resource-based policies").
    """
    arn = _text(target, "Arn")
    service = arn.split(":")[2] if arn.count(":") > 2 else ""  # noqa: PLR2004 (an ARN's third part)
    action = TARGET_ACTIONS.get(service)
    if role := _text(target, "RoleArn"):
        return role_denial(role, Right(action, arn), "EventBridge") if action else None
    if service != "lambda":
        return None
    policy, account = lambda_svc.function_policy_for_arn(arn) or ({}, own_account())
    context = iam_evaluator.EvalContext(
        principal_arn="events.amazonaws.com",
        principal_type="Service",
        principal_account=account,
        action=INVOKE_FUNCTION,
        resource_arn=arn,
        region=REGION,
        service_context={"aws:sourcearn": _text(rule, "Arn"), "aws:sourceaccount": account},
    )
    decision = iam_evaluator.evaluate_resource_policy(policy, context, "events.amazonaws.com").decision
    return (
        None
        if decision == ALLOW
        else f"no resource-based policy of {arn} allows {INVOKE_FUNCTION} to events.amazonaws.com"
    )
