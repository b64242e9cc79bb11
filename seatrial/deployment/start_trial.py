"""Asks an environment's trial service for a trial of an endpoint as it is live."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.deployment.aws_failures import aws_failures
from seatrial.deployment.document import COMPONENT_SUFFIX, endpoint_name, stack_name
from seatrial.deployment.live_trial import service_stack
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

_RULE = "SEA479"


def start_trial(function: LambdaClient, environment: str, name: str, generation: int, trial_id: str) -> str:
    """Start a trial, and return its request ID.

    Args:
        function: A client of the environment's region.
        environment: The environment's name.
        name: The endpoint's name in its spec.
        generation: Which endpoint of the spec it is, counted from 1.
        trial_id: Unique for each trial; a repeated one starts nothing new.

    Raises:
        BenchError: SEA479 when no trial can be started, with the reason; as `aws_failures` when AWS can't be asked.
    """
    service, live = service_stack(environment), endpoint_name(environment, name, generation)
    call = {
        "EndpointName": live,
        "InferenceComponentName": f"{live}{COMPONENT_SUFFIX}",
        "StackId": stack_name(environment, name),
        "Id": trial_id,
    }
    try:
        with aws_failures(service):
            told = function.invoke(FunctionName=service, Payload=json.dumps({"Scheduled": call}).encode())
            text = told["Payload"].read().decode()
    except function.exceptions.ClientError as error:
        hint = f"deploy the environment's trial service: cdk deploy {service}"
        message = f"the trial service did not answer: {error}"
        raise BenchError.of(_RULE, message, where=live, hint=hint) from error
    answer = json.loads(text)
    if not isinstance(answer, dict) or "FunctionError" in told or "Started" not in answer:
        said = answer.get("errorMessage", text) if isinstance(answer, dict) else text
        hint = f"see the log of {service}; one of an older release can't be asked: deploy it again"
        raise BenchError.of(_RULE, f"the trial service failed: {said}", where=live, hint=hint)
    if not answer["Started"]:
        hint = "try again when the endpoint is at rest"
        raise BenchError.of(_RULE, f"no trial was started: {answer['Because']}", where=live, hint=hint)
    return f"{answer['RequestId']}"
