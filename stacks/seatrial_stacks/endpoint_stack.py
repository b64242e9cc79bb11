"""One endpoint in one environment: served, tried, scaled, watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Environment, Stack, Tags, Token

from seatrial_cdk.alarm_topic import topic_arn
from seatrial_cdk.candidate_trial import CandidateTrial
from seatrial_cdk.copy_scaling import CopyScaling
from seatrial_cdk.endpoint_alarms import EndpointAlarms
from seatrial_cdk.endpoint_alias import EndpointAlias
from seatrial_cdk.llm_endpoint import LlmEndpoint
from seatrial_cdk.smoke_benchmark import SmokeBenchmark
from seatrial_cdk.trial_schedule import TrialSchedule
from seatrial_cdk.trial_settings import TrialSettings

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial.deployment.document import Deployment

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
        self._generation = deployment.plan.generation
        self.endpoint = LlmEndpoint(
            self,
            self._id("Endpoint"),
            endpoint_name=deployment.endpoint_name,
            base_name=deployment.base_name,
            plan=deployment.plan,
            serving=deployment.serving,
            network=environment.network,
            weights_s3_uri=spec.model.s3_uri,
            accept_eula=spec.model.accept_eula,
            kms_key_arn=environment.kms_key_arn,
            has_local_nvme=deployment.has_local_nvme,
        )
        self.alarms = EndpointAlarms(
            self,
            self._id("Alarms"),
            endpoint=self.endpoint,
            slo=spec.slo,
            output_tokens=spec.workload.output_tokens,
            topic_arn=self._topic_arn(deployment),
        )
        trial = self._trial(deployment)
        scaling = self._scaling(deployment, trial)
        self.alias = EndpointAlias(
            self, "Alias", endpoint=self.endpoint, after=[each for each in (trial, scaling) if each is not None]
        )
        self._schedule(deployment)
        self._outputs(deployment, trial)
        for key, value in {**environment.tags, **spec.tags}.items():
            Tags.of(self).add(key, value)

    def _id(self, name: str) -> str:
        """Return the ID of a construct of this generation."""
        return name if self._generation == 1 else f"{name}{self._generation}"

    def _trial(self, deployment: Deployment) -> SmokeBenchmark | None:
        trial, plan = deployment.endpoint.trial, deployment.plan
        if trial.mode == "off":
            return None
        settings = TrialSettings(
            environment=deployment.environment.name,
            trial_request=deployment.trial_request,
            plan_digest=plan.digest,
            mode=trial.mode,
            update=trial.update,
            budget_minutes=trial.budget_minutes,
            start_s=plan.download_timeout_s.value + plan.startup_timeout_s.value,
            copy_count=plan.copy_count.value,
            most_copies=max(plan.copy_count.value, deployment.endpoint.scaling.max_copies),
            fallback_target=plan.target_concurrency_per_copy.value,
            removal=deployment.environment.removal,
            alarms=[alarm.ref for alarm in self.alarms.alarms],
            replaces=list(deployment.former_components),
        )
        CandidateTrial(self, self._id("Candidate"), endpoint=self.endpoint, settings=settings)
        return SmokeBenchmark(self, self._id("Trial"), endpoint=self.endpoint, settings=settings)

    def _scaling(self, deployment: Deployment, trial: SmokeBenchmark | None) -> CopyScaling | None:
        scaling = deployment.endpoint.scaling
        if scaling.max_copies == scaling.min_copies:
            return None
        return CopyScaling(
            self,
            self._id("Scaling"),
            endpoint=self.endpoint,
            scaling=scaling,
            target_concurrency_per_copy=Token.as_number(trial.attribute("TargetConcurrencyPerCopy"))
            if trial
            else deployment.plan.target_concurrency_per_copy.value,
        )

    def _schedule(self, deployment: Deployment) -> None:
        expression = deployment.environment.trial_schedule
        if expression is None or deployment.endpoint.trial.mode == "off":
            return
        TrialSchedule(
            self,
            self._id("Schedule"),
            endpoint=self.endpoint,
            environment=deployment.environment.name,
            expression=expression,
            window_minutes=deployment.environment.trial_window_minutes,
        )

    def _topic_arn(self, deployment: Deployment) -> str | None:
        """Return the topic of the alarms: the environment's own, else the one beside the trial service, if any is."""
        environment = deployment.environment
        if environment.alarms.topic_arn is not None or deployment.endpoint.trial.mode == "off":
            return environment.alarms.topic_arn
        return topic_arn(self, environment.name)

    def _outputs(self, deployment: Deployment, trial: SmokeBenchmark | None) -> None:
        values = {
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
            CfnOutput(self, name, value=value)
