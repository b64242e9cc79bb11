"""Everything around one call of the function: documents, the services of AWS, the bench, and time."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol

from seatrial_cdk.trial_service.runtime.answer import put_answer
from seatrial_cdk.trial_service.runtime.components import AwsComponents
from seatrial_cdk.trial_service.runtime.event import AwsBus
from seatrial_cdk.trial_service.runtime.findings import NoTopic, TopicFindings
from seatrial_cdk.trial_service.runtime.load_share import load_share
from seatrial_cdk.trial_service.runtime.log_groups import RETENTION_DAYS, AwsLogGroups
from seatrial_cdk.trial_service.runtime.ownership import LOOK_S, beside
from seatrial_cdk.trial_service.runtime.scaling import AwsCopyScaling
from seatrial_cdk.trial_service.runtime.share_count import SOCKETS_PER_FUNCTION
from seatrial_cdk.trial_service.runtime.store import S3TrialStore, calling
from seatrial_load.trial import steps as course
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.guard import guard_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_stepfunctions import SFNClient

    from seatrial_cdk.trial_service.runtime.answer import Respond
    from seatrial_cdk.trial_service.runtime.components import Components
    from seatrial_cdk.trial_service.runtime.dead_execution import Execution
    from seatrial_cdk.trial_service.runtime.event import Bus
    from seatrial_cdk.trial_service.runtime.findings import Findings
    from seatrial_cdk.trial_service.runtime.load_share import LoadShare
    from seatrial_cdk.trial_service.runtime.log_groups import LogGroups
    from seatrial_cdk.trial_service.runtime.scaling import ComponentScaling
    from seatrial_cdk.trial_service.runtime.store import TrialStore
    from seatrial_load.aws.cloudwatch import CloudWatch
    from seatrial_load.metrics.aggregate import LevelTally
    from seatrial_load.model.progress import TrialProgress
    from seatrial_load.model.request import TrialRequest
    from seatrial_load.model.result import TrialResult
    from seatrial_load.search import NextLevel, Step
    from seatrial_load.trial.dependencies import ShouldStop

MS_PER_S = 1000.0
LOAD_PERIOD_S = 10  # of the metric: high resolution
DEAD: Final[tuple[Literal["FAILED", "TIMED_OUT", "ABORTED"], ...]] = ("FAILED", "TIMED_OUT", "ABORTED")
ALREADY_STARTED, UNKNOWN_EXECUTION = "ExecutionAlreadyExists", "ExecutionDoesNotExist"


class LambdaContext(Protocol):
    """What Lambda tells a function about its own call."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how long this call may go on."""


class Course(Protocol):
    """A trial, level by level: `seatrial_load.trial.steps`."""

    def begin(
        self, request: TrialRequest, tools: Tools = ..., *, should_stop: ShouldStop = ..., waited_s: float = ...
    ) -> TrialProgress:
        """Prove what is live, and warm up."""

    def next_step(self, request: TrialRequest, progress: TrialProgress) -> Step:
        """Return which level is measured next, or why none is."""

    def absorb(
        self, request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally
    ) -> TrialProgress:
        """Take a level that was measured into the trial."""

    def conclude(
        self,
        request: TrialRequest,
        progress: TrialProgress,
        tools: Tools = ...,
        *,
        baseline: TrialResult | None = ...,
        baseline_uri: str = ...,
    ) -> TrialResult:
        """Prove again what is live, and say what the levels mean."""


class Workflow(Protocol):
    """The executions of trials."""

    def start(self, endpoint_name: str, request_id: str) -> None:
        """Start the trial of a request; one that was started before is the one."""

    def stop(self, request_id: str, because: str) -> None:
        """Stop the trial of a request, if there is one."""

    def dead(self, since_s: float) -> list[Execution]:
        """Return the executions that ended since a time without an answer of their own."""


