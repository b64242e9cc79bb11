"""The stack that an environment's endpoints share: the trial service, and the topic of their alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import RoleOptions
from seatrial_cdk.observability.endpoint_alarms import AlarmTopic, topic_arn
from seatrial_cdk.observability.environment_dashboard import define_budget
from seatrial_cdk.place import shared_stack, stack_environment
from seatrial_cdk.trials.trial_schedule import TrialScheduleGroup
from seatrial_cdk.trials.trial_service import TrialService, service_name

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial.specs.environment import EnvironmentSpec


class TrialsStack(Stack):
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
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Trials of the endpoints of {environment.name}",
            env=stack_environment(environment),
        )
        options = RoleOptions.of(self, environment.security)
        if options.permissions_boundary is not None:  # the CDK's own functions have roles too
            iam.PermissionsBoundary.of(self).apply(options.permissions_boundary)
        if key is None and environment.kms_key_arn is not None:
            key = kms.Key.from_key_arn(self, "Key", environment.kms_key_arn)
        self.service = TrialService(
            self,
            "Service",
            environment=environment.name,
            network=network or ContainerNetwork.of(environment.network),
            key=key,
            role_options=options,
            removal=environment.removal,
            findings_topic_arn=None
            if environment.trial_schedule is None
            else environment.alarms.topic_arn or topic_arn(self, environment.name),
            retention=environment.retention,
            any_stack=any_stack or environment.vending,
        )
        self.alarms = (
            AlarmTopic(self, "Alarms", environment=environment.name, key=self.service.results.key)
            if environment.alarms.topic_arn is None
            else None
        )
        define_budget(self, environment, self.alarms)
        if environment.trial_schedule is not None:
            TrialScheduleGroup(self, "Schedules", environment=environment.name, role_options=options)
        CfnOutput(self, "ResultsBucket", value=self.service.results.bucket.bucket_name)
        CfnOutput(self, "Workflow", value=self.service.state_machine.attr_arn)
        for tag, value in environment.tags.items():
            Tags.of(self).add(tag, value)


def trials_stack(scope: Construct, environment: EnvironmentSpec) -> TrialsStack:
    """Return the stack of an environment's trials in the stage or app of a construct; it is added when it is not there.

    Args:
        scope: A construct of the stage or app.
    """
    name = service_name(environment.name)
    return shared_stack(
        scope, name, TrialsStack, lambda root: TrialsStack(root, environment=environment, any_stack=True)
    )
