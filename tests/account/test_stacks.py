from __future__ import annotations

import io
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from seatrial.account.trials import describe_stack, fetch_result
from seatrial.documents.live import LiveStack
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

URI = "s3://results/trials/chat/abc/1.json"


@pytest.fixture
def s3() -> S3Client:
    return boto3.client("s3", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")


def holding(s3: S3Client, text: str) -> S3Client:
    stub = Stubber(s3)
    body = StreamingBody(io.BytesIO(text.encode()), len(text.encode()))
    expected = {"Bucket": "results", "Key": "trials/chat/abc/1.json"}
    stub.add_response("get_object", {"Body": body}, expected)
    stub.activate()
    return s3


def test_a_trial_that_ended_with_an_error_says_which(s3: S3Client) -> None:
    with pytest.raises(BenchError, match="SEA507: the live endpoint config is a, this deployment's is b"):
        fetch_result(URI, holding(s3, '{"error": "the live endpoint config is a, this deployment\'s is b"}'))


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense"])
def test_another_document_is_refused(text: str, s3: S3Client) -> None:
    with pytest.raises(BenchError, match="SEA501"):
        fetch_result(URI, holding(s3, text))


@pytest.mark.parametrize("uri", ["", "s3://bucket", "https://bucket/key", "unknown"])
def test_another_uri_is_refused(uri: str, s3: S3Client) -> None:
    with pytest.raises(BenchError, match=r"SEA501: .* is not s3://BUCKET/KEY"):
        fetch_result(uri, s3)


def test_a_missing_result_is_named(s3: S3Client) -> None:
    stub = Stubber(s3)
    stub.add_client_error("get_object", "NoSuchKey")
    stub.activate()
    with pytest.raises(BenchError, match=f"{URI}: SEA501: the result can't be read: .*NoSuchKey"):
        fetch_result(URI, s3)


def test_a_missing_stack_is_named() -> None:
    client = boto3.client(
        "cloudformation", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    stub = Stubber(client)
    stub.add_client_error("describe_stacks", "ValidationError", "Stack with id chat does not exist")
    stub.activate()
    with pytest.raises(
        BenchError, match=r"chat: SEA502: the stack can't be read: .* does not exist\n  hint: deploy it"
    ):
        describe_stack("chat", client)


def test_expired_credentials_are_not_a_missing_stack() -> None:
    client = boto3.client(
        "cloudformation", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    stub = Stubber(client)
    stub.add_client_error("describe_stacks", "ExpiredToken", "The security token included in the request is expired")
    stub.activate()
    with pytest.raises(BenchError, match=r"chat: SEA503: the AWS credentials have expired (?s:.)*renew them"):
        describe_stack("chat", client)


def test_expired_credentials_are_not_a_missing_result(s3: S3Client) -> None:
    stub = Stubber(s3)
    stub.add_client_error("get_object", "ExpiredToken", "The provided token has expired.")
    stub.activate()
    with pytest.raises(BenchError, match=f"{URI}: SEA503: the AWS credentials have expired"):
        fetch_result(URI, s3)


def test_a_missing_output_is_named() -> None:
    with pytest.raises(BenchError, match=r"chat: SEA502: the stack \(CREATE_COMPLETE\) has no output ModelName"):
        LiveStack("chat", "CREATE_COMPLETE", {}).output("ModelName")
