"""The custom resource that tries a new configuration beside the live one, before anything that serves is updated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Token
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial_base.bounds import LONGEST_ANSWER_S

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.trial_settings import TrialSettings


class CandidateTrial(Construct):
    """Trial of a new configuration as a candidate component beside the live one, which no user reaches.

    CloudFormation updates endpoint and component after it, so a trial that fails leaves them as they are. The component
    takes its copy count from here: the live one on an update, the planned one where nothing serves yet. Scale-in is
    suspended from here until `SmokeBenchmark` has proven the update; scale-out never is.

    Request properties: those of `TrialSettings.custom_resource`.

    Response attributes (strings):
        CopyCount: The copies that the update carries.
        Verdict: `pass`, `fail`, `inconclusive`, `error` or `not tried`.
        ResultUri: S3 URI of the result document.

    Args:
        endpoint: Whose configurations are tried.
        settings: How.

    Raises:
        SpecError: SEA505 when the budget exceeds 50 minutes.
    """

    def __init__(self, scope: Construct, construct_id: str, *, endpoint: LlmEndpoint, settings: TrialSettings) -> None:
        super().__init__(scope, construct_id)
        self.resource = settings.custom_resource(
            self, endpoint, resource_type="Custom::CandidateTrial", phase="candidate", longest_s=LONGEST_ANSWER_S
        )
        copies = Token.as_number(self.resource.get_att("CopyCount"))
        endpoint.component.runtime_config = sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(
            copy_count=copies
        )
        for later in (endpoint.endpoint, endpoint.component):
            later.node.add_dependency(self.resource)
