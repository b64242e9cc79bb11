"""Outputs of a deployed stack, its trial and its result in the bucket of results, its optimization jobs.

The documents are those of the trial service (`seatrial_cdk.trials.runtime.store`), which a test holds together
with what is read here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.account.reader import aws_failures
from seatrial.deployment.document import COMPONENT_SUFFIX, endpoint_name, service_stack, stack_name
from seatrial.deployment.optimization_job import jobs_name, jobs_parameter_path
from seatrial.documents.live import LiveStack
from seatrial_base.bounds import LONGEST_ORDER_S
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.files import MOST_BYTES
from seatrial_base.units import MIB
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_ssm import SSMClient

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial_load.documents.result import LevelResult


LOOK_S = 2.0
_RULE = "SEA484"


class Documents(Protocol):
    """Texts by key."""

    def read(self, key: str) -> str | None:
        """Return a text; None when there is none."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of results."""

    client: S3Client
    name: str

    def read(self, key: str) -> str | None:
        """Return a text; None when there is none.

        Raises:
            BenchError: SEA501 when it can't be read; as `aws_failures` when AWS can't be read.
        """
        uri = f"s3://{self.name}/{key}"
        with aws_failures(uri, lambda error: BenchError.of("SEA501", f"it can't be read: {error}", where=uri)):
            try:
                return self.client.get_object(Bucket=self.name, Key=key)["Body"].read().decode()
            except self.client.exceptions.NoSuchKey:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTrial:
    """The state of a trial.

    Attributes:
        request_id: Of CloudFormation's request that it is made for; empty before there was one.
        is_due: Whether that request needs a trial.
        left_s: What is left of its budget, in seconds.
        levels: The levels that were measured.
        loading: The concurrency per copy of the level that is loaded; None while there is none.
        result: Its result; None before its end.
        error: Why there will be no result; empty otherwise.
    """

    request_id: str = ""
    is_due: bool = False
    left_s: float = 0.0
    levels: tuple[LevelResult, ...] = ()
    loading: int | None = None
    result: TrialResult | None = None
    error: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.result is not None or bool(self.error)


def look(documents: Documents, endpoint_name: str, *, now_s: float) -> LiveTrial:
    """Return the state of the last trial of an endpoint.

    Raises:
        BenchError: A document can't be read, or is of another version.
    """
    folders = ("state", "runs")  # what an older release kept is below `runs/`
    # The newer folder first: an owner that an older release left there is of an earlier trial.
    owner = next(filter(None, (_read(documents, f"{folder}/{endpoint_name}/owner.json") for folder in folders)), {})
    if not owner:
        return LiveTrial()
    request_id = f"{owner['request_id']}"
    key = f"{owner['document']}"
    document = documents.read(key) if key else None
    outcome = {} if document is None else json.loads(document)
    # A trial whose runner died writes nothing any more; after the longest time of one it is not waited for.
    has_expired = document is None and now_s - float(f"{owner['seen_at_s']}") >= LONGEST_ORDER_S
    if not key or has_expired or outcome.get("untried"):
        return LiveTrial(request_id=request_id)
    folder = f"runs/{endpoint_name}/{request_id}"
    text = documents.read(f"{folder}/progress.json")
    levels = () if text is None else TrialProgress.from_json(text).levels
    measured = {level.concurrency for level in levels}
    level = _read(documents, f"{folder}/level.json")
    error = f"{outcome.get('error', '')}"
    return LiveTrial(
        request_id=request_id,
        is_due=True,
        left_s=max(0.0, float(f"{owner['seen_at_s']}") + float(f"{owner['budget_s']}") - now_s),
        levels=levels,
        loading=int(f"{level['concurrency']}") if level and level["concurrency"] not in measured else None,
        result=None if document is None or error else TrialResult.from_json(document),
        error=error,
    )


def _read(documents: Documents, key: str) -> dict[str, object]:
    text = documents.read(key)
    document: dict[str, object] = {} if text is None else json.loads(text)
    return document


def follow(
    documents: Documents, endpoint_name: str, *, now_s: Callable[[], float], sleep: Callable[[float], None]
) -> Iterator[LiveTrial]:
    """Yield an endpoint's trial whenever more of it is known, until it has ended; another request's follows it.

    Raises:
        BenchError: As `look` does.
    """
    before = None
    while True:
        seen = look(documents, endpoint_name, now_s=now_s())
        known = (seen.request_id, len(seen.levels), seen.loading, seen.has_ended)
        if known != before:
            before = known
            yield seen
        if seen.has_ended or (seen.request_id and not seen.is_due):
            return
        sleep(LOOK_S)


def start_trial(function: LambdaClient, environment: str, name: str, generation: int, trial_id: str) -> str:
    """Start a trial, and return its request ID.

    Args:
        generation: Which endpoint of the spec it is, counted from 1.
        trial_id: Unique for each trial; a repeated one starts nothing new.

    Raises:
        BenchError: SEA479 when no trial can be started, with the reason; as `aws_failures` when AWS can't be read.
    """
    service, live = service_stack(environment), endpoint_name(environment, name, generation)
    call = {
        "EndpointName": live,
        "InferenceComponentName": f"{live}{COMPONENT_SUFFIX}",
        "StackId": stack_name(environment, name),
        "Id": trial_id,
    }
    hint = f"deploy the environment's trial service: cdk deploy {service}"
    with aws_failures(
        service,
        lambda error: BenchError.of("SEA479", f"the trial service did not answer: {error}", where=live, hint=hint),
    ):
        response = function.invoke(FunctionName=service, Payload=json.dumps({"Scheduled": call}).encode())
        text = response["Payload"].read().decode()
    answer = json.loads(text)
    if not isinstance(answer, dict) or "FunctionError" in response or "Started" not in answer:
        reason = answer.get("errorMessage", text) if isinstance(answer, dict) else text
        hint = f"see the log of {service}; one of an older release takes no request: deploy it again"
        raise BenchError.of("SEA479", f"the trial service failed: {reason}", where=live, hint=hint)
    if not answer["Started"]:
        hint = "try again when the endpoint is at rest"
        raise BenchError.of("SEA479", f"no trial was started: {answer['Because']}", where=live, hint=hint)
    return f"{answer['RequestId']}"


