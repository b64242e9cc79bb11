"""The custom resource that puts the deployed endpoint through its sea trial."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from aws_cdk import CustomResource, Duration, Stack
from constructs import Construct

from seatrial.errors import SpecError
from seatrial.spec.endpoint import LONGEST_BUDGET_MINUTES
from seatrial.units import S_PER_MINUTE, exported
from seatrial_cdk.trial_service.trial_service import function_arn

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint

ANSWER_MARGIN_S = 600  # proof, what passes between steps, functions that died


class SmokeBenchmark(Construct):
    """Trial of the live endpoint whenever what is deployed changes; a failed one rolls the deployment back.

    The environment's `TrialService` makes it; its function is found by its name, so that no stack exports anything.
    CloudFormation refuses another function for a resource that is there: the service keeps its name.

    Request properties (CloudFormation sends each as a string):
        EndpointName, InferenceComponentName, EndpointConfigName, ModelName: What must be live.
        Image: The container image that must be live.
        PlanDigest: The trial runs again exactly when it, EndpointConfigName or ModelName changes.
        Request: The trial request as JSON without `target` and `expected`.
        Mode: `rollback` fails the deployment when the trial is not passed, `report` only reports.
        BudgetSeconds: The trial measures no longer than this.
        FallbackTarget: Scaling target per copy where no trial answers.

    Response attributes (strings; `unknown` where there is no value):
        TargetConcurrencyPerCopy: Requests in flight per copy to scale at; always a number.
        KneeConcurrencyPerCopy: Where throughput no longer pays for latency.
        OutputTokensPerSecond, TtftP50Ms, TtftP95Ms, TpotP95Ms, E2eP95Ms: Measured at the knee, else at the gate.
        UsdPerMillionOutputTokens, BlendedUsdPerMillionTokens: At the level that the target comes from.
        TrialUsd: What the copies cost while the trial ran.
        Comparison: With the last release: `same`, `better`, `worse` or `incomparable`.
        Verdict: `pass`, `fail`, `inconclusive` or `error`.
        Verified: `true` when a trial of this plan was passed.
        ResultUri: S3 URI of the result document.
        ReportUri: S3 URI of the short report beside it.
        ResultsBucket: The environment's bucket of results.

    Args:
        endpoint: What is tried.
        environment: The environment's name.
        trial_request: The `Request` property.
        plan_digest: The `PlanDigest` property.
        mode: The `Mode` property.
        image: The `Image` property.
        budget_minutes: The trial measures no longer than this, 50 at most: CloudFormation waits an hour.
        fallback_target: The `FallbackTarget` property.

    Raises:
        SpecError: SEA505 when the budget exceeds 50 minutes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        environment: str,
        trial_request: str,
        plan_digest: str,
        mode: Literal["rollback", "report"],
        image: str,
        budget_minutes: float,
        fallback_target: float,
    ) -> None:
        super().__init__(scope, construct_id)
        budget_s = _budget_s(budget_minutes)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::SmokeBenchmark",
            service_token=function_arn(Stack.of(self), environment),
            service_timeout=Duration.seconds(budget_s + ANSWER_MARGIN_S),
            properties={
                "EndpointName": endpoint.endpoint_name,
                "InferenceComponentName": endpoint.inference_component_name,
                "EndpointConfigName": endpoint.config.attr_endpoint_config_name,
                "ModelName": endpoint.model.attr_model_name,
                "Image": image,
                "PlanDigest": plan_digest,
                "Request": trial_request,
                "Mode": mode,
                "BudgetSeconds": f"{budget_s:g}",
                "FallbackTarget": exported(fallback_target),
            },
        )
        self.resource.node.add_dependency(endpoint.component)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)


def _budget_s(budget_minutes: float) -> int:
    """Return the budget in seconds, rounded up: CloudFormation counts whole ones."""
    if budget_minutes > LONGEST_BUDGET_MINUTES:
        message = f"budget {budget_minutes:g} minutes exceeds {LONGEST_BUDGET_MINUTES:g} minutes"
        hint = "reduce concurrency levels, or requests per level"
        raise SpecError.of("SEA505", message, field="trial.budget_minutes", hint=hint)
    return math.ceil(budget_minutes * S_PER_MINUTE)
