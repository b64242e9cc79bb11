"""The schedule on which an endpoint is tried as it is live."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from aws_cdk import Stack
from aws_cdk import aws_events as events
from constructs import Construct

from seatrial_cdk.trial_service.trial_service import function_arn

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint

LONGEST_RULE_NAME: Final = 64  # EventBridge API reference, PutRule
DIGITS: Final = 6


class TrialSchedule(Construct):
    """A rule of EventBridge that asks the environment's trial service for a trial of what is live.

    A candidate beside the endpoint is loaded and deleted; users are not touched and nothing is updated. The service
    lets rules of this name call it, so no permission is needed here. The rule's event gives each trial its ID.

    Args:
        endpoint: What is tried.
        environment: The environment's name.
        expression: When, as EventBridge's `cron(...)` in UTC or `rate(...)`.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: LlmEndpoint, environment: str, expression: str
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        told = {
            "EndpointName": endpoint.endpoint_name,
            "InferenceComponentName": endpoint.inference_component_name,
            "StackId": stack.stack_id,
        }
        fields = ", ".join(f'"{name}": "{value}"' for name, value in told.items())
        target = events.CfnRule.TargetProperty(
            id="Trials",
            arn=function_arn(stack, environment),
            input_transformer=events.CfnRule.InputTransformerProperty(
                input_paths_map={"id": "$.id"}, input_template=f'{{"Scheduled": {{{fields}, "Id": "<id>"}}}}'
            ),
        )
        self.rule = events.CfnRule(
            self,
            "Resource",
            name=rule_name(endpoint.endpoint_name),
            description=f"Trials of {endpoint.endpoint_name} as it is live",
            schedule_expression=expression,
            targets=[target],
        )
        self.rule.node.add_dependency(endpoint.component)


def rule_name(endpoint_name: str) -> str:
    """Return the name of an endpoint's rule; that of a long name ends with a digest of it."""
    name = f"seatrial-{endpoint_name}"
    if len(name) <= LONGEST_RULE_NAME:
        return name
    digest = sha256(endpoint_name.encode()).hexdigest()[:DIGITS]
    return f"{name[: LONGEST_RULE_NAME - DIGITS - 1]}-{digest}"
