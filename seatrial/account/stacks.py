"""What a deployed stack says of itself: its outputs, and the trial's result in its bucket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial.documents.live_stack import LiveStack
from seatrial_base.errors import BenchError
from seatrial_base.files import MOST_BYTES
from seatrial_base.units import MIB
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client


def describe_stack(name: str, cloudformation: CloudFormationClient) -> LiveStack:
    """Read a stack.

    Raises:
        BenchError: SEA502 when there is no such stack; as `aws_failures` when AWS can't be asked.
    """
    hint = f"deploy it first: cdk deploy {name} -c environment=…"
    with aws_failures(
        name, lambda error: BenchError.of("SEA502", f"the stack can't be read: {error}", where=name, hint=hint)
    ):
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    outputs = {output.get("OutputKey", ""): output.get("OutputValue", "") for output in stack.get("Outputs", [])}
    return LiveStack(name, stack["StackStatus"], outputs)


def fetch_result(uri: str, s3: S3Client) -> TrialResult:
    """Read a trial's result from its S3 URI.

    Raises:
        BenchError: SEA501 when the URI or the document is wrong, SEA507 when the trial itself ended with an error;
            as `aws_failures` when AWS can't be asked.
    """
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not uri.startswith("s3://") or not key:
        raise BenchError.of("SEA501", f"{uri!r} is not s3://BUCKET/KEY", hint="use the stack's output TrialResultUri")
    with aws_failures(uri, lambda error: BenchError.of("SEA501", f"the result can't be read: {error}", where=uri)):
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise BenchError.of("SEA501", f"the result is larger than {MOST_BYTES // MIB} MiB", where=uri)
    text = body.decode(errors="replace")
    if failure := _failure(text):
        raise BenchError.of("SEA507", failure, where=uri, hint="fix the cause and deploy again")
    return TrialResult.from_json(text)


def _failure(text: str) -> str:
    """Return the error that the runner wrote instead of a result; empty when it is no such document."""
    try:
        document = json.loads(text)
    except ValueError:
        return ""
    return str(document.get("error", "")) if isinstance(document, dict) else ""
