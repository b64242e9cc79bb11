"""A service of Seatrial in an account: a function on an archive made at synth, its log, the workflow that calls it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from aws_cdk import RemovalPolicy, aws_logs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn

from seatrial_cdk.endpoint.execution_role import role_arguments
from seatrial_cdk.endpoint.serving_container import archive_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from constructs import Construct

    from seatrial_cdk.endpoint.container_network import ContainerNetwork
    from seatrial_cdk.endpoint.execution_role import RoleOptions


def log_group_of(scope: Construct, *, keep: bool = False, days: int | None = None) -> aws_logs.LogGroup:
    """Define a log group; it goes with its stack, unless it is to be kept.

    Args:
        keep: It stays when its stack is deleted.
        days: Days after which its events end, one of the values that CloudWatch Logs knows; default: a month.
    """
    policy = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
    group = aws_logs.LogGroup(scope, "Logs", retention=aws_logs.RetentionDays.ONE_MONTH, removal_policy=policy)
    if days is not None:
        resource = cast("aws_logs.CfnLogGroup", group.node.default_child)
        resource.retention_in_days = days
    return group


def service_role(
    scope: Construct,
    construct_id: str,
    *,
    description: str,
    assumed_by: str,
    policies: Mapping[str, iam.PolicyDocument],
    options: RoleOptions,
) -> iam.Role:
    """Define a role of the service, with its policies in it.

    Args:
        assumed_by: The AWS service, as `lambda.amazonaws.com`.
    """
    return iam.Role(
        scope,
        construct_id,
        description=description,
        assumed_by=iam.ServicePrincipal(assumed_by),
        **role_arguments(options),
        inline_policies={**policies},
    )


def service_function(
    scope: Construct,
    *,
    name: str,
    description: str,
    handler: str,
    archive: tuple[str, bytes],
    role: iam.Role,
    timeout_s: int,
    memory_mb: int,
    variables: Mapping[str, str],
    logs: aws_logs.LogGroup,
    network: ContainerNetwork | None = None,
) -> lambda_.CfnFunction:
    """Define the function of a service.

    Args:
        handler: As Lambda names it.
        archive: Name and content of its code.
        timeout_s: Longest call, in seconds.
        memory_mb: Memory, in MiB.
        network: Subnets and security groups; default: Lambda's own network.
    """
    with archive_file(*archive) as path:
        code = lambda_.Code.from_asset(path).bind(scope).s3_location
    if code is None:
        raise TypeError("an archive is an asset in S3")
    return lambda_.CfnFunction(
        scope,
        "Function",
        function_name=name,
        description=description,
        runtime=lambda_.Runtime.PYTHON_3_13.name,
        architectures=[lambda_.Architecture.ARM_64.name],
        handler=handler,
        code=lambda_.CfnFunction.CodeProperty(s3_bucket=code.bucket_name, s3_key=code.object_key),
        role=role.role_arn,
        timeout=timeout_s,
        memory_size=memory_mb,
        environment=lambda_.CfnFunction.EnvironmentProperty(variables={**variables}),
        logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=logs.log_group_name),
        vpc_config=lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=[*network.subnet_ids], security_group_ids=[*network.security_group_ids]
        )
        if network is not None and network.subnet_ids
        else None,
    )


def service_workflow(
    scope: Construct,
    *,
    name: str,
    description: str,
    definition: Mapping[str, object],
    function: lambda_.CfnFunction,
    options: RoleOptions,
) -> sfn.CfnStateMachine:
    """Define the workflow of a service, which may call its function and nothing else.

    Args:
        definition: In Amazon States Language, with `${Function}` in place of the function's ARN.
    """
    calling = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.attr_arn])
    role = service_role(
        scope,
        "WorkflowRole",
        description=description,
        assumed_by="states.amazonaws.com",
        policies={"Call": iam.PolicyDocument(statements=[calling])},
        options=options,
    )
    return sfn.CfnStateMachine(
        scope,
        "Workflow",
        state_machine_name=name,
        state_machine_type="STANDARD",
        definition=definition,
        definition_substitutions={"Function": function.attr_arn},
        role_arn=role.role_arn,
    )


def packed_modules(root: Path, modules: Iterable[Path]) -> dict[str, bytes]:
    """Return modules as files of an archive, named as below a root, so that imports read the same in a function."""
    return {module.relative_to(root.parent).as_posix(): module.read_bytes() for module in modules}


def handler_module(handler: str, module: str) -> dict[str, bytes]:
    """Return the module that a function's `Handler` names, with its packages; the name stays wherever the source is."""
    name, _, function = handler.rpartition(".")
    path = PurePosixPath(name.replace(".", "/"))
    packages = {f"{folder}/__init__.py": b"" for folder in list(path.parents)[:-2]}
    return {**packages, f"{path}.py": f"from {module} import {function} as {function}\n".encode()}
