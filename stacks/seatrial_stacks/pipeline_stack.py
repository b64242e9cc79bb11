"""The pipeline of a team's repository, with a stage for each environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Environment, Stack, Stage

from seatrial.repository.shipped import cdk_cli_version
from seatrial_cdk.delivery.delivery_pipeline import DeliveryPipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constructs import Construct

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.pipeline import PipelineSpec


class PipelineStack(Stack):
    """The pipeline. The trial of an endpoint is part of its stack, so a failed trial fails the stage.

    Args:
        spec: The pipeline's spec.
        environments: The environments that get a stage, each after its source.
        add_stacks: Adds the stacks of an environment to its stage, as to the app.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        spec: PipelineSpec,
        environments: Sequence[EnvironmentSpec],
        add_stacks: Callable[[Stage, EnvironmentSpec], None],
    ) -> None:
        name = f"{spec.name}-pipeline"
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Pipeline of {spec.repository}",
            env=Environment(account=spec.account, region=spec.region),
        )
        cross_account = any(environment.account != spec.account for environment in environments)
        self.pipeline = DeliveryPipeline(
            self, "Pipeline", spec=spec, cross_account=cross_account, cdk_cli=cdk_cli_version()
        )
        for environment in environments:
            env = Environment(account=environment.account, region=environment.region)
            stage = Stage(self, environment.name, env=env)
            add_stacks(stage, environment)
            self.pipeline.add_stage(stage, approval=environment.promotion.approval == "manual")
