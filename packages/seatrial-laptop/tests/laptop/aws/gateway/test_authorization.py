"""What a caller's policies are asked for, by head and body of its request; on the wire: `test_authentication`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from ministack.core import iam_evaluator

from seatrial_laptop.aws.gateway.access_control import principal_of, refusal_of_caller
from seatrial_laptop.aws.gateway.signature import Received

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.json_document import Document

    Acts = Callable[..., None]

KEY = "AKIAIOSFODNN7EXAMPLE"
PREFIX = "arn:aws:sagemaker:us-east-1:000000000000:"
ROLE = "arn:aws:iam::000000000000:role/serving"
FUNCTION = {"FunctionName": "f", "Role": ROLE}
USER = "arn:aws:iam::000000000000:user/team"


def allow(action: str, resource: str = "*") -> Document:
    return {"Effect": "Allow", "Action": action, "Resource": resource}


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> Acts:
    """Return a function that says who is behind every access key: a principal with policies, or the root."""

    def acts_as(*statements: Document, arn: str = USER, is_root: bool = False) -> None:
        policies = None if is_root else [iam_evaluator.parse_policy_document({"Statement": [*statements]})]
        found = iam_evaluator.PrincipalInfo(arn=arn, type="User", account="000000000000", policies=policies)
        monkeypatch.setattr(iam_evaluator, "resolve_principal", lambda *_: found)

    return acts_as


def refusal(path: str, service: str, body: Document | None = None, *, method: str = "POST", target: str = "") -> str:
    """Return why a request is refused; empty when it is not."""
    headers = {"content-type": "application/x-amz-json-1.1", **({"x-amz-target": target} if target else {})}
    received = Received(method, path, path, {}, headers)
    refused = refusal_of_caller(received, KEY, service, json.dumps(body or {}).encode(), lambda _: [])
    return refused.message if refused else ""


@pytest.mark.parametrize("service", ["sagemaker", "s3"])
def test_an_invocation_asks_for_its_right_whatever_service_it_is_signed_for(acts: Acts, service: str) -> None:
    acts(allow("s3:*"))
    assert "sagemaker:InvokeEndpoint on resource" in refusal("/endpoints/chat/invocations", service)


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        (["cloudwatch:GetMetricData", "cloudwatch:ListMetrics"], ""),
        (["cloudwatch:GetMetricData"], "cloudwatch:ListMetrics on resource"),
        (["cloudwatch:ListMetrics"], "cloudwatch:GetMetricData on resource"),
    ],
)
def test_a_query_of_promql_asks_for_both_rights_to_metrics(acts: Acts, allowed: list[str], refused: str) -> None:
    acts(*(allow(action) for action in allowed))
    told = refusal("/api/v1/query_range", "monitoring")
    assert refused in told
    assert bool(told) == bool(refused)


def test_an_invocation_is_of_the_endpoint_that_its_path_names(acts: Acts) -> None:
    acts(allow("sagemaker:InvokeEndpoint", f"{PREFIX}endpoint/chat"))
    assert refusal("/endpoints/chat/invocations", "sagemaker") == ""
    assert f"{PREFIX}endpoint/other" in refusal("/endpoints/other/invocations", "sagemaker")
    assert "InvokeEndpointAsync" in refusal("/endpoints/chat/async-invocations", "sagemaker")


def test_a_request_to_the_control_plane_asks_for_what_it_names(acts: Acts) -> None:
    acts(allow("sagemaker:DescribeEndpoint", f"{PREFIX}endpoint/chat"))
    for name, refused in (("chat", False), ("other", True)):
        told = refusal("/", "sagemaker", {"EndpointName": name}, target="SageMaker.DescribeEndpoint")
        assert bool(told) is refused, told


def test_a_role_that_a_request_passes_asks_for_the_right_to_pass_it(acts: Acts) -> None:
    acts(allow("lambda:CreateFunction"))
    assert f"iam:PassRole on resource: {ROLE}" in refusal("/2015-03-31/functions", "lambda", FUNCTION)
    acts(allow("lambda:CreateFunction"), allow("iam:PassRole", ROLE))
    assert refusal("/2015-03-31/functions", "lambda", FUNCTION) == ""


def test_a_parameter_of_a_wrong_type_still_asks_for_the_action(acts: Acts) -> None:
    acts(allow("s3:*"))
    wrong: Document = {"EndpointName": "chat", "Tags": 5}
    assert refusal("/", "sagemaker", wrong, target="SageMaker.CreateEndpoint") != ""


def test_the_root_may_do_everything(acts: Acts) -> None:
    acts(is_root=True)
    assert refusal("/endpoints/chat/invocations", "sagemaker") == ""
    assert principal_of(KEY).endswith(":root")


@pytest.mark.parametrize(
    ("arn", "principal"),
    [(USER, USER), ("arn:aws:sts::000000000000:assumed-role/serving/session", ROLE)],
)
def test_a_session_is_told_by_its_role_and_a_user_by_itself(acts: Acts, arn: str, principal: str) -> None:
    acts(arn=arn)
    assert principal_of(KEY) == principal