@dataclass(frozen=True, slots=True)
class AwsWorkflow:
    """The state machine of trials; an execution is named after its request."""

    client: SFNClient
    arn: str

    def start(self, endpoint_name: str, request_id: str) -> None:
        """Start the trial of a request; one that was started before is the one.

        Raises:
            UnavailableError: It may not have been started.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        told = json.dumps({"EndpointName": endpoint_name, "RequestId": request_id})
        with calling("starting the trial's workflow"):
            try:
                self.client.start_execution(stateMachineArn=self.arn, name=request_id, input=told)
            except ClientError as refused:
                if refused.response["Error"]["Code"] != ALREADY_STARTED:
                    raise

    def stop(self, request_id: str, because: str) -> None:
        """Stop the trial of a request, if there is one.

        Raises:
            UnavailableError: It may not have been stopped.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        execution = f"{self.arn.replace(':stateMachine:', ':execution:')}:{request_id}"
        with calling("stopping the trial's workflow"):
            try:
                self.client.stop_execution(executionArn=execution, error="Stopped", cause=because)
            except ClientError as refused:
                if refused.response["Error"]["Code"] != UNKNOWN_EXECUTION:
                    raise

    def dead(self, since_s: float) -> list[Execution]:
        """Return the executions that ended since a time without an answer of their own, a hundred of each kind at most.

        Args:
            since_s: In seconds since the epoch.

        Raises:
            UnavailableError: They can't be told.
        """
        found: list[Execution] = []
        with calling("listing the trials' workflows"):
            for status in DEAD:
                told = self.client.list_executions(stateMachineArn=self.arn, statusFilter=status, maxResults=100)
                ended = [each for each in told["executions"] if _ended_s(each.get("stopDate")) >= since_s]
                found += [self._described(each["executionArn"], status) for each in ended]
        return found

    def _described(self, arn: str, status: str) -> Execution:
        told = self.client.describe_execution(executionArn=arn)
        return {"status": status, "input": told.get("input", "{}"), "cause": told.get("cause")}


def _ended_s(at: datetime | None) -> float:
    return 0.0 if at is None else at.timestamp()


@dataclass(frozen=True, slots=True)
class StackStatus:
    """What CloudFormation does with a stack."""

    client: CloudFormationClient

    def __call__(self, stack_id: str) -> str:
        """Return what the stack is doing (`UPDATE_IN_PROGRESS`).

        Raises:
            UnavailableError: CloudFormation did not answer.
        """
        with calling("reading the stack's status"):
            return self.client.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]


class ParametersClient(Protocol):
    """The one call of boto3's Systems Manager client that is made here."""

    def get_parameter(self, *, Name: str) -> Mapping[str, Mapping[str, str]]:  # noqa: N803 (boto3's name)
        """Return a parameter."""


