"""Whose rights a stack is deployed with: a role's, given to one operation and remembered, or else the caller's.

MiniStack forgets the `RoleARN` of a request. As on AWS, an operation without one takes that of the operation before
(API reference, CreateStack), and without any CloudFormation acts with the rights of its caller; the account's root has
them all. The deployer reaches the operation's task, and its threads, by their context.

A refusal has the words that the event of a resource has (reported messages). `{{resolve:…}}` of a template is read with
the same rights: a secret needs `secretsmanager:GetSecretValue`, a parameter `ssm:GetParameters`; what a key of the
account encrypts needs `kms:Decrypt` too, through the service that keeps it. Keys that AWS owns need no right.
"""

from __future__ import annotations

import contextvars
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import botocore.session
from ministack.core import iam_evaluator
from ministack.core.responses import get_region
from ministack.services import secretsmanager, ssm
from ministack.services.cloudformation import changesets, engine, handlers

from seatrial_laptop.aws.api import ApiError, service_model
from seatrial_laptop.aws.json_document import Document, text_member
from seatrial_laptop.aws.ministack import (
    find_role,
    parameter,
    stack_operations,
    user_principal,
    validation_error,
    wrapper,
)
from seatrial_laptop.aws.rights import Right, denial, role_denial
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_laptop.aws.ministack import Parameters, Response


OPERATIONS: Final = (
    "CreateStack",
    "UpdateStack",
    "DeleteStack",
    "CreateChangeSet",
    "ExecuteChangeSet",
    "ContinueUpdateRollback",
    "RollbackStack",
)
"""What deploys, and takes a role or remembers one."""
_MAKES: Final = ("CreateStack", "UpdateStack", "CreateChangeSet")
"""Operations that begin with a template; its policies name the stack's Region, and our handlers know one alone."""
PROVISIONED: Final = "SC-"
"""How the names of Service Catalog's stacks begin: it assumes the launch role, and calls CloudFormation with it."""
SESSIONS: Final = (
    ("cloudformation.amazonaws.com", "AWSCloudFormation"),
    ("servicecatalog.amazonaws.com", "servicecatalog"),
)
"""Which service assumes the role of a stack, and how it names its session; at the end, for those of Service Catalog.

The names are those of reported error messages, as `assumed-role/cdk-hnb659fds-cfn-exec-role-…/AWSCloudFormation`.
"""
KEPT: Final = "RoleARN"
SUCCEEDED: Final = 300

CLIENTS: Final = {"states": "stepfunctions"}
"""The name of a service's model where it is not the prefix of its actions."""
FORBIDDEN, BAD_REQUEST = 403, 400

OWNED_BY_AWS: Final = "alias/aws/"
SECRET_ARN_PARTS: Final = 7


@dataclass(frozen=True, slots=True)
class Deployer:
    """A role or user that deploys.

    Attributes:
        session_name: The name of the role's session, which error messages show; empty for a user.
    """

    arn: str
    session_name: str


deployer: Final[contextvars.ContextVar[Deployer | None]] = contextvars.ContextVar("deployer", default=None)
"""Who deploys in this task or thread; `None` is the root."""


def remember_deployers() -> None:
    """Let MiniStack's operations run with the role that they are given or their stack had, or as their caller."""
    actions = stack_operations()
    for name in OPERATIONS:
        actions[name] = partial(_with_role, name, actions[name])


def _with_role(name: str, theirs: Callable[[Parameters], Response], params: Parameters) -> Response:
    region = get_region()
    if region != REGION and name in _MAKES:
        message = f"the embedded AWS is in {REGION} alone, not in {region}: give each environment of the embedded AWS: "
        return validation_error(f"{message}region: {REGION}")
    # A request names the stack, its ID, or a change set.
    change_set = _change_set(params)
    named = parameter(params, "StackName") or (str(change_set["StackName"]) if change_set else "")
    stack = named.partition(":stack/")[2].partition("/")[0] or named
    # The role of the change set that is executed, or of the stack's operation before.
    records = [change_set if name == "ExecuteChangeSet" else None, _stack(stack)]
    kept = next((str(record[KEPT]) for record in records if record and KEPT in record), "")
    arn = parameter(params, "RoleARN") or kept
    service, session = SESSIONS[stack.startswith(PROVISIONED)]
    if arn and not is_trusting(arn, service):
        return validation_error(f"Role {arn} is invalid or cannot be assumed")
    token = deployer.set(Deployer(arn, session) if arn else _caller())
    try:
        answer = theirs(params)
    finally:
        deployer.reset(token)
    if arn and answer[0] < SUCCEEDED:
        # A change set keeps the role until it is executed, a stack for its next operation.
        record = _change_set(params) if name == "CreateChangeSet" else _stack(stack)
        if record is not None:
            record[KEPT] = arn
    return answer


