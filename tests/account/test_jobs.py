"""What is told of an optimization job, and a start of it by hand."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from seatrial.account.trials import job_parameter, job_state, start_job
from seatrial.deployment.optimization_job import OptimizationJobRequest
from seatrial_base.errors import BenchError
from seatrial_cdk.jobs.runtime.jobs import JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_ssm import SSMClient

REQUEST = OptimizationJobRequest(environment="dev", instance_type="ml.g5.xlarge", configs=(), image="image:1")
TOLD = JobState("dev-abc", 2, "FAILED", "s3://bucket/optimized/abc/2/", failure_reason="out of memory")
GONE = ClientError({"Error": {"Code": "ParameterNotFound", "Message": "no such parameter"}}, "GetParameter")


@dataclass
class Aws:
    """A parameter and the function of the jobs; they answer as they are told to."""

    answer: object = None
    failed: dict[str, str] = field(default_factory=dict)
    asked: list[object] = field(default_factory=list)
    exceptions: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(ClientError=ClientError))

    def get_parameter(self, *, Name: str) -> Mapping[str, Mapping[str, object]]:  # noqa: N803
        self.asked.append(Name)
        if self.answer is None:
            raise GONE
        return {"Parameter": {"Value": json.dumps(self.answer)}}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, object]:  # noqa: N803
        self.asked.append((FunctionName, json.loads(Payload)))
        return {"Payload": io.BytesIO(json.dumps(self.answer).encode()), **self.failed}


def test_the_parameter_that_the_function_writes_is_read() -> None:
    aws = Aws(asdict(TOLD))
    found = job_state(cast("SSMClient", aws), REQUEST)
    assert (found.job, found.state, found.failure_reason) == ("dev-abc", "FAILED", "out of memory")
    assert aws.asked == [job_parameter(REQUEST)]


def test_a_job_that_no_deployment_asked_for_is_told_with_the_stack_to_deploy() -> None:
    with pytest.raises(BenchError, match="SEA484") as raised:
        job_state(cast("SSMClient", Aws()), REQUEST)
    assert "cdk deploy seatrial-dev-optimizations" in str(raised.value)


def test_a_start_names_the_digest_and_tells_the_attempt() -> None:
    aws = Aws({"Job": "dev-abc-3", "State": "NOT STARTED"})
    assert start_job(cast("LambdaClient", aws), REQUEST, "7") == ("dev-abc-3", "NOT STARTED")
    assert aws.asked == [("seatrial-dev-optimizations", {"Start": REQUEST.digest, "RequestId": "7"})]
    failed = Aws({"errorMessage": "no parameter"}, {"FunctionError": "Unhandled"})
    with pytest.raises(BenchError, match="no parameter"):
        start_job(cast("LambdaClient", failed), REQUEST, "7")
