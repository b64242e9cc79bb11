"""A service of Seatrial in an account: a function on an archive made at synth, its log, the workflow that calls it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from aws_cdk import RemovalPolicy, Stack, Tags, aws_logs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from seatrial_cdk.endpoint.execution_role import RoleOptions, role_arguments
from seatrial_cdk.endpoint.serving_container import archive_file
from seatrial_cdk.place import stack_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_cdk.endpoint.container_network import ContainerNetwork


class EnvironmentService(Construct):
    """A service of Seatrial in an account: its role, its function and its workflow have its name and options."""

    name: str
    role_options: RoleOptions
    role: iam.Role
    function: lambda_.CfnFunction


class ServiceStack(Stack):
    """A stack of what the endpoints of one environment share."""

    def __init__(self, scope: Construct, *, name: str, description: str, environment: EnvironmentSpec) -> None:
        super().__init__(scope, name, stack_name=name, description=description, env=stack_environment(environment))
        self._role_options = RoleOptions.of(self, environment.security)
        if self._role_options.permissions_boundary is not None:  # the CDK's own functions have roles too
            iam.PermissionsBoundary.of(self).apply(self._role_options.permissions_boundary)
        for tag, value in environment.tags.items():
            Tags.of(self).add(tag, value)


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
    scope: EnvironmentService,
    construct_id: str,
    *,
    description: str,
    assumed_by: str,
    policies: Mapping[str, iam.PolicyDocument],
) -> iam.Role:
    """Define a role of the service, with its policies in it."""
    return iam.Role(
        scope,
        construct_id,
        description=description,
        assumed_by=iam.ServicePrincipal(assumed_by),
        **role_arguments(scope.role_options),
        inline_policies={**policies},
    )


def service_function(
    scope: EnvironmentService,
    *,
    description: str,
    handler: str,
    archive: tuple[str, bytes],
    timeout_s: int,
    memory_mb: int,
    variables: Mapping[str, str],
    logs: aws_logs.LogGroup,
    network: ContainerNetwork | None = None,
) -> lambda_.CfnFunction:
    """Define the function of a service.

    Args:
        network: Subnets and security groups; default: Lambda's own network.
    """
    with archive_file(*archive) as path:
        code = lambda_.Code.from_asset(path).bind(scope).s3_location
    if code is None:
        raise TypeError("an archive is an asset in S3")
    return lambda_.CfnFunction(
        scope,
        "Function",
        function_name=scope.name,
        description=description,
        runtime=lambda_.Runtime.PYTHON_3_13.name,
        architectures=[lambda_.Architecture.ARM_64.name],
        handler=handler,
        code=lambda_.CfnFunction.CodeProperty(s3_bucket=code.bucket_name, s3_key=code.object_key),
        role=scope.role.role_arn,
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
    scope: EnvironmentService, *, description: str, definition: Mapping[str, object]
) -> sfn.CfnStateMachine:
    """Define the workflow of a service, which may call its function and nothing else.

    Args:
        definition: In Amazon States Language, with `${Function}` in place of the function's ARN.
    """
    calling = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[scope.function.attr_arn])
    role = service_role(
        scope,
        "WorkflowRole",
        description=description,
        assumed_by="states.amazonaws.com",
        policies={"Call": iam.PolicyDocument(statements=[calling])},
    )
    return sfn.CfnStateMachine(
        scope,
        "Workflow",
        state_machine_name=scope.name,
        state_machine_type="STANDARD",
        definition=definition,
        definition_substitutions={"Function": scope.function.attr_arn},
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
