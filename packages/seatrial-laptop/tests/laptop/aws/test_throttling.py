from __future__ import annotations

import json
import urllib.parse
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.faults import Faults
from seatrial_laptop.aws.gateway.gateway import operation_of

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}


@pytest.mark.parametrize(
    ("headers", "path", "body", "operation"),
    [
        ({"x-amz-target": "SageMaker.DescribeEndpoint"}, "/", b"{}", "DescribeEndpoint"),
        ({}, "/service/GraniteServiceVersion20100801/operation/PutMetricData", b"", "PutMetricData"),
        ({}, "/endpoints/chat/invocations-response-stream", b"", "InvokeEndpointWithResponseStream"),
        ({}, "/2015-03-31/functions/trial/invocations", b"", "Invoke"),
        (FORM, "/", urllib.parse.urlencode({"Action": "DescribeStacks"}).encode(), "DescribeStacks"),
        ({}, "/bucket/key", b"Action=DescribeStacks", ""),
    ],
)
def test_a_request_tells_its_operation(headers: dict[str, str], path: str, body: bytes, operation: str) -> None:
    assert operation_of(headers, path, body) == operation


def test_an_operation_is_throttled_so_many_times_or_for_a_while() -> None:
    made = Faults(VirtualClock(lambda: 0.0))
    made.change({"throttled": [{"operation": "PutMetricData", "count": 1}, {"operation": "Invoke", "seconds": 60}]})
    assert [made.throttles(name) for name in ("PutMetricData", "PutMetricData", "Invoke", "Invoke")] == [
        True,
        False,
        True,
        True,
    ]
    assert [each.model_dump() for each in made.settings().throttled] == [
        {"operation": "Invoke", "count": None, "seconds": 60.0}
    ]


def test_each_protocol_tells_it_as_aws_does(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    cloudwatch = boto3.client("cloudwatch", config=Config(retries={"total_max_attempts": 1}))
    calls: dict[str, tuple[str, Callable[[], object]]] = {
        "ListEndpoints": ("ThrottlingException", laptop.sagemaker.list_endpoints),
        "DescribeAlarms": ("Throttling", cloudwatch.describe_alarms),
        "DescribeStacks": ("Throttling", laptop.cloudformation.describe_stacks),
    }
    control(throttled=[{"operation": name, "count": 1} for name in calls])
    for code, call in calls.values():
        with pytest.raises(ClientError) as refused:
            call()
        error = refused.value.response["Error"]
        assert (error["Code"], error["Message"]) == (code, "Rate exceeded")
        call()


def test_a_client_that_tries_again_gets_its_answer(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    control(throttled=[{"operation": "ListEndpoints", "count": 2}])
    assert "Endpoints" in boto3.client("sagemaker").list_endpoints()
    assert json.dumps(control()["throttled"]) == "[]"
