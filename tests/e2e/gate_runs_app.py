"""An app with a gate whose runner may run for half a minute only, and loads a runtime API of the tests."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import App, CfnResource

from seatrial.deployment.load import load_deployments
from stacks.context import context_text
from stacks.endpoint_stack import EndpointStack

FUNCTION_S = 25
"""Ten seconds for a trial: a run ends 15 s before its function does."""


def define(app: App) -> None:
    endpoints, environments = (Path(context_text(app, name) or name) for name in ("endpoints", "environments"))
    (deployment,) = load_deployments(endpoints, environments, "local", "runs")
    stack = EndpointStack(app, deployment.stack_name, deployment=deployment)
    gate = stack.node.find_child("SmokeBenchmark")
    function = gate.node.find_child("Runner").node.find_child("Resource").node.default_child
    assert isinstance(function, CfnResource)
    function.add_property_override("Timeout", FUNCTION_S)
    function.add_property_override(
        "Environment.Variables.AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", context_text(app, "paced_runtime")
    )


define(app := App(analytics_reporting=False))
app.synth()
