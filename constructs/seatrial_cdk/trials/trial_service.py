"""The service that puts an environment's endpoints through their sea trials: one function, one workflow, one bucket.

    Begin ─▶ Choose ─▶ Load ─▶ Absorb ─▶ Choose ─▶ … ─▶ Conclude ─▶ Answer

The workflow is a state machine. What its steps hand on is in the results bucket; the states carry keys and numbers,
never a result and never CloudFormation's response URL.

The function may act on the endpoints of this environment, and on nothing else. An endpoint and a component belong to an
environment by the beginning of their names and by their tag (`seatrial_base.tags`). That the actions honour
`aws:ResourceTag` is in the Service Authorization Reference, "Amazon SageMaker": the resource types endpoint and
inference-component have that key.
"""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

import seatrial_base
import seatrial_cdk
import seatrial_load
from seatrial.packaging import zip_bytes
from seatrial.specs.environment import DAYS_PER_YEAR, Audit, Retention
from seatrial_base.bounds import LONGEST_FUNCTION_S, SWEEP_S
from seatrial_base.tags import CANDIDATE, ENVIRONMENT_TAG, OWNER_TAG, TRIAL_SERVICE
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.endpoint_interface import BEARER_ACTION, INVOKE_ACTIONS, arn_name
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS
from seatrial_cdk.observability.endpoint_alarms import alarm_prefix
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import acknowledge, acknowledge_wildcards, allow_unnamed
from seatrial_cdk.private_bucket import bound_emptying_role, private_bucket, removal_policy
from seatrial_cdk.service_function import (
    EnvironmentService,
    handler_module,
    log_group_of,
    packed_modules,
    service_function,
    service_role,
    service_workflow,
)
from seatrial_cdk.trials.runtime.outcome import DETAIL_TYPE, SOURCE
from seatrial_cdk.trials.runtime.store import EXPIRING, STATE_FOLDERS, TRIALS
from seatrial_load.measure.functions import SOCKETS_PER_FUNCTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal

    from aws_cdk import aws_sns as sns
    from aws_cdk.aws_logs import LogGroup

    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.endpoint.execution_role import RoleOptions


_SHARED_MODULES = (
    "__init__.py",
    "bounds.py",
    "catalog/__init__.py",
    "catalog/data/rules.json",
    "catalog/data/symptoms.json",
    "catalog/rows.py",
    "catalog/symptoms.py",
    "errors.py",
    "field_facts.py",
    "findings.py",
    "repeat.py",
    "secrets.py",
    "tags.py",
    "text.py",
    "units.py",
)
RESULTS_ACKNOWLEDGED = {
    "S1": "The trial service alone reads and writes the bucket; CloudTrail data events log who reads it."
}
DESCRIBE = "sagemaker:DescribeEndpoint"
HANDLER = "seatrial_cdk.trial_service.runtime.handler.handler"
ONE_VCPU_MEMORY_MB = 1769  # Lambda gives one full vCPU at this size (Lambda developer guide, memory)
SWEEP = f"rate({SWEEP_S // 60} minutes)"
ACKNOWLEDGED = {
    "L1": "The function runs on the Python version that its code is tested with.",
    "SF1": "Step Functions keeps the history of an execution for 90 days, and each step writes to the function's log.",
    "SF2": "Each step writes its duration to the function's log; tracing would need rights on every X-Ray resource.",
}
WILDCARDS = (
    "Actions on * have no resource level (seatrial_cdk.policy); the other wildcards end a name that begins "
    "with the environment's, or are IDs that are not known beforehand and bound by conditions."
)

STEPS: Final = ("Begin", "Choose", "Absorb", "Conclude", "Abandon", "Settle", "Answer")

NOT_STARTED: Final = ("Lambda.TooManyRequestsException",)
"""Refusals after which nothing has run: the only ones after which a share of the load is requested again.

The account runs as many functions as it may at a time, other endpoints' trials among them.
"""

DEAD: Final = (
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Runtime.HandlerError",
    "Sandbox.Timedout",
    "States.Timeout",
    "UnavailableError",
)
"""After which a step is done again: its function died, or a call of AWS inside it failed.

The embedded AWS calls a function that died `Runtime.HandlerError`.
"""

