"""The services of AWS that a call of the function works with."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.repeat import repeat_meanwhile
from seatrial_cdk.trials.runtime.answer import put_answer
from seatrial_cdk.trials.runtime.components import AwsComponents
from seatrial_cdk.trials.runtime.context import LambdaContext, TrialContext
from seatrial_cdk.trials.runtime.load_phase import load_share
from seatrial_cdk.trials.runtime.log_groups import RETENTION_DAYS, AwsLogGroups
from seatrial_cdk.trials.runtime.outcome import AwsBus, KmsSeal, NoTopic, TopicFindings
from seatrial_cdk.trials.runtime.ownership import LOOK_S
from seatrial_cdk.trials.runtime.scaling import AwsCopyScaling
from seatrial_cdk.trials.runtime.store import S3TrialStore, calling, with_conditions
from seatrial_load.measure.functions import SOCKETS_PER_FUNCTION
from seatrial_load.trial import steps as course
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.guard import MOST_ALARMS, guard_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricStatTypeDef, MetricTypeDef
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_stepfunctions import SFNClient

    from seatrial_cdk.trials.runtime.order import Execution
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.trial.dependencies import ShouldStop


MS_PER_S = 1000.0

LOAD_PERIOD_S = 10  # of the metric: high resolution

DEAD: Final[tuple[Literal["FAILED", "TIMED_OUT", "ABORTED"], ...]] = ("FAILED", "TIMED_OUT", "ABORTED")

ENDED: Final = "not running"
"""In the refusal to stop an execution that has ended (of the embedded AWS; what AWS answers is not known)."""
ALREADY_STARTED, UNKNOWN_EXECUTION = "ExecutionAlreadyExists", "ExecutionDoesNotExist"


@dataclass(frozen=True, slots=True)
class AwsWorkflow:
    """The state machine of trials; an execution is named after its request."""

    client: SFNClient
    arn: str

    def start(self, endpoint_name: str, request_id: str) -> None:
        """Start the trial of a request; one that was started before is the one."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        order = json.dumps({"EndpointName": endpoint_name, "RequestId": request_id})
        with calling("starting the trial's workflow"):
            try:
                self.client.start_execution(stateMachineArn=self.arn, name=request_id, input=order)
            except ClientError as refused:
                if refused.response["Error"]["Code"] != ALREADY_STARTED:
                    raise

    def stop(self, request_id: str, because: str) -> None:
        """Stop the trial of a request, if there is one that runs."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        execution = f"{self.arn.replace(':stateMachine:', ':execution:')}:{request_id}"
        with calling("stopping the trial's workflow"):
            try:
                self.client.stop_execution(executionArn=execution, error="Stopped", cause=because)
            except ClientError as refused:
                if refused.response["Error"]["Code"] != UNKNOWN_EXECUTION and ENDED not in f"{refused}":
                    raise

    def dead(self, since_s: float) -> list[Execution]:
        """Return the executions that ended since a time without an answer of their own, a hundred of each kind at most.

        Args:
            since_s: In seconds since the epoch.
        """
        executions: list[Execution] = []
        with calling("listing the trials' workflows"):
            for status in DEAD:
                page = self.client.list_executions(stateMachineArn=self.arn, statusFilter=status, maxResults=100)
                for execution in page["executions"]:
                    ended = execution.get("stopDate")
                    if (0.0 if ended is None else ended.timestamp()) >= since_s:
                        described = self.client.describe_execution(executionArn=execution["executionArn"])
                        order, cause = described.get("input", "{}"), described.get("cause")
                        executions.append({"status": status, "input": order, "cause": cause})
        return executions


@dataclass(frozen=True, slots=True)
class StackStatus:
    """What CloudFormation does with a stack."""

    client: CloudFormationClient

    def __call__(self, stack_id: str) -> str:
        """Return what the stack is doing (`UPDATE_IN_PROGRESS`)."""
        with calling("reading the stack's status"):
            return self.client.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]

    def change_set(self, stack_id: str) -> str:
        """Return the ARN of the change set that created or last updated the stack; empty without one."""
        with calling("reading the stack's change set"):
            return self.client.describe_stacks(StackName=stack_id)["Stacks"][0].get("ChangeSetId", "")


@dataclass(frozen=True, slots=True)
class ServingEndpoint:
    """The endpoint that serves, as an alias names it."""

    client: SSMClient

    def __call__(self, alias: str) -> str | None:
        """Return the endpoint that an alias names; `None` when there is no such alias."""
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

    client: CloudWatchClient

    def __call__(self, component: str, since_s: float) -> float:
        """Return the most requests in flight on a copy since a time in seconds since the epoch; 0 without any."""
        metric: MetricTypeDef = {
            "Namespace": "AWS/SageMaker",
            "MetricName": "ConcurrentRequestsPerCopy",
            "Dimensions": [{"Name": "InferenceComponentName", "Value": component}],
        }
        stat: MetricStatTypeDef = {"Metric": metric, "Period": LOAD_PERIOD_S, "Stat": "Maximum"}
        with calling(f"reading the load of {component}"):
            response = self.client.get_metric_data(
                MetricDataQueries=[{"Id": "load", "MetricStat": stat}],
                StartTime=datetime.fromtimestamp(since_s, UTC),
                EndTime=datetime.fromtimestamp(time.time(), UTC),
            )
        return max((value for result in response["MetricDataResults"] for value in result["Values"]), default=0.0)


@dataclass(frozen=True, slots=True)
class RaisedAlarmNames:
    """The alarms that are raised."""

    client: CloudWatchClient

    def __call__(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return which of some alarms are raised."""
        if not names:
            return ()
        with calling("reading the states of alarms"):
            response = self.client.describe_alarms(AlarmNames=names, AlarmTypes=["MetricAlarm"], MaxRecords=MOST_ALARMS)
        return tuple(alarm["AlarmName"] for alarm in response.get("MetricAlarms", []) if alarm["StateValue"] == "ALARM")


