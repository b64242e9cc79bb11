"""The stack that an environment's endpoints share: the trial service, the topic of their alarms, their schedules."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_cloudformation as cloudformation
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from seatrial.specs.environment import EVERYONE, given_topics, named_audiences
from seatrial.specs.guardrails.enforcement import JUDGED, guard_rules
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions, role_arguments
from seatrial_cdk.endpoint.serving_container import archive_file
from seatrial_cdk.observability.endpoint_alarms import AlarmTopic, topic_arn
from seatrial_cdk.observability.environment_dashboard import define_budgets
from seatrial_cdk.observability.on_call import OnCallTopics
from seatrial_cdk.place import shared_stack
from seatrial_cdk.service_function import ServiceStack
from seatrial_cdk.trials.trial_service import TrialService, function_arn, service_name
from seatrial_cdk.value_checks import in_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import Duration

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_cdk.endpoint.endpoint_interface import ComponentEndpoint

LONGEST_SCHEDULE_NAME: Final = 64  # EventBridge Scheduler API reference, CreateSchedule
DIGITS: Final = 6
LONGEST_DELAY_S: Final = 3600
"""How long the call of a trial may be repeated after its time, in seconds; EventBridge Scheduler's default is a day."""


class TrialsStack(ServiceStack):
    """The trial service of one environment, the group of its schedules, and its alarms' topic where none is given.

    The stacks of its endpoints depend on it.

    Args:
        any_stack: Stacks ask for trials whatever their names, not only those that `app.py` makes.
        network: The VPC of the service's function; default: that of the environment.
        key: Key of results and topic; default: that of the environment, else a new one.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        environment: EnvironmentSpec,
        any_stack: bool = False,
        network: ContainerNetwork | None = None,
        key: kms.IKey | None = None,
    ) -> None:
        name = service_name(environment.name)
        description = f"Trials of the endpoints of {environment.name}"
        super().__init__(scope, name=name, description=description, environment=environment)
        if key is None and environment.kms_key_arn is not None:
            key = kms.Key.from_key_arn(self, "Key", environment.kms_key_arn)
        self.service = TrialService(
            self,
            "Service",
            environment=environment.name,
            network=network or ContainerNetwork.of(environment.network),
            key=key,
            role_options=self._role_options,
            removal=environment.removal,
            findings_topic_arn=None
            if environment.trial_schedule is None
            else environment.alarms.topic_arn or topic_arn(self, environment.name),
            further_topic_arns=() if environment.trial_schedule is None else _further_topics(self, environment),
            retention=environment.retention,
            audit=environment.audit,
            any_stack=any_stack or environment.vending,
        )
        results_key = self.service.results.key
        self.alarms = (
            AlarmTopic(self, "Alarms", environment=environment.name, key=results_key)
            if environment.alarms.topic_arn is None
            else None
        )
        notified = (
            OnCallTopics(
                self,
                "OnCall",
                environment=environment,
                key=results_key,
                own=self.alarms,
                role_options=self._role_options,
            ).topics
            if environment.alarms.notify
            else {}
        )
        define_budgets(self, environment, self.alarms, notified)
        if environment.trial_schedule is not None:
            TrialScheduleGroup(self, "Schedules", environment=environment.name, role_options=self._role_options)
        if environment.guard_rails.enforcement is not None:
            GuardRailHook(self, "GuardRails", environment=environment, role_options=self._role_options)
        CfnOutput(self, "ResultsBucket", value=self.service.results.bucket.bucket_name)
        CfnOutput(self, "SigningKey", value=self.service.signing_key.key_arn)
        if self.service.records is not None:
            CfnOutput(self, "RecordsBucket", value=self.service.records.bucket.bucket_name)
        CfnOutput(self, "Workflow", value=self.service.state_machine.attr_arn)


def _further_topics(stack: Stack, environment: EnvironmentSpec) -> tuple[str, ...]:
    """Return the topics beside the environment's own that findings of one of its endpoints may go to."""
    alarms, named = environment.alarms, named_audiences(environment.alarms)
    made = [topic_arn(stack, environment.name, each) for each in named]
    return tuple(dict.fromkeys([*made, *(arn for each in (EVERYONE, *named) for arn in given_topics(alarms, each))]))


def trials_stack(scope: Construct, environment: EnvironmentSpec) -> TrialsStack:
    """Return the stack of an environment's trials in a stage or app; it is added when it is not there."""
    name = service_name(environment.name)
    return shared_stack(
        scope, name, TrialsStack, lambda root: TrialsStack(root, environment=environment, any_stack=True)
    )