def _caller() -> Deployer | None:
    """Return the user, or the role's session, that calls; `None` for the root."""
    arn = str(iam_evaluator.caller_arn())
    if ":user/" in arn:
        return Deployer(arn, "")
    if ":assumed-role/" not in arn:
        return None
    _, name, session_name = arn.split("/", 2)
    return Deployer(f"arn:aws:iam::{own_account()}:role/{name}", session_name)


def _change_set(params: Parameters) -> dict[str, object] | None:
    name, stack = parameter(params, "ChangeSetName"), parameter(params, "StackName")
    _, record = changesets._find_change_set(name, stack)  # noqa: SLF001 (the contract)
    return cast("dict[str, object] | None", record)


def _stack(name: str) -> dict[str, object] | None:
    return cast("dict[str, object] | None", handlers._resolve_stack(name))  # noqa: SLF001 (the contract)


def is_trusting(role_arn: str, service: str) -> bool:
    """Tell whether a role that exists trusts a service, which sends no condition key when it assumes the role."""
    role = find_role(role_arn.rpartition("/")[2])
    context = iam_evaluator.EvalContext(
        principal_arn=service,
        principal_type="Service",
        principal_account="",
        action="sts:AssumeRole",
        resource_arn=role_arn,
        region="",
    )
    trust = role["AssumeRolePolicyDocument"] if role else None
    return bool(iam_evaluator.evaluate_resource_policy(trust, context, service).decision == "Allow")


def check_right(by: Deployer, right: Right) -> None:
    """Refuse what who deploys may not do.

    Raises:
        ApiError: AccessDenied, in CloudFormation's words.
    """
    if denied := (
        role_denial(by.arn, right, by.session_name) if by.session_name else denial(user_principal(by.arn), right)
    ):
        raise ApiError("AccessDenied", _of_handler(right, denied))


def _of_handler(right: Right, denied: str) -> str:
    """Return IAM's refusal as a handler passes it on; IAM's own service calls a role by its name."""
    service = right.action.partition(":")[0]
    if service == "iam" and right.action != "iam:PassRole" and ":role/" in right.resource:
        denied = denied.replace(right.resource, f"role {right.resource.rpartition('/')[2]}")
    called, status = CLIENTS.get(service, service), FORBIDDEN
    if called in botocore.session.get_session().get_available_services():
        model = service_model(called)
        # The name is that of the SDK for Java; the JSON protocol refuses with 400.
        words = f"{model.service_id}".split()
        called = "".join(word.capitalize() if word.isupper() and not word.isdigit() else word for word in words)
        status = BAD_REQUEST if model.metadata["protocol"] == "json" else FORBIDDEN
    answered = f"(Service: {called}, Status Code: {status}, Request ID: {uuid.uuid4()}) (SDK Attempt Count: 1)"
    return handler_message(f"{denied} {answered}", "AccessDenied")


def handler_message(message: str, code: str) -> str:
    """Return a service's refusal as the event of a resource has it."""
    return f'Resource handler returned message: "{message}" (RequestToken: {uuid.uuid4()}, HandlerErrorCode: {code})'


def resolve_with_rights() -> None:
    """Let MiniStack check rights before it resolves a dynamic reference."""

    @wrapper("_resolve_dynamic_reference", engine)
    def resolve(theirs: Callable[[str], str], literal: str) -> str:
        if by := deployer.get():
            for right in reference_rights(literal):
                check_right(by, right)
        return theirs(literal)


def reference_rights(literal: str) -> Iterator[Right]:
    """Return the rights that a dynamic reference needs of the role that deploys.

    Args:
        literal: As `{{resolve:secretsmanager:seatrial/hub-token}}`.
    """
    service, _, body = literal.removeprefix("{{resolve:").removesuffix("}}").partition(":")
    if service == "secretsmanager":
        parts = body.split(":")
        named = ":".join(parts[:SECRET_ARN_PARTS]) if body.startswith("arn:") else parts[0]
        _, record = secretsmanager._resolve(named, use_arn_scope=True)  # noqa: SLF001 (the contract)
        secret = cast("Document", record or {})
        arn = text_member(secret, "ARN", f"arn:aws:secretsmanager:{REGION}:{own_account()}:secret:{named}")
        yield Right("secretsmanager:GetSecretValue", arn)
        yield from _key_rights(str(secret.get("KmsKeyId") or ""), "secretsmanager")
    else:
        name = body.partition(":")[0]
        _, record = ssm._lookup_parameter(name, flexible_name=True)  # noqa: SLF001 (the contract)
        slash = "" if name.startswith("/") else "/"
        yield Right("ssm:GetParameters", f"arn:aws:ssm:{REGION}:{own_account()}:parameter{slash}{name}")
        yield from _key_rights(str((record or {}).get("KeyId") or ""), "ssm")


def _key_rights(key: str, service: str) -> Iterator[Right]:
    if key and not key.startswith(OWNED_BY_AWS):
        arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{own_account()}:key/{key}"
        yield Right("kms:Decrypt", arn, {"kms:viaservice": f"{service}.{REGION}.amazonaws.com"})
