"""The template that is deployed at the moment, and whose account that is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial.account.reader import aws_failures
from seatrial_base.errors import SeatrialError
from seatrial_lint.cloudformation.template import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.operations.synthesis import StackSource
    from seatrial_lint.cloudformation.template import Template


class Templates(Protocol):
    """The one call of CloudFormation that is needed."""

    def get_template(self, *, StackName: str, TemplateStage: Literal["Original"]) -> Mapping[str, object]:  # noqa: N803
        """Return the template of a stack."""


def deployed_template(source: StackSource, cloudformation: Templates) -> Template:
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