class GuardRailHook(Construct):
    """The hook with which CloudFormation judges each resource by the environment's guard rails before it makes it.

    It needs no function. Of a resource, functions and parameters are resolved; of a stack as a whole they would not be.
    Requests of Cloud Control are judged too. The embedded AWS keeps the hook and judges nothing.

    Args:
        environment: Its guard rails with `enforcement`.
        role_options: Path and permissions boundary of the role that reads the rules.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: EnvironmentSpec,
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(scope, construct_id)
        stack, enforcement = Stack.of(self), environment.guard_rails.enforcement
        with archive_file("guard_rails.guard", guard_rules(environment).encode()) as path:
            rules = assets.Asset(self, "Rules", path=path)
        reads = iam.PolicyStatement(
            actions=["s3:GetObject", "s3:GetObjectVersion"],
            resources=[rules.bucket.arn_for_objects(rules.s3_object_key)],
        )
        lists = iam.PolicyStatement(actions=["s3:ListBucket"], resources=[rules.bucket.bucket_arn])
        # A bootstrap with a key of its own encrypts the bucket with it; which one, a template does not know.
        decrypts = iam.PolicyStatement(
            actions=["kms:Decrypt"],
            resources=[stack.format_arn(service="kms", resource="key", resource_name="*")],
            conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}},
        )
        self.role = iam.Role(
            self,
            "Role",
            **role_arguments(role_options),
            description=f"Reads the guard rails of {environment.name}",
            assumed_by=iam.ServicePrincipal(
                "hooks.cloudformation.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {
                        "aws:SourceArn": stack.format_arn(
                            service="cloudformation", resource="type", resource_name="hook/*"
                        )
                    },
                },
            ),
            inline_policies={"Read": iam.PolicyDocument(statements=[reads, lists, decrypts])},
        )
        hook = cloudformation.CfnGuardHook
        targets = [
            hook.HookTargetProperty(target_name=kind, action=action, invocation_point="PRE_PROVISION")
            for kind in JUDGED
            for action in ("CREATE", "UPDATE")
        ]
        self.hook = hook(
            self,
            "Resource",
            alias=f"Seatrial::GuardRails::Of{environment.name.capitalize()}",
            execution_role=self.role.role_arn,
            failure_mode="FAIL" if enforcement is not None and enforcement.mode == "fail" else "WARN",
            hook_status="ENABLED",
            rule_location=hook.S3LocationProperty(uri=rules.s3_object_url),
            target_operations=["RESOURCE", "CLOUD_CONTROL"],
            target_filters=hook.TargetFiltersProperty(targets=targets),
        )


class TrialScheduleGroup(Construct):
    """The group of an environment's schedules, and the role with which they call its trial service.

    Both have fixed names, so that no stack exports them. A rule of EventBridge for each endpoint would need no role,
    but all would start at once, and an event bus has 300 rules (EventBridge quotas).

    Args:
        role_options: Path and permissions boundary of the role; `TrialSchedule` gets the same path.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: str, role_options: RoleOptions = NO_OPTIONS
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        name = service_name(environment)
        self.group = scheduler.CfnScheduleGroup(self, "Resource", name=name)
        arn = stack.format_arn(service="scheduler", resource="schedule-group", resource_name=name)
        calls = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function_arn(stack, environment)])
        self.role = iam.Role(
            self,
            "Role",
            role_name=_role_name(stack, environment),
            **role_arguments(role_options),
            description=f"Schedules of trials of {environment}",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": arn}},
            ),
            inline_policies={"Call": iam.PolicyDocument(statements=[calls])},
        )


class TrialSchedule(Construct):
    """A schedule that asks the environment's trial service for a trial of what is live.

    A candidate beside the endpoint is loaded and deleted; users are not touched and nothing is updated. The stack of
    the trial service has the group and the role (`TrialScheduleGroup`). Each call has an ID of its own.

    Args:
        endpoint: What is tried.
        expression: When, as `cron(...)` in UTC or `rate(...)`.
        window_minutes: The trial starts at some time in this many minutes after that, which spreads the trials of an
            environment; 0 starts all of them at once.
        role_path: Path of the role of the environment's schedules.
        topic_arns: Topics of the endpoint alone that are told of findings, beside the environment's.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ComponentEndpoint,
        environment: str,
        expression: str,
        window_minutes: int | Duration,
        role_path: str | None = None,
        topic_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        stack, window_minutes = Stack.of(self), in_unit(window_minutes, "minutes")
        called = {
            "EndpointName": endpoint.endpoint_name,
            "InferenceComponentName": endpoint.component_name,
            "StackId": stack.stack_id,
            "Id": "<aws.scheduler.scheduled-time>",  # the same for each attempt, unlike the execution ID
            **({"Topics": ",".join(topic_arns)} if topic_arns else {}),
        }
        window = scheduler.CfnSchedule.FlexibleTimeWindowProperty
        self.schedule = scheduler.CfnSchedule(
            self,
            "Resource",
            name=schedule_name(endpoint.endpoint_name),
            group_name=service_name(environment),
            description=f"Trials of {endpoint.endpoint_name} as it is live",
            schedule_expression=expression,
            flexible_time_window=window(mode="FLEXIBLE", maximum_window_in_minutes=window_minutes)
            if window_minutes
            else window(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function_arn(stack, environment),
                role_arn=schedule_role_arn(stack, environment, role_path),
                input=stack.to_json_string({"Scheduled": called}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(maximum_event_age_in_seconds=LONGEST_DELAY_S),
            ),
        )
        self.schedule.node.add_dependency(endpoint.component)


def schedule_role_arn(stack: Stack, environment: str, path: str | None) -> str:
    """Return the ARN of the role with which the schedules of an environment call its trial service."""
    name = f"{(path or '/')[1:]}{_role_name(stack, environment)}"
    return stack.format_arn(service="iam", region="", resource="role", resource_name=name)


def _role_name(stack: Stack, environment: str) -> str:
    """Return the name of the schedules' role; the names of roles are an account's, so it has the region."""
    return f"seatrial-{environment}-schedules-{stack.region}"


def schedule_name(endpoint_name: str) -> str:
    """Return the name of an endpoint's schedule; that of a long name ends with a digest of it."""
    name = f"seatrial-{endpoint_name}"
    if len(name) <= LONGEST_SCHEDULE_NAME:
        return name
    digest = sha256(endpoint_name.encode()).hexdigest()[:DIGITS]
    return f"{name[: LONGEST_SCHEDULE_NAME - DIGITS - 1]}-{digest}"