@dataclass(frozen=True, slots=True)
class ServingEndpoint:
    """The endpoint that serves, as an alias names it."""

    client: ParametersClient

    def __call__(self, alias: str) -> str | None:
        """Return the endpoint that an alias names; `None` when there is no such alias.

        Raises:
            UnavailableError: The parameter can't be read.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        with calling(f"reading {alias}"):
            try:
                value = self.client.get_parameter(Name=alias)["Parameter"]["Value"]
            except ClientError as refused:
                if refused.response["Error"]["Code"] != "ParameterNotFound":
                    raise
                return None
        named: str | None = json.loads(value).get("endpoint_name")
        return named


@dataclass(frozen=True, slots=True)
class ConcurrentRequests:
    """The load of a component, as SageMaker publishes it."""

    client: CloudWatch

    def __call__(self, component: str, since_s: float) -> float:
        """Return the most requests in flight on a copy since a time in seconds since the epoch; 0 without any.

        Raises:
            UnavailableError: CloudWatch did not answer.
        """
        with calling(f"reading the load of {component}"):
            told = self.client.get_metric_data(
                MetricDataQueries=[_most_requests(component)],
                StartTime=datetime.fromtimestamp(since_s, UTC),
                EndTime=datetime.now(UTC),
            )
        return max((value for result in told["MetricDataResults"] for value in result["Values"]), default=0.0)


def _most_requests(component: str) -> dict[str, object]:
    metric = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "ConcurrentRequestsPerCopy",
        "Dimensions": [{"Name": "InferenceComponentName", "Value": component}],
    }
    return {"Id": "load", "MetricStat": {"Metric": metric, "Period": LOAD_PERIOD_S, "Stat": "Maximum"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What one call of the function works with.

    Attributes:
        environment: The environment's name, with which the names of its endpoints begin.
        store: Where documents lie.
        bucket: The name of the bucket of results.
        scaling: The scaling of copies.
        components: The inference components.
        logs: The log groups of containers.
        serving: Returns the endpoint that an alias names; `None` when there is no such alias.
        requests_since: Returns the most requests in flight on a copy of a component since a time.
        bus: Where the end of a trial is announced.
        findings: Where people are told of what a scheduled trial found.
        workflow: Starts and stops trials.
        stack_status: Says what a stack is doing.
        respond: Gives CloudFormation an answer.
        course: The trial, level by level.
        load: Loads one share of a level.
        region: Of the endpoint.
        sockets_per_function: Requests that one function keeps in flight.
        ends_s: When this call must have ended, in seconds since the epoch.
        now_s: The time, in seconds since the epoch.
        sleep: Waits.
        beside: Does something again and again while a block runs.
        guarded: Watches users while a block adds load beside their requests.
    """

    environment: str
    store: TrialStore
    bucket: str
    scaling: ComponentScaling
    components: Components
    logs: LogGroups
    serving: Callable[[str], str | None]
    requests_since: Callable[[str, float], float]
    bus: Bus
    findings: Findings
    workflow: Workflow
    stack_status: Callable[[str], str]
    respond: Respond
    course: Course
    load: LoadShare
    region: str
    sockets_per_function: int
    ends_s: float
    now_s: Callable[[], float]
    sleep: Callable[[float], None]
    beside: Callable[[Callable[[], object]], AbstractContextManager[None]]
    guarded: Callable[[TrialRequest, ShouldStop], AbstractContextManager[ShouldStop]]


def aws_surroundings(context: LambdaContext) -> Surroundings:
    """Return what is around this function on AWS.

    Variables: `ENVIRONMENT`, `RESULTS_BUCKET`, `STATE_MACHINE`, and, if they differ from the defaults,
    `SOCKETS_PER_FUNCTION`, `LOG_DAYS` and `FINDINGS_TOPIC`.
    """
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    bucket, topic = os.environ["RESULTS_BUCKET"], os.environ.get("FINDINGS_TOPIC")
    return Surroundings(
        environment=os.environ["ENVIRONMENT"],
        store=S3TrialStore(boto3.client("s3"), bucket),
        bucket=bucket,
        scaling=AwsCopyScaling(boto3.client("application-autoscaling")),
        components=AwsComponents(boto3.client("sagemaker")),
        logs=AwsLogGroups(boto3.client("logs"), int(os.environ.get("LOG_DAYS", f"{RETENTION_DAYS}"))),
        serving=ServingEndpoint(boto3.client("ssm")),
        requests_since=ConcurrentRequests(boto3.client("cloudwatch")),
        bus=AwsBus(boto3.client("events")),
        findings=TopicFindings(boto3.client("sns"), topic) if topic else NoTopic(),
        workflow=AwsWorkflow(boto3.client("stepfunctions"), os.environ["STATE_MACHINE"]),
        stack_status=StackStatus(boto3.client("cloudformation")),
        respond=put_answer,
        course=course,
        load=load_share,
        region=os.environ["AWS_REGION"],
        sockets_per_function=int(os.environ.get("SOCKETS_PER_FUNCTION", f"{SOCKETS_PER_FUNCTION}")),
        ends_s=time.time() + context.get_remaining_time_in_millis() / MS_PER_S,
        now_s=time.time,
        sleep=time.sleep,
        beside=partial(beside, LOOK_S),
        guarded=guarded,
    )


def guarded(request: TrialRequest, should_stop: ShouldStop) -> AbstractContextManager[ShouldStop]:
    """Watch users while a block adds load beside their requests; where none is added, nobody is watched.

    Raises:
        BenchError: The region of the target can't be asked: SEA503, SEA504 or SEA512.
    """
    guard = guard_of(request, Tools())
    return nullcontext(should_stop) if guard is None else guard.beside(should_stop)
