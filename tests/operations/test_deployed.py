"""The template that is deployed, and whose account it is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.stub import Stubber

from seatrial.account.clients import check_account
from seatrial.operations.synthesis import StackSource, deployed_template
from seatrial.specs.environment import EnvironmentSpec
from seatrial_base.errors import SeatrialError
from seatrial_lint.cloudformation.template import EMPTY
from tests.operations.sample_stack import same, sample_document

if TYPE_CHECKING:
    from seatrial.operations.synthesis import Templates
    from seatrial_lint.cloudformation.template import Template

STACK = "seatrial-dev-chat"
ENVIRONMENT = EnvironmentSpec.model_validate({"name": "dev", "region": "us-east-1", "account": "123456789012"})
SOURCE = StackSource(
    root=Path(), spec=Path("chat.yaml"), environments=Path(), environment=ENVIRONMENT, stack_name=STACK
)
ASKED = {"StackName": STACK, "TemplateStage": "Original"}


def asked(*, body: str = "", code: str = "", message: str = "") -> Template:
    client = boto3.client("cloudformation", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(client) as stub:
        if code:
            stub.add_client_error("get_template", code, message, expected_params=ASKED)
        else:
            stub.add_response("get_template", {"TemplateBody": body}, ASKED)
        return deployed_template(SOURCE, cast("Templates", client))


def test_the_deployed_template() -> None:
    assert asked(body=json.dumps(sample_document())).resources.keys() == same().resources.keys()


def test_a_stack_that_is_not_there_is_empty() -> None:
    assert asked(code="ValidationError", message=f"Stack with id {STACK} does not exist") == EMPTY


@pytest.mark.parametrize(
    ("code", "message", "rule"),
    [
        ("AccessDenied", "User: a is not authorized to perform: cloudformation:GetTemplate", "SEA511"),
        ("ExpiredToken", "expired", "SEA503"),
        ("Throttling", "Rate exceeded", "SEA504"),
        ("ValidationError", "Template of this stack is not available", "SEA451"),
    ],
)
def test_what_keeps_it_from_being_read(code: str, message: str, rule: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        asked(code=code, message=message)
    assert [(one.rule, one.where) for one in caught.value.problems] == [(rule, STACK)]


def test_a_template_in_yaml_is_read() -> None:
    template = asked(body="Resources: {Model: {Type: AWS::SageMaker::Model, Properties: {ModelName: !Ref Name}}}")
    assert template.resources["Model"].properties == {"ModelName": {"Fn::Sub": "${Name}"}}


def test_a_template_that_is_none_is_told() -> None:
    with pytest.raises(SeatrialError) as caught:
        asked(body="Resources: []")
    assert caught.value.problems[0].rule == "SEA451"


class Caller:
    """Somebody's credentials."""

    def __init__(self, account: str) -> None:
        self.account = account

    def get_caller_identity(self) -> dict[str, object]:
        return {"Account": self.account}


def test_credentials_of_another_account_are_refused() -> None:
    check_account(ENVIRONMENT, Caller("123456789012"))
    with pytest.raises(SeatrialError) as caught:
        check_account(ENVIRONMENT, Caller("210987654321"))
    assert caught.value.problems[0].rule == "SEA455"


def test_an_environment_without_an_account_takes_any() -> None:
    check_account(ENVIRONMENT.model_copy(update={"account": None}), Caller("210987654321"))