RETRIES: Final[dict[str, object]] = {
    "IntervalSeconds": 5,
    "MaxAttempts": 10,
    "BackoffRate": 1.5,
    "MaxDelaySeconds": 30,
    "JitterStrategy": "FULL",
}
"""Of a step that found no free function: up to 3.5 minutes, as other trials' levels take."""
SHARE_RETRIES: Final[dict[str, object]] = {**RETRIES, "IntervalSeconds": 2, "MaxAttempts": 8, "MaxDelaySeconds": 10}
"""Of a share, up to a minute: `steps.LONGEST_BARRIER_S`, after which it is late anyway."""

MOST_SHARES: Final = 40
"""Iterations of an inline map at a time (AWS Step Functions developer guide, inline mode)."""

LONGEST_WORKFLOW_S: Final = 3480
"""The longest budget is 50 minutes, and CloudFormation waits an hour: two minutes are for who ends a hung workflow."""

FOLDERS = (TRIALS, *STATE_FOLDERS)


class TrialResults(Construct):
    """An encrypted, private bucket of trial results; its layout is in `runtime.store`.

    Only the history of trials and of their runs expires. What later deployments are answered from (the latest and the
    passing result of each plan, the copies of the last response) or compared with (what is released) stays.

    Args:
        removal: `destroy` empties and deletes the bucket with the stack; `retain` keeps it and its key, unless it is
            their own creation that is rolled back.
        key: Key to encrypt with; default: a key of its own that rotates every year.
        expiry: How long the history is kept; default: one year.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal: Literal["destroy", "retain"] = "retain",
        key: kms.IKey | None = None,
        expiry: Duration | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.removal = removal
        policy = removal_policy(removal)
        self.key: kms.IKey = (
            key
            if key is not None
            else kms.Key(self, "Key", description="Results of trials", enable_key_rotation=True, removal_policy=policy)
        )
        rules = [s3.LifecycleRule(prefix=f"{folder}/", expiration=expiry or Duration.days(365)) for folder in EXPIRING]
        self.bucket = private_bucket(self, key=self.key, removal=removal, lifecycle_rules=rules)
        acknowledge(self.bucket, RESULTS_ACKNOWLEDGED)


class ServedRecords(Construct):
    """The bucket of records of what served: versioned, under S3 Object Lock, written by one role, always retained.

    S3 encrypts it with its own keys: no deletion of a KMS key makes a record unreadable.

    Args:
        audit: Mode and years of the lock.
    """

    def __init__(self, scope: Construct, construct_id: str, *, audit: Audit) -> None:
        super().__init__(scope, construct_id)
        kept, lock = Duration.days(audit.years * DAYS_PER_YEAR), s3.ObjectLockRetention
        self.bucket = s3.Bucket(
            self,
            "Resource",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            object_lock_enabled=True,
            object_lock_default_retention=lock.compliance(kept)
            if audit.mode == "compliance"
            else lock.governance(kept),
            removal_policy=removal_policy("retain"),
        )
        acknowledge(self.bucket, RESULTS_ACKNOWLEDGED)

    def refuse_others(self, writer: iam.Role) -> None:
        """Deny writing to every role but one, and hiding what was written to all."""
        stack = Stack.of(self)
        # AWS compares the role's ARN, the embedded AWS that of its session.
        sessions = f"arn:{stack.partition}:sts::{stack.account}:assumed-role/{writer.role_name}/*"
        others = {"ArnNotLike": {"aws:PrincipalArn": [writer.role_arn, sessions]}}
        # A deletion without a version leaves the locked one, behind a marker that hides it.
        for action, conditions in (("s3:PutObject", others), ("s3:DeleteObject", None)):
            self.bucket.add_to_resource_policy(
                iam.PolicyStatement(
                    effect=iam.Effect.DENY,
                    principals=[iam.AnyPrincipal()],
                    actions=[action],
                    resources=[self.bucket.arn_for_objects("*")],
                    conditions=conditions,
                )
            )


@cache
def runtime_archive() -> bytes:
    """Return the zip archive of the handler and of the load tester; equal sources give equal bytes."""
    base, load, library = (Path(package.__path__[0]) for package in (seatrial_base, seatrial_load, seatrial_cdk))
    runtime = library / "trials" / "runtime"
    own = [
        library / "__init__.py",
        library / "trials" / "__init__.py",
        *runtime.glob("*.py"),
        *runtime.glob("models/**/*.json"),
    ]
    return zip_bytes(
        {
            **packed_modules(base, [base / name for name in _SHARED_MODULES]),
            **packed_modules(load, load.rglob("*.py")),
            **packed_modules(library, own),
            **handler_module(HANDLER, "seatrial_cdk.trials.runtime.handler"),
        }
    )


def service_name(environment: str) -> str:
    """Return the name of the function, of the workflow and of the stack that make an environment's trials."""
    return f"seatrial-{environment}-trials"


