"""The template that is deployed at the moment, and whose account that is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial.deployment.aws_failures import aws_failures
from seatrial.operations.template import EMPTY
from seatrial_base.errors import SeatrialError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.operations.synthesis import StackSource
    from seatrial.operations.template import StackTemplate
    from seatrial.specs.environment import EnvironmentSpec


class Templates(Protocol):
    """The one call of CloudFormation that is needed."""

    def get_template(self, *, StackName: str, TemplateStage: Literal["Original"]) -> Mapping[str, object]:  # noqa: N803
        """Return the template of a stack."""


class Identity(Protocol):
    """The one call of AWS STS that is needed; everybody may make it."""

    def get_caller_identity(self) -> Mapping[str, object]:
        """Return whose credentials these are."""


def check_account(environment: EnvironmentSpec, identity: Identity) -> None:
    """Refuse credentials of another account than the environment's: its stacks would seem not to be there.

    Raises:
        SpecError: SEA455.
        BenchError: As `aws_failures`.
    """
    if environment.account is None:
        return
    with aws_failures(environment.name):
        account = f"{identity.get_caller_identity()['Account']}"
    if account != environment.account:
        message = f"they belong to {account}, and {environment.name} is {environment.account}"
        raise SpecError.of("SEA455", message, where=environment.name, hint="choose others with AWS_PROFILE")


def deployed_template(source: StackSource, cloudformation: Templates) -> StackTemplate:
    """Read the template of a deployed stack; that of a stack that is not there is empty.

    Raises:
        BenchError: As `aws_failures`: no credentials, no connection, no permission.
        SeatrialError: SEA451 when the answer is no template.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only a deployed stack needs it)

    try:
        with aws_failures(source.stack_name):
            body = cloudformation.get_template(StackName=source.stack_name, TemplateStage="Original")["TemplateBody"]
    except ClientError as error:
        told = error.response.get("Error", {})
        if told.get("Code") == "ValidationError" and "does not exist" in told.get("Message", ""):
            return EMPTY
        message = f"the deployed template can't be read: {told.get('Code')}: {told.get('Message')}"
        raise SeatrialError.of("SEA451", message, where=source.stack_name) from error
    return source.template(body if isinstance(body, str) else json.dumps(body), source.stack_name)
