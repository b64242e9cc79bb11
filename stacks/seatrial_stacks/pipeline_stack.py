"""The pipeline of a team's repository, with a stage for each environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Environment, Stack, Stage

from seatrial.repository.shipped import cdk_cli_version
from seatrial_cdk.delivery_pipeline import DeliveryPipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.spec.environment import EnvironmentSpec
    from seatrial.spec.pipeline import PipelineSpec


class PipelineStack(Stack):
    """The pipeline. The trial of an endpoint is part of its stack, so a failed trial fails the stage.

    Args:
        spec: The pipeline's spec.
        environments: The environments, each after its source.
        deployments: What is deployed, by the environment's name; an environment without anything gets no stage.
        add_stacks: Adds the stacks of deployments to a stage, as to the app.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        spec: PipelineSpec,
        environments: Sequence[EnvironmentSpec],
        deployments: Mapping[str, Sequence[Deployment]],
        add_stacks: Callable[[Stage, Iterable[Deployment]], object],
    ) -> None:
        name = f"{spec.name}-pipeline"
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Pipeline of {spec.repository}",
            env=Environment(account=spec.account, region=spec.region),
        )
        used = [environment for environment in environments if deployments.get(environment.name)]
        cross_account = any(environment.account != spec.account for environment in used)
        self.pipeline = DeliveryPipeline(
            self, "Pipeline", spec=spec, cross_account=cross_account, cdk_cli=cdk_cli_version()
        )
        for environment in used:
            env = Environment(account=environment.account, region=environment.region)
            stage = Stage(self, environment.name, env=env)
            add_stacks(stage, deployments[environment.name])
            self.pipeline.add_stage(stage, approval=environment.promotion.approval == "manual")