def function_arn(stack: Stack, environment: str) -> str:
    """Return the ARN of the function that an endpoint's stack asks for a trial; no stack exports it.

    Args:
        stack: The endpoint's stack, in the account and region of the environment.
    """
    return StackPlace.of(stack).arn("lambda", f"function:{service_name(environment)}")


class TrialService(EnvironmentService):
    """The trials of an environment's endpoints; there is one in an account and region for each environment.

    The function answers CloudFormation's requests for `SmokeBenchmark` resources, and does the work of the workflow:
    each step, and each share of a level's load. While a trial measures, nothing scales the copies. The history of an
    execution is AWS Step Functions' own, kept for 90 days; the function's log is in a group of its own. The metrics of
    each trial are in namespace `Seatrial`, its end is an event of source `seatrial` on the default bus.

    Args:
        environment: The environment's name; what is tried has it at the beginning of its name and as its tag.
        removal: What becomes of results and log on deletion.
        network: The VPC of the function (`ContainerNetwork.in_vpc`); default: Lambda's own network.
        key: Key of the results; default: a key of its own.
        role_options: Path and permissions boundary of its roles.
        retention: How long results and logs are kept; default: a year and a month.
        audit: Records what serves, and keeps the results as long; default: no record.
        sockets_per_function: Requests that one function keeps in flight; fewer make more functions.
        findings_topic: Topic for the findings of scheduled trials; default: no endpoint may have a schedule.
        findings_topic_arn: The topic by its ARN, in place of `findings_topic`.
        further_topic_arns: Topics that schedules may name beside it.
        any_stack: Stacks ask for trials too, whatever their names.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        removal: Literal["destroy", "retain"] = "retain",
        network: ContainerNetwork | None = None,
        key: kms.IKey | None = None,
        role_options: RoleOptions = NO_OPTIONS,
        retention: Retention | None = None,
        audit: Audit | None = None,
        sockets_per_function: int = SOCKETS_PER_FUNCTION,
        any_stack: bool = False,
        findings_topic: sns.ITopic | None = None,
        findings_topic_arn: str | None = None,
        further_topic_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        self.environment = environment
        self.name = service_name(environment)
        self.findings_topic_arn = findings_topic_arn if findings_topic is None else findings_topic.topic_arn
        self.further_topic_arns = tuple(further_topic_arns)
        self.role_options = role_options
        network = network or ContainerNetwork()
        kept = retention or Retention()
        days = kept.results_days or (None if audit is None else audit.years * DAYS_PER_YEAR)
        expiry = None if days is None else Duration.days(days)
        self.results = TrialResults(self, "Results", key=key, removal=removal, expiry=expiry)
        self.records = None if audit is None else ServedRecords(self, "Records", audit=audit)
        bound_emptying_role(self, role_options)
        logs = log_group_of(self, keep=removal == "retain", days=kept.log_days)
        self.role = _role(self, environment, network, logs, any_stack=any_stack)
        self.signing_key = _signing_key(self, removal)
        if self.records is not None:
            self.records.refuse_others(self.role)
        self.function = _function(
            self, environment, network, logs, log_days=kept.log_days, sockets_per_function=sockets_per_function
        )
        self.state_machine = service_workflow(
            self,
            description=f"Workflow of {self.name}",
            definition=definition("${Function}"),
        )
        # An execution that ended without an answer: CloudFormation gets one all the same.
        _call_by(
            self,
            "DeadWorkflows",
            f"Executions of {self.name} that ended without an answer",
            event_pattern={
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {
                    "stateMachineArn": [self.state_machine.attr_arn],
                    "status": ["FAILED", "TIMED_OUT", "ABORTED"],
                },
            },
        )
        left = f"Candidates and suspended scaling that {self.name} left"
        _call_by(self, "Sweep", left, schedule=SWEEP, payload=json.dumps({"Sweep": True}))
        acknowledge(self, ACKNOWLEDGED)

    def grant_trial(self, endpoint: ILlmEndpoint, alarms: Sequence[str] = ()) -> None:
        """Allow trials of an endpoint that something else made: invoking, describing it, and setting its copies.

        Args:
            endpoint: Whose name and component's name are no tokens of another stack.
            alarms: Names of the alarms that stop a load beside its users.
        """
        place, component = StackPlace.of(self), endpoint.inference_component_name
        arn = place.arn("sagemaker", f"endpoint/{arn_name(endpoint.endpoint_name)}")
        self.role.add_to_principal_policy(iam.PolicyStatement(actions=[*INVOKE_ACTIONS, DESCRIBE], resources=[arn]))
        if component is not None:
            copies = ["sagemaker:DescribeInferenceComponent", "sagemaker:UpdateInferenceComponentRuntimeConfig"]
            arn = place.arn("sagemaker", f"inference-component/{arn_name(component)}")
            self.role.add_to_principal_policy(iam.PolicyStatement(actions=[*INVOKE_ACTIONS, *copies], resources=[arn]))
        if alarms:
            arns = [place.arn("cloudwatch", f"alarm:{name}") for name in alarms]
            self.role.add_to_principal_policy(
                iam.PolicyStatement(actions=["cloudwatch:DescribeAlarms"], resources=arns)
            )


def _role(
    scope: TrialService, environment: str, network: ContainerNetwork, logs: LogGroup, *, any_stack: bool
) -> iam.Role:
    stack = Stack.of(scope)
    writing = iam.PolicyStatement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[logs.log_group_arn])
    rights = [
        *statements(
            stack,
            environment,
            scope.results.bucket,
            scope.results.key,
            network,
            state_machine_name=scope.name,
            any_stack=any_stack,
        ),
        *publishing(scope.findings_topic_arn, *scope.further_topic_arns),
        *([_allow(["s3:PutObject"], [scope.records.bucket.arn_for_objects("*")])] if scope.records else []),
    ]
    role = service_role(
        scope,
        "Role",
        description=f"Trials of the endpoints of {environment}",
        assumed_by="lambda.amazonaws.com",
        policies={"Try": iam.PolicyDocument(statements=[writing, *rights])},
    )
    acknowledge_wildcards(role, [resource for each in rights for resource in each.resources], WILDCARDS)
    return role


def _signing_key(scope: TrialService, removal: Literal["destroy", "retain"]) -> kms.Key:
    """Define the key that signs results: the function's role alone may sign with it, whatever other policies allow.

    The CDK's default policy leaves who may use a key to the policies of the account; this one leaves its
    administration and its public half to them. An asymmetric key can't rotate by itself.
    """
    administer = (
        "CancelKeyDeletion", "Describe*", "DisableKey", "EnableKey", "Get*", "List*", "PutKeyPolicy",
        "ScheduleKeyDeletion", "TagResource", "UntagResource", "UpdateKeyDescription",
    )  # fmt: skip
    return kms.Key(
        scope,
        "SigningKey",
        description=f"Signs the results of trials of {scope.environment}",
        key_spec=kms.KeySpec.ECC_NIST_P256,
        key_usage=kms.KeyUsage.SIGN_VERIFY,
        pending_window=Duration.days(30),
        removal_policy=removal_policy(removal),
        policy=iam.PolicyDocument(
            statements=[
                iam.PolicyStatement(
                    principals=[iam.AccountRootPrincipal()],
                    actions=[f"kms:{name}" for name in administer],
                    resources=["*"],
                ),
                iam.PolicyStatement(principals=[scope.role], actions=["kms:Sign"], resources=["*"]),
            ]
        ),
    )


def _function(
    scope: TrialService,
    environment: str,
    network: ContainerNetwork,
    logs: LogGroup,
    *,
    log_days: int | None,
    sockets_per_function: int,
) -> lambda_.CfnFunction:
    stack = Stack.of(scope)
    return service_function(
        scope,
        description=f"Trials of the endpoints of {environment}",
        handler=HANDLER,
        archive=("runtime.zip", runtime_archive()),
        timeout_s=LONGEST_FUNCTION_S,
        memory_mb=ONE_VCPU_MEMORY_MB,
        variables={
            "ENVIRONMENT": environment,
            "RESULTS_BUCKET": scope.results.bucket.bucket_name,
            "SIGNING_KEY": scope.signing_key.key_arn,
            "STATE_MACHINE": f"arn:{stack.partition}:states:{stack.region}:{stack.account}:stateMachine:{scope.name}",
            **({"RECORDS_BUCKET": scope.records.bucket.bucket_name} if scope.records else {}),
            "SOCKETS_PER_FUNCTION": f"{sockets_per_function}",
            **({"FINDINGS_TOPIC": scope.findings_topic_arn} if scope.findings_topic_arn else {}),
            **({} if log_days is None else {"LOG_DAYS": f"{log_days}"}),
        },
        logs=logs,
        network=network,
    )


def _call_by(
    scope: TrialService,
    construct_id: str,
    description: str,
    *,
    event_pattern: Mapping[str, object] | None = None,
    schedule: str | None = None,
    payload: str | None = None,
) -> None:
    """Call the function by a rule of EventBridge: on events, or on a schedule."""
    rule = events.CfnRule(
        scope,
        construct_id,
        description=description,
        event_pattern=event_pattern,
        schedule_expression=schedule,
        targets=[events.CfnRule.TargetProperty(id="Function", arn=scope.function.attr_arn, input=payload)],
    )
    lambda_.CfnPermission(
        scope,
        f"{construct_id}Call",
        action="lambda:InvokeFunction",
        function_name=scope.function.ref,
        principal="events.amazonaws.com",
        source_arn=rule.attr_arn,
    )


def definition(function_arn: str) -> dict[str, object]:
    """Return the state machine in the Amazon States Language.

    A share whose function dies fails alone: the map waits for the others, so that no load goes on when the level is
    loaded again. Whatever else fails leads to `Abandon`, which writes why; when even the answer fails, the execution
    does, and an EventBridge rule calls the function for it.
    """
    states: dict[str, object] = {name: _step(name, function_arn, following) for name, following in _FOLLOWING.items()}
    states["Next"] = {
        "Type": "Choice",
        "Choices": [
            {"Variable": "$.Next", "StringEquals": value, "Next": state}
            for value, state in (
                ("wait", "Wait"),
                ("choose", "Choose"),
                ("load", "Load"),
                ("conclude", "Conclude"),
                ("settle", "Settle"),
                ("pause", "Pause"),
            )
        ],
        "Default": "Answer",
    }
    states["Wait"] = {"Type": "Wait", "SecondsPath": "$.Seconds", "Next": "Begin"}
    states["Pause"] = {"Type": "Wait", "SecondsPath": "$.Seconds", "Next": "Settle"}
    states["Load"] = _load(function_arn)
    return {"StartAt": "Begin", "TimeoutSeconds": LONGEST_WORKFLOW_S, "States": states}


_FOLLOWING: Final = {
    "Begin": "Next",
    "Choose": "Next",
    "Absorb": "Next",
    "Conclude": "Next",
    "Abandon": "Next",
    "Settle": "Next",
    "Answer": None,
}


def _step(name: str, function_arn: str, following: str | None) -> dict[str, object]:
    step: dict[str, object] = {
        "Type": "Task",
        "Resource": function_arn,
        "Parameters": {"Step": name.lower(), "Order.$": "$$.Execution.Input", "Position.$": "$"},
        "Retry": [
            {"ErrorEquals": list(NOT_STARTED), **RETRIES},
            {"ErrorEquals": list(DEAD), "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2},
        ],
    }
    if name not in {"Abandon", "Settle", "Answer"}:
        step["Catch"] = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Abandon"}]
    return {**step, "End": True} if following is None else {**step, "Next": following}


def _load(function_arn: str) -> dict[str, object]:
    """Return the load: every share at once; `Absorb` gets what becomes of each."""
    share = {
        "Type": "Task",
        "Resource": function_arn,
        "Retry": [{"ErrorEquals": list(NOT_STARTED), **SHARE_RETRIES}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Died"}],
        "End": True,
    }
    return {
        "Type": "Map",
        "ItemsPath": "$.Shares",
        "ItemSelector": {"Order.$": "$$.Execution.Input", "Share.$": "$$.Map.Item.Value"},
        "MaxConcurrency": MOST_SHARES,
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "INLINE"},
            "StartAt": "Share",
            "States": {"Share": share, "Died": {"Type": "Pass", "End": True}},
        },
        "ResultPath": "$.Loaded",
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Abandon"}],
        "Next": "Absorb",
    }


def statements(
    stack: Stack,
    environment: str,
    bucket: s3.IBucket,
    key: kms.IKey,
    network: ContainerNetwork,
    *,
    state_machine_name: str,
    any_stack: bool = False,
) -> Iterator[iam.PolicyStatement]:
    """Return every right of the function but that to write its log.

    With `any_stack`, the state of every stack may be read: teams, Service Catalog and SageMaker Projects name theirs.
    """
    yield from _endpoints(stack, environment)
    yield from _candidates(stack, environment)
    yield from _scaling(stack)
    yield from _results(bucket, key)
    yield from _workflow(stack, state_machine_name)
    yield from _stacks_and_events(stack, "" if any_stack else f"seatrial-{environment}-")
    yield from _measurements(stack, environment)
    yield allow_unnamed(BEARER_ACTION)
    yield _allow(
        ["ssm:GetParameter"],
        [stack.format_arn(service="ssm", resource="parameter", resource_name=f"seatrial/{environment}/*")],
    )
    if network.subnet_ids:
        yield from _network(stack, network)


def _stacks_and_events(stack: Stack, named: str) -> Iterator[iam.PolicyStatement]:
    """Allow reading the state of the stacks whose names begin so, and announcing what a trial found."""
    yield _allow(
        ["cloudformation:DescribeStacks"],
        [stack.format_arn(service="cloudformation", resource="stack", resource_name=f"{named}*/*")],
    )
    yield _allow(
        ["events:PutEvents"],
        [stack.format_arn(service="events", resource="event-bus", resource_name="default")],
        {"StringEquals": {"events:source": SOURCE, "events:detail-type": DETAIL_TYPE}},
    )


def _measurements(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow reading scaling, metrics and alarms, and ending the logs of containers."""
    yield allow_unnamed(
        "application-autoscaling:DescribeScalableTargets", "cloudwatch:GetMetricData", "cloudwatch:ListMetrics"
    )
    yield _allow(
        ["cloudwatch:DescribeAlarms"],
        [
            stack.format_arn(
                service="cloudwatch",
                resource="alarm",
                resource_name=f"{alarm_prefix(environment)}*",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
        ],
    )
    yield _allow(
        ["logs:DeleteLogGroup", "logs:PutRetentionPolicy"],
        [
            f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:/aws/sagemaker/{kind}/{environment}-*"
            for kind in ("Endpoints", "InferenceComponents")
        ],
    )


def publishing(topic_arn: str | None, *further: str) -> Iterator[iam.PolicyStatement]:
    """Return the right to publish the findings of scheduled trials; none without a topic.

    The key of the environment's own topic is that of the results, which the function may use anyway.
    """
    if topic_arn is not None:
        yield _allow(["sns:Publish"], [topic_arn, *further])


def _endpoints(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow loading the environment's endpoints, proving what is live there, and setting a component's copies.

    A model's environment may hold the token of a hub, so models are not described: their names prove them. What is
    described is named, without a condition on its tags: what is absent, or was just created, has none, and AWS would
    answer AccessDenied in place of what it is (hashicorp/terraform-provider-aws issues 6055 and 32966).
    """
    ours = {"StringEquals": {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}}
    endpoints, components = (
        stack.format_arn(service="sagemaker", resource=kind, resource_name=f"{environment}-*")
        for kind in ("endpoint", "inference-component")
    )
    loading = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
    yield _allow(["sagemaker:DescribeEndpoint"], [endpoints])
    yield _allow(["sagemaker:DescribeInferenceComponent"], [components])
    yield _allow(loading, [endpoints], ours)
    yield _allow([*loading, "sagemaker:UpdateInferenceComponentRuntimeConfig"], [components], ours)


def _candidates(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow creating candidate components, and deleting what carries the trial service's own tags.

    A creation names the endpoint too; its tags are given with it, which asks for the right to add them. That right
    holds while a component is created alone (`sagemaker:TaggingAction`): with it a live component could be tagged as a
    candidate, and then be deleted.

    A candidate of an older release has the environment's tag alone. It may be deleted by its whole name where it has
    no owner; the function asks CloudFormation first whether a stack has it.
    """
    component = partial(stack.format_arn, service="sagemaker", resource="inference-component")
    candidates = component(resource_name=f"{environment}-*{CANDIDATE}*")
    endpoints = stack.format_arn(service="sagemaker", resource="endpoint", resource_name=f"{environment}-*")
    given = {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment, f"aws:RequestTag/{OWNER_TAG}": TRIAL_SERVICE}
    yield _allow(["sagemaker:CreateInferenceComponent"], [candidates, endpoints], {"StringEquals": given})
    created = {**given, "sagemaker:TaggingAction": "CreateInferenceComponent"}
    yield _allow(["sagemaker:AddTags"], [candidates], {"StringEquals": created})
    yield _allow(["sagemaker:ListTags"], [candidates])
    ours, owner = {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}, f"aws:ResourceTag/{OWNER_TAG}"
    yield _allow(["sagemaker:DeleteInferenceComponent"], [candidates], {"StringEquals": {**ours, owner: TRIAL_SERVICE}})
    yield _allow(
        ["sagemaker:DeleteInferenceComponent"],
        [component(resource_name=f"{environment}-*{CANDIDATE}????????")],
        {"StringEquals": ours, "Null": {owner: "true"}},
    )
    yield allow_unnamed("cloudformation:DescribeStackResources", "sagemaker:ListInferenceComponents")


def _scaling(stack: Stack) -> Iterator[iam.PolicyStatement]:
    """Allow suspending and resuming the scaling of copies.

    A target's ARN ends with an ID that is not known beforehand, so the conditions leave the targets of copies alone.
    Registering a target of SageMaker asks for the right to scale by hand too (Application Auto Scaling user guide,
    identity-based policy examples): `_endpoints` gives it for this environment's components only.
    """
    targets = f"arn:{stack.partition}:application-autoscaling:{stack.region}:{stack.account}:scalable-target/*"
    copies = {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    yield _allow(["application-autoscaling:RegisterScalableTarget"], [targets], {"StringEquals": copies})


def _results(bucket: s3.IBucket, key: kms.IKey) -> Iterator[iam.PolicyStatement]:
    """Allow reading and writing results; listing too, without which a missing one would read as a forbidden one."""
    yield _allow(["s3:GetObject", "s3:PutObject"], [bucket.arn_for_objects(f"{folder}/*") for folder in FOLDERS])
    yield _allow(["s3:DeleteObject"], [bucket.arn_for_objects(f"{folder}/*") for folder in STATE_FOLDERS])
    yield _allow(["s3:ListBucket"], [bucket.bucket_arn])
    yield _allow(["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])


def _workflow(stack: Stack, name: str) -> Iterator[iam.PolicyStatement]:
    """Allow starting, stopping and finding executions of the environment's own workflow."""
    machine, executions = (
        f"arn:{stack.partition}:states:{stack.region}:{stack.account}:{what}"
        for what in (f"stateMachine:{name}", f"execution:{name}:*")
    )
    yield _allow(["states:ListExecutions", "states:StartExecution"], [machine])
    yield _allow(["states:DescribeExecution", "states:StopExecution"], [executions])


def _network(stack: Stack, network: ContainerNetwork) -> Iterator[iam.PolicyStatement]:
    """Allow Lambda what it does with the function's role to join a network; the function's own code may do none of it.

    Lambda checks the role when the function is created, before there is an interface: a statement on
    `network-interface/*` does not match then, and the stack fails (hashicorp/terraform-provider-aws issue 20698).
    `*/*` and the denial are those of the Lambda developer guide, "Giving Lambda functions access to resources in an
    Amazon VPC".
    """
    prefix = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}"
    joined = [
        *(f"{prefix}:subnet/{subnet}" for subnet in network.subnet_ids),
        *(f"{prefix}:security-group/{group}" for group in network.security_group_ids),
    ]
    interfaces = ("ec2:AssignPrivateIpAddresses", "ec2:DeleteNetworkInterface", "ec2:UnassignPrivateIpAddresses")
    described = (
        "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"
    )  # fmt: skip
    yield _allow(["ec2:CreateNetworkInterface"], [*joined, f"{prefix}:network-interface/*"])
    yield _allow([*interfaces], [f"{prefix}:*/*"])
    yield allow_unnamed(*described)
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["ec2:CreateNetworkInterface", *interfaces, *described],
        resources=["*"],
        conditions={"ArnLike": {"lambda:SourceFunctionArn": f"arn:{stack.partition}:lambda:*:{stack.account}:*"}},
    )


def _allow(
    actions: list[str], resources: list[str], conditions: dict[str, dict[str, str]] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
