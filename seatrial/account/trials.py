"""A deployment's trial while it runs, read from its environment's bucket of results.

The documents are those of the trial service (`seatrial_cdk.trials.runtime.store`), which a test holds together
with what is read here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.account.reader import aws_failures
from seatrial.deployment.document import COMPONENT_SUFFIX, endpoint_name, service_stack, stack_name
from seatrial_base.bounds import LONGEST_ORDER_S
from seatrial_base.errors import BenchError
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client

    from seatrial_load.documents.result import LevelResult

LOOK_S = 2.0


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
            BenchError: SEA501 when it can't be read; as `aws_failures` when AWS can't be asked.
        """
        uri = f"s3://{self.name}/{key}"
        with aws_failures(uri, lambda error: BenchError.of("SEA501", f"it can't be read: {error}", where=uri)):
            try:
                return self.client.get_object(Bucket=self.name, Key=key)["Body"].read().decode()
            except self.client.exceptions.NoSuchKey:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTrial:
    """A trial as it stands.

    Attributes:
        request_id: Of CloudFormation's request that it is made for; empty before there was one.
        is_due: Whether that request needs a trial.
        left_s: What is left of its budget, in seconds.
        levels: The levels that were measured.
        loading: The concurrency per copy of the level that is loaded; None while there is none.
        result: What it found; None before its end.
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
    """Return the last trial of an endpoint as it stands.

    Args:
        documents: The environment's bucket of results.
        endpoint_name: The endpoint's name on SageMaker.
        now_s: The time, in seconds since the epoch.

    Raises:
        BenchError: A document can't be read, or is of another version.
    """
    folders = ("state", "runs")  # what an older release kept is below `runs/`
    owner = next(filter(None, (_read(documents, f"{folder}/{endpoint_name}/owner.json") for folder in folders)), {})
    if not owner:
        return LiveTrial()
    request_id = f"{owner['request_id']}"
    key = f"{owner['document']}"
    document = documents.read(key) if key else None
    has_expired = document is None and now_s - float(f"{owner['seen_at_s']}") >= LONGEST_ORDER_S
    if not key or has_expired:
        return LiveTrial(request_id=request_id)
    if document is not None and json.loads(document).get("untried"):
        return LiveTrial(request_id=request_id)
    folder = f"runs/{endpoint_name}/{request_id}"
    text = documents.read(f"{folder}/progress.json")
    levels = () if text is None else TrialProgress.from_json(text).levels
    level = _read(documents, f"{folder}/level.json")
    error = "" if document is None else f"{json.loads(document).get('error', '')}"
    return LiveTrial(
        request_id=request_id,
        is_due=True,
        left_s=max(0.0, float(f"{owner['seen_at_s']}") + float(f"{owner['budget_s']}") - now_s),
        levels=levels,
        loading=int(f"{level['concurrency']}") if level and level["concurrency"] not in _measured(levels) else None,
        result=None if document is None or error else TrialResult.from_json(document),
        error=error,
    )


def _measured(levels: tuple[LevelResult, ...]) -> set[object]:
    return {level.concurrency for level in levels}


def _read(documents: Documents, key: str) -> dict[str, object]:
    text = documents.read(key)
    found: dict[str, object] = {} if text is None else json.loads(text)
    return found


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
        function: A client of the environment's region.
        environment: The environment's name.
        name: The endpoint's name in its spec.
        generation: Which endpoint of the spec it is, counted from 1.
        trial_id: Unique for each trial; a repeated one starts nothing new.

    Raises:
        BenchError: SEA479 when no trial can be started, with the reason; as `aws_failures` when AWS can't be asked.
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
        told = function.invoke(FunctionName=service, Payload=json.dumps({"Scheduled": call}).encode())
        text = told["Payload"].read().decode()
    answer = json.loads(text)
    if not isinstance(answer, dict) or "FunctionError" in told or "Started" not in answer:
        said = answer.get("errorMessage", text) if isinstance(answer, dict) else text
        hint = f"see the log of {service}; one of an older release can't be asked: deploy it again"
        raise BenchError.of("SEA479", f"the trial service failed: {said}", where=live, hint=hint)
    if not answer["Started"]:
        hint = "try again when the endpoint is at rest"
        raise BenchError.of("SEA479", f"no trial was started: {answer['Because']}", where=live, hint=hint)
    return f"{answer['RequestId']}"
