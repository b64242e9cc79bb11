"""A CDK pipeline that runs the repository's own make targets, and then deploys environment by environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Acknowledgment, Validations, pipelines
from aws_cdk import aws_iam as iam
from aws_cdk.aws_codebuild import BuildSpec, Cache, LocalCacheMode
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import Stage

    from seatrial.specs.pipeline import PipelineSpec

PYTHON: Final = "3.12"
"""Python of the build, among the runtimes of the CodeBuild image `standard:7.0`."""
CDK_ASSETS: Final = "4.7.3"
"""Version of cdk-assets, which uploads assets: the newest on npm, 2026-11-22."""
INSTALL: Final = ("make install",)
CACHED: Final = ("/root/.cache/pip/**/*", "/root/.npm/**/*")
CHECKS_AND_SYNTH: Final = ("make validate", "make plan-check", "make lint", "make synth-pipeline")


class DeliveryPipeline(Construct):
    """The pipeline: source, checks and synthesis, its own update, and one stage for each environment.

    A stage is deployed by CloudFormation, which the trial of an endpoint can refuse: then no later stage starts.

    Args:
        spec: Where it runs and what it deploys.
        cross_account: Whether an environment is in another account: then the artifacts are encrypted with a KMS key.
        cdk_cli: Version of the CDK CLI that updates the pipeline.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: PipelineSpec, cross_account: bool, cdk_cli: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._connection_arn = spec.connection_arn
        runtimes = {"phases": {"install": {"runtime-versions": {"python": PYTHON}}}}
        source = pipelines.CodePipelineSource.connection(
            spec.repository, spec.branch, connection_arn=spec.connection_arn
        )
        self._pipeline = pipelines.CodePipeline(
            self,
            "Resource",
            pipeline_name=spec.name,
            cross_account_keys=cross_account,
            enable_key_rotation=True if cross_account else None,
            self_mutation=True,
            # In one project: by default each asset of each endpoint and account has its own, 124 of 40 endpoints.
            publish_assets_in_parallel=False,
            cli_version=cdk_cli,
            cdk_assets_cli_version=CDK_ASSETS,
            code_build_defaults=pipelines.CodeBuildOptions(partial_build_spec=BuildSpec.from_object(runtimes)),
            # Of the host that ran the last build, where the next one meets it; a bucket would cost more than it saves.
            synth_code_build_defaults=pipelines.CodeBuildOptions(
                cache=Cache.local(LocalCacheMode.CUSTOM),
                partial_build_spec=BuildSpec.from_object({"cache": {"paths": [*CACHED]}}),
            ),
            synth=pipelines.ShellStep("Synth", input=source, install_commands=[*INSTALL], commands=[*CHECKS_AND_SYNTH]),
        )

    def add_stage(self, stage: Stage, *, approval: bool) -> None:
        """Deploy a stage after those that were added before it.

        Args:
            approval: It needs a manual approval before.
        """
        name = stage.stage_name
        approvals: Sequence[pipelines.Step] = (
            [pipelines.ManualApprovalStep(f"Approve-{name}", comment=f"Deploy to {name}?")] if approval else []
        )
        self._pipeline.add_stage(stage, pre=approvals)

    def build(self) -> None:
        """Make the pipeline's resources; no stage can be added afterwards.

        Its source may use the connection by the action of the ARN's own service: "the service prefix needs to match
        that of the resource" (Developer Tools console guide, connections rename), and the CDK knows the older prefix
        alone (aws/aws-cdk issue 30957), which since July 2024 fits no connection that the console makes.
        """
        self._pipeline.build_pipeline()
        pipeline = self._pipeline.pipeline
        service = self._connection_arn.split(":")[2]
        below = pipeline.node.find_child("Source").node.find_all()
        statement = iam.PolicyStatement(actions=[f"{service}:UseConnection"], resources=[self._connection_arn])
        for role in (each for each in below if isinstance(each, iam.Role)):
            role.add_to_principal_policy(statement)
            reason = "The CDK allows the action of the older prefix too."
            Validations.of(role).acknowledge(Acknowledgment(id="Seatrial::SEA782", reason=reason))
