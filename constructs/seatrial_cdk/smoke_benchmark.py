"""The custom resource that puts the deployed endpoint through its sea trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CustomResource, Duration, Stack
from constructs import Construct

from seatrial_cdk.trial_service.trial_service import function_arn

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.trial_settings import TrialSettings

ANSWER_MARGIN_S = 600  # proof, what passes between steps, functions that died


class SmokeBenchmark(Construct):
    """Trial of the live endpoint whenever what is deployed changes; a failed one rolls the deployment back.

    The environment's `TrialService` makes it; its function is found by its name, so that no stack exports anything.
    CloudFormation refuses another function for a resource that is there: the service keeps its name.

    What an update deploys is tried by `CandidateTrial` before; here it is verified then: by names, and by a handful of
    requests. Where there was no room for a candidate it is loaded beside its users.

    Request properties: `TrialSettings.properties`.

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
        settings: How.

    Raises:
        SpecError: SEA505 when the budget exceeds 50 minutes.
    """

    def __init__(self, scope: Construct, construct_id: str, *, endpoint: LlmEndpoint, settings: TrialSettings) -> None:
        super().__init__(scope, construct_id)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::SmokeBenchmark",
            service_token=function_arn(Stack.of(self), settings.environment),
            service_timeout=Duration.seconds(settings.budget_s + ANSWER_MARGIN_S),
            properties={**settings.properties(endpoint, "deployed")},
        )
        self.resource.node.add_dependency(endpoint.component)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)
