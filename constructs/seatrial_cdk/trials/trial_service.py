"""The service that puts an environment's endpoints through their sea trials: one function, one workflow, one bucket."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aws_cdk import Duration, Stack
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
from seatrial.specs.environment import Retention
from seatrial_base.bounds import LONGEST_FUNCTION_S, SWEEP_S
from seatrial_cdk.acknowledgements import acknowledge, acknowledge_wildcards
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.endpoint_interface import INVOKE_ACTIONS, arn_name
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS
from seatrial_cdk.place import StackPlace
from seatrial_cdk.private_bucket import private_bucket, removal_policy
from seatrial_cdk.service_function import (
    handler_module,
    log_group_of,
    packed_modules,
    service_function,
    service_role,
    service_workflow,
)
from seatrial_cdk.trials.permissions import publishing, statements
from seatrial_cdk.trials.runtime.store import EXPIRING
from seatrial_cdk.trials.trial_workflow import definition
from seatrial_load.measure.functions import SOCKETS_PER_FUNCTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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


class TrialResults(Construct):
    """An encrypted, private bucket of trial results; its layout is in `runtime.store`.

    Only the history of trials and of their runs expires. What later deployments are answered from (the latest and the
    passing result of each plan, the copies that CloudFormation was told) or compared with (what is released) stays.

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


class TrialService(Construct):
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
        sockets_per_function: Requests that one function keeps in flight; fewer make more functions.
        findings_topic: Topic that is told of what scheduled trials found; default: no endpoint may have a schedule.
        findings_topic_arn: The topic by its ARN, in place of `findings_topic`.
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
        sockets_per_function: int = SOCKETS_PER_FUNCTION,
        any_stack: bool = False,
        findings_topic: sns.ITopic | None = None,
        findings_topic_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.environment = environment
        self.name = service_name(environment)
        self.findings_topic_arn = findings_topic_arn if findings_topic is None else findings_topic.topic_arn
        self.role_options = role_options
        network = network or ContainerNetwork()
        kept = retention or Retention()
        expiry = None if kept.results_days is None else Duration.days(kept.results_days)
        self.results = TrialResults(self, "Results", key=key, removal=removal, expiry=expiry)
        logs = log_group_of(self, keep=removal == "retain", days=kept.log_days)
        self.role = _role(self, environment, network, logs, any_stack=any_stack)
        self.function = _function(
            self, environment, network, logs, log_days=kept.log_days, sockets_per_function=sockets_per_function
        )
        self.state_machine = service_workflow(
            self,
            name=self.name,
            description=f"Workflow of {self.name}",
            definition=definition("${Function}"),
            function=self.function,
            options=role_options,
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
        *publishing(scope.findings_topic_arn),
    ]
    role = service_role(
        scope,
        "Role",
        description=f"Trials of the endpoints of {environment}",
        assumed_by="lambda.amazonaws.com",
        policies={"Try": iam.PolicyDocument(statements=[writing, *rights])},
        options=scope.role_options,
    )
    acknowledge_wildcards(role, [resource for each in rights for resource in each.resources], WILDCARDS)
    return role


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
        name=scope.name,
        description=f"Trials of the endpoints of {environment}",
        handler=HANDLER,
        archive=("runtime.zip", runtime_archive()),
        role=scope.role,
        timeout_s=LONGEST_FUNCTION_S,
        memory_mb=ONE_VCPU_MEMORY_MB,
        variables={
            "ENVIRONMENT": environment,
            "RESULTS_BUCKET": scope.results.bucket.bucket_name,
            "STATE_MACHINE": f"arn:{stack.partition}:states:{stack.region}:{stack.account}:stateMachine:{scope.name}",
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
