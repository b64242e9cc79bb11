"""One endpoint in one environment: served, tried, scaled, watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Environment, Stack, Tags

from seatrial_cdk.deployed_endpoint import define_endpoint, define_parts

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial_cdk.smoke_benchmark import SmokeBenchmark

TRIAL_OUTPUTS = (
    "TargetConcurrencyPerCopy",
    "KneeConcurrencyPerCopy",
    "OutputTokensPerSecond",
    "TtftP95Ms",
    "TpotP95Ms",
    "E2eP95Ms",
    "UsdPerMillionOutputTokens",
    "BlendedUsdPerMillionTokens",
    "TrialUsd",
    "Comparison",
    "Verdict",
    "Verified",
)
"""The attributes of the trial that are outputs of the stack."""


class EndpointStack(Stack):
    """The endpoint of one deployment with its trial, scaling and alarms.

    CloudFormation does not replace an inference component that gets another name or endpoint: it has no property that
    needs it. So a later generation has logical IDs of its own: everything of it is created beside the former one,
    tried, and named by the alias; then CloudFormation deletes the former one, its trial first, which lets it drain.

    Args:
        deployment: What to deploy.
    """

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        environment, spec = deployment.environment, deployment.endpoint
        super().__init__(
            scope,
            construct_id,
            stack_name=deployment.stack_name,
            description=f"Endpoint {spec.name} in {environment.name}",
            env=Environment(account=environment.account, region=environment.region),
        )
        later = "" if deployment.plan.generation == 1 else f"{deployment.plan.generation}"
        self.endpoint = define_endpoint(self, f"Endpoint{later}", deployment)
        self.parts = define_parts(self, self.endpoint, deployment, suffix=later)
        self._outputs(deployment, self.parts.trial)
        for key, value in {**environment.tags, **spec.tags}.items():
            Tags.of(self).add(key, value)

    def _outputs(self, deployment: Deployment, trial: SmokeBenchmark | None) -> None:
        values: dict[str, str | None] = {
            "EndpointName": self.endpoint.endpoint_name,
            "InferenceComponentName": self.endpoint.inference_component_name,
            "EndpointConfigName": self.endpoint.config.attr_endpoint_config_name,
            "ModelName": self.endpoint.model.attr_model_name,
            "PlanDigest": deployment.plan.digest,
        }
        if trial:
            values["ResultsBucket"] = trial.attribute("ResultsBucket")
            values["TrialResultUri"] = trial.attribute("ResultUri")
            values["TrialReportUri"] = trial.attribute("ReportUri")
            values |= {name: trial.attribute(name) for name in TRIAL_OUTPUTS}
        for name, value in values.items():
            if value is not None:
                CfnOutput(self, name, value=value)
