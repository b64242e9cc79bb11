"""A CDK pipeline that runs the repository's own make targets, and with them deploys environment by environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Acknowledgment, Duration, Validations, pipelines
from aws_cdk import aws_iam as iam
from aws_cdk.aws_codebuild import BuildSpec, Cache, LocalCacheMode
from constructs import Construct

from seatrial.specs.environment import partition_of

if TYPE_CHECKING:
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.pipeline import PipelineSpec

PYTHON: Final = "3.12"
"""Python of the build, among the runtimes of the CodeBuild image `standard:7.0`."""
INSTALL: Final = ("make install",)
CACHED: Final = ("/root/.cache/pip/**/*", "/root/.npm/**/*")
CHECKS: Final = "make validate plan-check lint"
LONGEST_BUILD: Final = Duration.hours(36)
"""The longest that CodeBuild lets a build run (AWS CodeBuild user guide, quotas)."""
PROFILE: Final = """\
[profile deploy]
role_arn = {}
credential_source = EcsContainer
region = {}
"""
APPROVAL: Final = "Deploy to {}? The logs of Synth and of the stage before name failed checks and endpoints."
NONE_FAILED: Final = "failed:"
"""A variable between stages has a text, also where nothing failed."""


class DeliveryPipeline(Construct):
    """The pipeline: source, synthesis, its own update, one stage for each environment, and a verdict on all of them.

    A stage runs `make deploy`: an endpoint that fails, or is wrong, stops no other and is left out of the later stages.
    The last stage fails where one did, or where a check of the repository failed.

    Args:
        spec: Where it runs and what it deploys.
        cdk_cli: Version of the CDK CLI that updates the pipeline.
    """

    def __init__(self, scope: Construct, construct_id: str, *, spec: PipelineSpec, cdk_cli: str) -> None:
        super().__init__(scope, construct_id)
        self._spec = spec
        build = {"phases": {"install": {"runtime-versions": {"python": PYTHON}}}, "cache": {"paths": [*CACHED]}}
        self._source = pipelines.CodePipelineSource.connection(
            spec.repository, spec.branch, connection_arn=spec.connection_arn
        )
        self._synth = pipelines.CodeBuildStep(
            "Synth",
            input=self._source,
            install_commands=[*INSTALL],
            # What is wrong with one endpoint is no reason to keep the others from their repair: the last stage tells.
            commands=[f"CHECKS=passed; {CHECKS} || CHECKS=failed; export CHECKS", "make synth-pipeline"],
            primary_output_directory="cdk.out",
        )
        self._pipeline = pipelines.CodePipeline(
            self,
            "Resource",
            pipeline_name=spec.name,
            self_mutation=True,
            cli_version=cdk_cli,
            # Of the host that ran the last build, where the next one meets it; a bucket would cost more than it saves.
            code_build_defaults=pipelines.CodeBuildOptions(
                cache=Cache.local(LocalCacheMode.CUSTOM), partial_build_spec=BuildSpec.from_object(build)
            ),
            synth=self._synth,
        )
        self._deploys: list[pipelines.CodeBuildStep] = []

    def add_environment(self, environment: EnvironmentSpec) -> None:
        """Deploy an environment after those that were added before it, with the deploy role of its account.

        That role, `seatrial-ENVIRONMENT-deploy` below the environment's `security.role_path`, trusts roles of this
        account below the path `/seatrial/PIPELINE/ENVIRONMENT/`.
        """
        name, place = environment.name, environment.security.role_path or "/"
        role_arn = (
            f"arn:{partition_of(environment.region)}:iam::{environment.account}:role{place}seatrial-{name}-deploy"
        )
        role = iam.Role(
            self,
            f"Deploy-{name}",
            path=f"/seatrial/{self._spec.name}/{name}/",
            assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"),
            description=f"Deploys the endpoints of {name}: assumes the role of its account",
        )
        before, failed = self._failed, f"build/failed-{name}"
        profile = PROFILE.format(role_arn, environment.region).replace("\n", "\\n")
        step = pipelines.CodeBuildStep(
            f"Deploy-{name}",
            input=self._source,
            install_commands=[*INSTALL],
            commands=[
                f"mkdir -p build && printf '{profile}' > build/aws-config",
                'export AWS_CONFIG_FILE=$PWD/build/aws-config AWS_PROFILE=deploy WITHOUT="${BEFORE#failed:}"',
                # CodeBuild sets that of the pipeline, which a profile's would not replace.
                f"export AWS_REGION={environment.region} AWS_DEFAULT_REGION={environment.region}",
                f"make deploy ENV={name} && ended=0 || ended=$?",
                # Without its file, what failed is unknown, and no later environment is begun.
                f"test -f {failed} || ended=unknown",
                f"test $ended = 0 || test -s {failed} || make deploy-ended ENV={name}",
                f"test $ended = 0 || test -s {failed}",
                f"export FAILED=\"failed:$WITHOUT $(tr '\\n' ' ' < {failed})\"",
            ],
            env={"BEFORE": before},
            role=role,
            role_policy_statements=[iam.PolicyStatement(actions=["sts:AssumeRole"], resources=[role_arn])],
            timeout=LONGEST_BUILD,
        )
        wave = self._pipeline.add_wave(name, post=[step])
        if environment.promotion.approval == "manual":
            approval = pipelines.ManualApprovalStep(f"Approve-{name}", comment=APPROVAL.format(name))
            wave.add_pre(approval)
            # What comes before the stacks of a wave, and there is none, comes at the same time as what comes after.
            step.add_step_dependency(approval)
        self._deploys.append(step)

    @property
    def _failed(self) -> str:
        """What failed in the environments that were added so far."""
        return self._deploys[-1].exported_variable("FAILED") if self._deploys else NONE_FAILED

    def build(self) -> None:
        """Add the verdict and make the pipeline's resources; nothing can be added afterwards.

        Its source may use the connection by the action of the ARN's own service: "the service prefix needs to match
        that of the resource" (Developer Tools console guide, connections rename), and the CDK knows the older prefix
        alone (aws/aws-cdk issue 30957), which since July 2024 fits no connection that the console makes.
        """
        verdict = pipelines.CodeBuildStep(
            "Verdict",
            input=self._source,
            commands=[
                'echo "checks of the repository: $CHECKS; endpoints that failed:${FAILED#failed:}"',
                'test "$CHECKS" = passed && test -z "$(echo ${FAILED#failed:})"',
            ],
            env={"CHECKS": self._synth.exported_variable("CHECKS"), "FAILED": self._failed},
        )
        self._pipeline.add_wave("Deployed", post=[verdict])
        self._pipeline.build_pipeline()
        for step in self._deploys:
            reason = "The project has the role's ARN, which the rule takes for a Ref of a role with a path."
            Validations.of(step.project).acknowledge(Acknowledgment(id="CloudFormation-Validate::E3050", reason=reason))
        pipeline = self._pipeline.pipeline
        service = self._spec.connection_arn.split(":")[2]
        below = pipeline.node.find_child("Source").node.find_all()
        statement = iam.PolicyStatement(actions=[f"{service}:UseConnection"], resources=[self._spec.connection_arn])
        for role in (each for each in below if isinstance(each, iam.Role)):
            role.add_to_principal_policy(statement)
            reason = "The CDK allows the action of the older prefix too."
            Validations.of(role).acknowledge(Acknowledgment(id="Seatrial::SEA782", reason=reason))
