"""A Lambda function of the trial, with a role and a log group of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNTIME_PACKAGE = "seatrial_cdk.smoke_benchmark.runtime"


class TrialFunction(Construct):
    """One handler of the runtime package; its role may write its own log group and what it is granted.

    Args:
        module: Module of the runtime package that holds `handler`.
        code: The archive of the runtime.
        timeout: How long one call may take.
        environment: Variables of the handler.
        memory_mb: Memory in MiB; the CPU grows with it.
        async_retries: How often Lambda repeats a failed asynchronous call; default: Lambda's own (twice).
        max_event_age: How long an asynchronous call may wait for its start; default: Lambda's own (six hours).
        keep_logs: The log group outlives the stack, and its rolled-back creation; its events end after a month anyway.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        module: Literal["on_event", "is_complete", "runner", "fleet_steps", "fleet_worker"],
        code: lambda_.Code,
        timeout: Duration,
        environment: Mapping[str, str],
        memory_mb: int = 256,
        async_retries: int | None = None,
        max_event_age: Duration | None = None,
        keep_logs: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = log_group_of(self, keep=keep_logs)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Resource",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"{RUNTIME_PACKAGE}.{module}.handler",
            code=code,
            role=self.role,
            timeout=timeout,
            memory_size=memory_mb,
            environment=dict(environment),
            log_group=log_group,
            retry_attempts=async_retries,
            max_event_age=max_event_age,
        )


def log_group_of(scope: Construct, *, keep: bool = False) -> logs.LogGroup:
    """Define a log group whose events end after a month; it goes with its stack, unless it is to be kept."""
    policy = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
    return logs.LogGroup(scope, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=policy)
