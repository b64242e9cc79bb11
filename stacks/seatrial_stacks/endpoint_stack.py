"""One endpoint in one environment: served, tried, scaled, watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack, Tags

from seatrial_cdk.endpoint.endpoint_parts import define_outputs, define_parts
from seatrial_cdk.endpoint.llm_endpoint import define_endpoint
from seatrial_cdk.place import stack_environment

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial.deployment.document import Deployment


class EndpointStack(Stack):
    """The endpoint of one deployment with its trial, scaling and alarms.

    CloudFormation does not replace an inference component that gets another name or endpoint: it has no property that
    needs it. So a later generation has logical IDs of its own: everything of it is created beside the former one,
    tried, and named by the alias; then CloudFormation deletes the former one, its trial first, which lets it drain.
    """

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        environment, spec = deployment.environment, deployment.endpoint
        super().__init__(
            scope,
            construct_id,
            stack_name=deployment.stack_name,
            description=f"Endpoint {spec.name} in {environment.name}",
            env=stack_environment(environment),
        )
        later = "" if deployment.plan.generation == 1 else f"{deployment.plan.generation}"
        self.endpoint = define_endpoint(self, f"Endpoint{later}", deployment)
        self.parts = define_parts(self, self.endpoint, deployment, suffix=later)
        define_outputs(self, self.endpoint, deployment, self.parts.trial, stack_wide=True)
        for key, value in {**environment.tags, **spec.tags}.items():
            Tags.of(self).add(key, value)