def describe_stack(name: str, cloudformation: CloudFormationClient) -> LiveStack:
    """Read a stack.

    Raises:
        BenchError: SEA502 when there is no such stack; as `aws_failures` when AWS can't be read.
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
        BenchError: As `fetch_result_text`; SEA501 when the document is no result.
    """
    return TrialResult.from_json(fetch_result_text(uri, s3))


def fetch_result_text(uri: str, s3: S3Client) -> str:
    """Read a trial's result from its S3 URI as its service wrote and signed it.

    Raises:
        BenchError: SEA501 when the URI is wrong or the document can't be read, SEA507 when the trial itself ended with
            an error; as `aws_failures` when AWS can't be read.
    """
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not uri.startswith("s3://") or not key:
        raise BenchError.of("SEA501", f"{uri!r} is not s3://BUCKET/KEY", hint="use the stack's output TrialResultUri")
    with aws_failures(uri, lambda error: BenchError.of("SEA501", f"the result can't be read: {error}", where=uri)):
        # One byte more than allowed is enough to know that it is too large, and the rest is not loaded.
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise BenchError.of("SEA501", f"the result is larger than {MOST_BYTES // MIB} MiB", where=uri)
    text = body.decode(errors="replace")
    if failure := _failure(text):
        raise BenchError.of("SEA507", failure, where=uri, hint="fix the cause and deploy again")
    return text


def _failure(text: str) -> str:
    """Return the error that the runner wrote instead of a result; empty when it is no such document."""
    try:
        document = json.loads(text)
    except ValueError:
        return ""
    return str(document.get("error", "")) if isinstance(document, dict) else ""


@dataclass(frozen=True, slots=True)
class LiveJob:
    """The state of a job.

    Attributes:
        job: Name of the last attempt.
        state: As SageMaker reported it; `NOT STARTED` before the first attempt is created.
        artifact_s3_uri: Where it writes.
        recommended_image: What SageMaker recommends; empty before it is completed.
    """

    job: str
    state: str
    artifact_s3_uri: str
    recommended_image: str
    created: str
    failure_reason: str


def job_parameter(request: OptimizationJobRequest) -> str:
    """Return the name of the SSM parameter with the state of a job."""
    return f"{jobs_parameter_path(request.environment)}/{request.digest}"


def request_of(deployment: Deployment) -> OptimizationJobRequest:
    """Return the job of a deployment.

    Raises:
        SpecError: SEA484 when its recipe has none.
    """
    if deployment.optimization_job is None:
        hint = "a recipe has one with `job`, as `optimization: [{awq: {job: true}}]`"
        where = deployment.endpoint.name
        raise SpecError.of(_RULE, "its recipe needs no optimization job", where=where, field="optimization", hint=hint)
    return deployment.optimization_job


def job_state(parameters: SSMClient, request: OptimizationJobRequest) -> LiveJob:
    """Return the state of a job from its parameter; the workflow looks every five minutes at most.

    Raises:
        BenchError: SEA484 when no deployment needs it; as `aws_failures` when AWS can't be read.
    """
    with aws_failures(request.name, lambda error: _undeployed(request, f"{error}")):
        text = f"{parameters.get_parameter(Name=job_parameter(request))['Parameter']['Value']}"
    state = json.loads(text)
    return LiveJob(**{name: f"{state[name]}" for name in LiveJob.__slots__})


def start_job(function: LambdaClient, request: OptimizationJobRequest, request_id: str) -> tuple[str, str]:
    """Start a job that failed, was stopped or has lost its artifacts; one that runs or is completed stays.

    Args:
        request_id: Unique for each start; a repeated one starts nothing new.

    Returns:
        Name and state of the attempt.

    Raises:
        BenchError: SEA484 when no deployment needs it; as `aws_failures` when AWS can't be read.
    """
    call = json.dumps({"Start": request.digest, "RequestId": request_id}).encode()
    try:
        with aws_failures(request.name):
            response = function.invoke(FunctionName=jobs_name(request.environment), Payload=call)
            text = response["Payload"].read().decode()
    except function.exceptions.ClientError as error:
        raise _undeployed(request, f"{error}") from error
    answer = json.loads(text)
    if "FunctionError" in response or not isinstance(answer, dict):
        reason = answer.get("errorMessage", text) if isinstance(answer, dict) else text
        raise _undeployed(request, reason)
    return f"{answer['Job']}", f"{answer['State']}"


def _undeployed(request: OptimizationJobRequest, reason: str) -> BenchError:
    stack = jobs_name(request.environment)
    hint = f"deploy the jobs of this recipe: cdk deploy {stack}; else see the log of function {stack}"
    return BenchError.of(_RULE, f"nothing is known of it: {reason}", where=request.name, hint=hint)
