"""Synthesizes one stack for each endpoint: `cdk synth -c environment=dev [-c endpoint=chat]`."""

import sys
from pathlib import Path

from aws_cdk import App

from seatrial.deployment.load import load_deployments
from seatrial.errors import SeatrialError, SpecError
from seatrial.printable import printable
from seatrial.secrets import redacted
from stacks.context import context_text
from stacks.endpoint_stack import EndpointStack


def define_stacks(app: App) -> None:
    """Add the stacks that the context asks for: `environment`, `endpoint`, `endpoints` and `environments`."""
    endpoints, environments = (Path(context_text(app, name) or name) for name in ("endpoints", "environments"))
    environment, endpoint = (context_text(app, name) for name in ("environment", "endpoint"))
    if not environment:
        known = ", ".join(sorted(file.stem for file in environments.glob("*.yaml"))) or "none"
        raise SpecError.of("SEA404", "no environment is named", hint=f"add `-c environment=NAME`; known: {known}")
    for deployment in load_deployments(endpoints, environments, environment, endpoint):
        EndpointStack(app, deployment.stack_name, deployment=deployment)


try:
    define_stacks(app := App(analytics_reporting=False))
    app.synth()
except SeatrialError as error:
    sys.stderr.write(f"{printable(redacted(str(error)))}\n")
    sys.exit(error.exit_code)
