"""An app with one endpoint, whose trial loads a runtime API of the tests by functions of as many sockets as asked."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import App

from seatrial.deployment.load import load_deployments
from seatrial_stacks.app_stacks import add_stacks
from seatrial_stacks.context import context_text
from seatrial_stacks.trials_stack import TrialsStack


def define(app: App) -> None:
    endpoints, environments = (Path(context_text(app, name) or name) for name in ("endpoints", "environments"))
    add_stacks(app, load_deployments(endpoints, environments, "local", context_text(app, "endpoint")))
    trials = app.node.find_child("seatrial-local-trials")
    assert isinstance(trials, TrialsStack)
    for name, value in {
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": context_text(app, "paced_runtime"),
        "SOCKETS_PER_FUNCTION": context_text(app, "sockets"),
    }.items():
        trials.service.function.add_property_override(f"Environment.Variables.{name}", value)


define(app := App(analytics_reporting=False))
app.synth()
