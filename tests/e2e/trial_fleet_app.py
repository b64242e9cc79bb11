"""An app with an endpoint and two fleets whose functions keep two requests in flight, so that small levels need many.

One fleet loads the endpoint, the other a runtime API of the tests in its place.
"""

from __future__ import annotations

from pathlib import Path

from aws_cdk import App, CfnOutput, Stack

from seatrial.deployment.load import load_deployments
from seatrial_cdk.llm_endpoint import LlmEndpoint
from seatrial_cdk.trial_service.results import TrialResults
from seatrial_cdk.trial_fleet.trial_fleet import TrialFleet
from stacks.context import context_text

STACK = "seatrial-local-fleet"
SOCKETS_PER_FUNCTION = 2


def define(app: App) -> None:
    endpoints, environments = (Path(context_text(app, name) or name) for name in ("endpoints", "environments"))
    (deployment,) = load_deployments(endpoints, environments, "local", "fleet")
    stack = Stack(app, STACK)
    endpoint = LlmEndpoint(
        stack,
        "Endpoint",
        endpoint_name=deployment.endpoint_name,
        plan=deployment.plan,
        serving=deployment.serving,
        network=deployment.environment.network,
        accept_eula=True,
        has_local_nvme=deployment.has_local_nvme,
    )
    results = TrialResults(stack, "Results", kms_key_arn=None, removal="destroy")
    fleet, paced = (
        TrialFleet(
            stack,
            construct_id,
            endpoint=endpoint,
            results=results,
            budget_s=300,
            sockets_per_function=SOCKETS_PER_FUNCTION,
        )
        for construct_id in ("Fleet", "PacedFleet")
    )
    runtime_url = context_text(app, "paced_runtime") or ""
    for function in (paced.steps.function, paced.worker.function):
        function.add_environment("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", runtime_url)
    outputs = {
        "EndpointName": endpoint.endpoint_name,
        "InferenceComponentName": endpoint.inference_component_name,
        "EndpointConfigName": endpoint.config.attr_endpoint_config_name,
        "ModelName": endpoint.model.attr_model_name,
        "Machine": fleet.state_machine.state_machine_arn,
        "PacedMachine": paced.state_machine.state_machine_arn,
        "ResultsBucket": results.bucket.bucket_name,
    }
    for name, value in outputs.items():
        CfnOutput(stack, name, value=value)


define(app := App(analytics_reporting=False))
app.synth()