def aws_trial_context(lambda_context: LambdaContext) -> TrialContext:
    """Return what is around this call of the function on AWS."""
    ends_s = time.time() + lambda_context.get_remaining_time_in_millis() / MS_PER_S
    return replace(_function_context(), ends_s=ends_s)


@cache
def _function_context() -> TrialContext:
    """Return what is around every call of this function: a warm one has its clients, which take long to make.

    Variables: `ENVIRONMENT`, `RESULTS_BUCKET`, `SIGNING_KEY`, `STATE_MACHINE`, and, if they differ from the defaults,
    `SOCKETS_PER_FUNCTION`, `LOG_DAYS`, `FINDINGS_TOPIC` and `RECORDS_BUCKET`.
    """
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)
    from botocore.config import Config  # noqa: PLC0415 (likewise)

    # A VPC without an endpoint of KMS drops the call: no deployment waits minutes for a signature.
    briefly = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 3})
    cloudwatch, stacks = boto3.client("cloudwatch"), boto3.client("cloudformation")
    bucket, topic = os.environ["RESULTS_BUCKET"], os.environ.get("FINDINGS_TOPIC")
    s3, records = with_conditions(boto3.client("s3")), os.environ.get("RECORDS_BUCKET")
    return TrialContext(
        environment=os.environ["ENVIRONMENT"],
        store=S3TrialStore(s3, bucket),
        bucket=bucket,
        scaling=AwsCopyScaling(boto3.client("application-autoscaling")),
        components=AwsComponents(boto3.client("sagemaker"), stacks),
        logs=AwsLogGroups(boto3.client("logs"), int(os.environ.get("LOG_DAYS", f"{RETENTION_DAYS}"))),
        serving=ServingEndpoint(boto3.client("ssm")),
        raised=RaisedAlarmNames(cloudwatch),
        requests_since=ConcurrentRequests(cloudwatch),
        bus=AwsBus(boto3.client("events")),
        seal=KmsSeal(
            boto3.client("kms", config=briefly),
            os.environ["SIGNING_KEY"],
            os.environ["STATE_MACHINE"].replace(":stateMachine:", ":execution:"),
        ),
        findings=TopicFindings(boto3.client("sns"), topic) if topic else NoTopic(),
        workflow=AwsWorkflow(boto3.client("stepfunctions"), os.environ["STATE_MACHINE"]),
        stack_status=StackStatus(stacks),
        respond=put_answer,
        course=course,
        load=load_share,
        region=os.environ["AWS_REGION"],
        sockets_per_function=int(os.environ.get("SOCKETS_PER_FUNCTION", f"{SOCKETS_PER_FUNCTION}")),
        ends_s=0.0,
        now_s=time.time,
        sleep=time.sleep,
        repeat_meanwhile=partial(repeat_meanwhile, LOOK_S),
        guarded=guarded,
        records=S3TrialStore(s3, records, is_locked=True) if records else None,
        change_set=StackStatus(stacks).change_set,
    )


def guarded(request: TrialRequest, should_stop: ShouldStop) -> AbstractContextManager[ShouldStop]:
    """Watch users while a block adds load beside their requests; where none is added, nothing is watched.

    Raises:
        BenchError: The region of the target does not respond: SEA503, SEA504 or SEA512.
    """
    guard = guard_of(request, Tools())
    return nullcontext(should_stop) if guard is None else guard.beside(should_stop)
