"""The trial of a deployed endpoint, read from its stack and its environment's bucket of results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial.account.trials import describe_stack
from seatrial.operations.drift.trials import deployed_trial
from seatrial.operations.promotion.evidence import TrialEvidence
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

    from seatrial_load.documents.result import TrialResult

_MOST_DOCUMENTS = 1000  # of one page of S3


def evidence_of_stack(
    stack_name: str, endpoint_name: str, cloudformation: CloudFormationClient, s3: S3Client
) -> TrialEvidence:
    """Return what is known of the trial of a deployed endpoint.

    A stack without outputs of a trial was deployed without one; a result that says `error` is none.

    Args:
        stack_name: The endpoint's stack.
        endpoint_name: The endpoint's name on SageMaker, under which its trials lie.
        cloudformation: A client of the environment's region.
        s3: The same.

    Raises:
        BenchError: SEA502 when there is no such stack, SEA501 when the result can't be read; as `aws_failures` when
            AWS can't be asked.
    """
    stack = describe_stack(stack_name, cloudformation)
    digest = stack.outputs.get("PlanDigest")
    trial, uri = deployed_trial(stack, s3), stack.outputs.get("TrialResultUri", "")
    if trial.result is None:
        ended = f"it ended with an error: {trial.error} ({uri})"
        because = ended if trial.error else f"the stack {stack_name} ({stack.status}) was deployed without one"
        return TrialEvidence(result=None, missing_because=because, deployed_digest=digest)
    return TrialEvidence(
        result=trial.result,
        result_uri=uri,
        report_uri=stack.outputs.get("TrialReportUri", ""),
        request_id=find_request(uri, endpoint_name, trial.result, s3),
        deployed_digest=digest,
    )


def evidence_of_result(result: TrialResult, where: str) -> TrialEvidence:
    """Return a result that was given as what is known of a trial; no stack is asked.

    Args:
        result: The result.
        where: Its file or URI.
    """
    return TrialEvidence(result=result, result_uri=where, report_uri=f"{where.removesuffix('.json')}.md")


def find_request(uri: str, endpoint_name: str, result: TrialResult, s3: S3Client) -> str | None:
    """Return the request that a result was made for: the name of the same document among the endpoint's trials.

    `None` where the document has expired, or the caller may not list the bucket.
    """
    bucket = uri.removeprefix("s3://").partition("/")[0]
    folder = f"trials/{endpoint_name}/{result.request.plan_digest}/"
    try:
        with aws_failures(uri):
            listed = s3.list_objects_v2(Bucket=bucket, Prefix=folder, MaxKeys=_MOST_DOCUMENTS)
            keys = [entry["Key"] for entry in listed.get("Contents", ()) if entry["Key"].endswith(".json")]
            found = (key for key in keys if _started_at(s3, bucket, key) == result.started_at)
            key = next(found, None)
    except (BenchError, s3.exceptions.ClientError):
        return None
    return None if key is None else key.removeprefix(folder).removesuffix(".json")


def _started_at(s3: S3Client, bucket: str, key: str) -> str | None:
    text = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    try:
        document = json.loads(text)
    except ValueError:
        return None  # whatever it is, the result may be among the others
    return document.get("started_at") if isinstance(document, dict) else None
