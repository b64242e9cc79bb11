"""The custom resource that puts the deployed endpoint through its sea trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs import Construct

from seatrial_base.bounds import TRIAL_MARGIN_S

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.trial_settings import TrialSettings


class SmokeBenchmark(Construct):
    """Trial of the live endpoint whenever what is deployed changes; a failed one rolls the deployment back.

    The environment's `TrialService` makes it; its function is found by its name, so that no stack exports anything.
    CloudFormation refuses another function for a resource that is there: the service keeps its name.

    What an update deploys is tried by `CandidateTrial` before; here it is verified then: by names, and by a handful of
    requests. Where there was no room for a candidate it is loaded beside its users.

    Request properties: those of `TrialSettings.custom_resource`.

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
        self.resource = settings.custom_resource(
            self,
            endpoint,
            resource_type="Custom::SmokeBenchmark",
            phase="deployed",
            longest_s=settings.budget_s + TRIAL_MARGIN_S,
        )
        self.resource.node.add_dependency(endpoint.component)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)
