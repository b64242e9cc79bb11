"""Removes what a run left in an account, found by the run's tag alone: also after a kill, from another machine."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from seatrial_base.tags import is_candidate_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Client = Any  # boto3's clients have no type of their own
    Clients = Callable[[str], Client]

RUN_TAG: Final = "seatrial-acceptance"
"""Every resource of a run on an account has this tag with the run's ID."""
PATH: Final = "/seatrial-acceptance/"
"""IAM path of the roles and users of the suite: the tagging API tells no users."""
LAUNCHED: Final = "SC-"
"""How the names of stacks begin that Service Catalog makes."""
IN_PROGRESS: Final = "_IN_PROGRESS"
LOOK_S: Final = 10.0
LATE_S: Final = 300.0
"""How long the tagging API may tell what is gone: an assumption."""


@dataclass(frozen=True, slots=True)
class Found:
    """A stack of a run.

    Attributes:
        name: Its name.
        status: Its status.
        run: The run's ID.
    """

    name: str
    status: str
    run: str


def runs_stacks(clients: Clients, environment: str, run: str | None) -> list[Found]:
    """Return the stacks of a run, or of all runs in an environment, the one to delete first at the front."""
    found = []
    for page in clients("cloudformation").get_paginator("describe_stacks").paginate():
        for stack in page["Stacks"]:
            tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}
            ours = stack["StackName"].startswith((f"seatrial-{environment}-", LAUNCHED))
            if RUN_TAG in tags and ours and run in (None, tags[RUN_TAG]):
                found.append(Found(stack["StackName"], stack["StackStatus"], tags[RUN_TAG]))
    return sorted(found, key=_rank)


def _rank(stack: Found) -> tuple[int, str]:
    """Order stacks: launched products, endpoints, then what they need."""
    if stack.name.startswith(LAUNCHED):
        return 0, stack.name
    last = {"-products": 2, "-trials": 3, "-optimizations": 3}
    return next((rank for end, rank in last.items() if stack.name.endswith(end)), 1), stack.name


def remove(
    clients: Clients,
    environment: str,
    run: str | None,
    *,
    longest_s: float,
    tell: Callable[[str], object] = print,
    look_s: float = LOOK_S,
) -> list[str]:
    """Delete everything of a run, and return what is still there when the time is over.

    An update that is under way is cancelled first. A stack whose deletion failed is deleted again: an endpoint can't be
    deleted while a component of it is being created.
    """
    deadline = time.monotonic() + longest_s
    told: set[str] = set()
    groups: set[str] = set()
    while (stacks := runs_stacks(clients, environment, run)) and time.monotonic() < deadline:
        first = _rank(stacks[0])[0]
        for stack in (each for each in stacks if _rank(each)[0] == first):
            if stack.name not in told:
                told.add(stack.name)
                groups |= {*_log_groups(clients, stack)}
                tell(f"removing {stack.name} ({stack.status})")
            _delete(clients, stack)
        time.sleep(look_s)
    for name in _people(clients, run, environment):
        tell(f"removed {name}")
    _delete_logs(clients, groups)
    late = time.monotonic() + LATE_S
    while (found := left(clients, environment, run)) and not stacks and time.monotonic() < late:
        time.sleep(look_s)  # the tagging API tells for some time what is gone
    return found


def _delete(clients: Clients, stack: Found) -> None:
    cloudformation = clients("cloudformation")
    with suppress(ClientError):  # it changes its status meanwhile; the next look tells
        if stack.status.startswith("UPDATE") and stack.status.endswith(IN_PROGRESS) and "ROLLBACK" not in stack.status:
            cloudformation.cancel_update_stack(StackName=stack.name)
        elif not stack.status.endswith(IN_PROGRESS) or stack.status == "CREATE_IN_PROGRESS":
            cloudformation.delete_stack(StackName=stack.name)


def _people(clients: Clients, run: str | None, environment: str) -> Iterator[str]:
    """Delete roles and users of the suite, and yield their names."""
    iam = clients("iam")
    for user in iam.list_users(PathPrefix=PATH)["Users"]:
        name = user["UserName"]
        if run in (None, name.rpartition("-")[2]):
            for key in iam.list_access_keys(UserName=name)["AccessKeyMetadata"]:
                iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
            for policy in iam.list_user_policies(UserName=name)["PolicyNames"]:
                iam.delete_user_policy(UserName=name, PolicyName=policy)
            iam.delete_user(UserName=name)
            yield name
    for role in iam.list_roles(PathPrefix=PATH)["Roles"]:
        name = role["RoleName"]
        if name == smoke_name(environment):
            for policy in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
                iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
                iam.delete_role_policy(RoleName=name, PolicyName=policy)
            iam.delete_role(RoleName=name)
            yield name


def smoke_name(environment: str, stack: str | None = None) -> str:
    """Return the name of the role and the function that `smoke.py` makes, or of one of its stacks."""
    return f"seatrial-acceptance-{environment}" if stack is None else f"seatrial-{environment}-smoke-{stack}"


def left_of_smoke(clients: Clients, environment: str, longest_s: float) -> list[str]:
    """Delete what `smoke.py` makes, by its names, and return what can't be deleted."""
    cloudformation, name = clients("cloudformation"), smoke_name(environment)
    pages = cloudformation.get_paginator("describe_stacks").paginate()
    stacks = [each["StackName"] for page in pages for each in page["Stacks"]]
    calls: list[Callable[[], object]] = [
        *(
            partial(cloudformation.delete_stack, StackName=each)
            for each in stacks
            if smoke_name(environment, "") in each
        ),
        partial(clients("lambda").delete_function, FunctionName=name),
        lambda: [*_people(clients, "", environment)],
    ]
    deadline = time.monotonic() + longest_s
    while (errors := [error for error in map(_error_of, calls) if error]) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return errors


def _error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except ClientError as error:
        return "" if error.response["Error"]["Code"] == "ResourceNotFoundException" else f"{error}"
    return ""


LOGGED: Final = {
    "AWS::SageMaker::Endpoint": "/aws/sagemaker/Endpoints",
    "AWS::SageMaker::InferenceComponent": "/aws/sagemaker/InferenceComponents",
    "AWS::Lambda::Function": "/aws/lambda",
}
"""Where the containers and functions of a stack's resources write, by resource type."""


def _log_groups(clients: Clients, stack: Found) -> Iterator[str]:
    """Yield the log groups of a stack's containers and functions, which no stack has: other endpoints keep theirs."""
    for page in clients("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack.name):
        for each in page["StackResourceSummaries"]:
            prefix, physical_id = LOGGED.get(each["ResourceType"]), each.get("PhysicalResourceId")
            if prefix is not None and physical_id:
                yield f"{prefix}/{physical_id.rpartition('/')[2]}"


def _delete_logs(clients: Clients, groups: set[str]) -> None:
    """Delete log groups, and those of the candidates that were tried on their endpoints."""
    logs, components = clients("logs"), LOGGED["AWS::SageMaker::InferenceComponent"]
    endpoints = {group.rpartition("/")[2] for group in groups if group.startswith("/aws/sagemaker/Endpoints/")}
    candidates = [
        group["logGroupName"]
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"{components}/")
        for group in page["logGroups"]
        if any(is_candidate_name_of(group["logGroupName"].rpartition("/")[2], endpoint) for endpoint in endpoints)
    ]
    for name in (*groups, *candidates):
        with suppress(ClientError):
            logs.delete_log_group(logGroupName=name)


def left(clients: Clients, environment: str, run: str | None) -> list[str]:
    """Return what is left of a run: stacks, and resources that the tagging API tells, which may be late by minutes."""
    stacks = [f"stack {stack.name} ({stack.status})" for stack in runs_stacks(clients, environment, run)]
    wanted = {"Key": RUN_TAG, **({"Values": [run]} if run else {})}
    pages = clients("resourcegroupstaggingapi").get_paginator("get_resources").paginate(TagFilters=[wanted])
    arns = [each["ResourceARN"] for page in pages for each in page["ResourceTagMappingList"]]
    return [*stacks, *(arn for arn in arns if _is_there(clients, arn))]


def _is_there(clients: Clients, arn: str) -> bool:
    """Tell whether what the tagging API names is still there, where its service can be asked; else it is believed.

    A key is kept for a week before it is deleted, and costs nothing meanwhile (AWS KMS pricing).
    """
    try:
        if ":sagemaker:" in arn:
            clients("sagemaker").list_tags(ResourceArn=arn)
        elif ":kms:" in arn:
            return bool(clients("kms").describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] != "PendingDeletion")
    except ClientError:
        return False
    return True
