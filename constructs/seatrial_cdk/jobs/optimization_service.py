"""The service of an environment's optimization jobs: a bucket, a function, a workflow, and checks of their requests.

Arguments that SageMaker refuses, or that would change a job's digest by themselves, are SEA439, all at once.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from aws_cdk import Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

import seatrial_cdk
from seatrial.deployment.optimization_job import OptimizationJobRequest, instance_types, jobs_name, jobs_parameter_path
from seatrial.packaging import zip_bytes
from seatrial.specs.environment import Retention, reserved_prefix
from seatrial.specs.optimization import LONGEST_JOB_HOURS
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS
from seatrial_cdk.jobs.runtime.jobs import FOLDER
from seatrial_cdk.place import TOKEN_MARKER, StackPlace
from seatrial_cdk.policy import acknowledge, acknowledge_wildcards, allow, policy_document, resources_of
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
from seatrial_cdk.value_checks import RULE, names_bucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_cdk import aws_lambda as lambda_
    from aws_cdk.aws_logs import LogGroup

    from seatrial_cdk.endpoint.execution_role import RoleOptions
    from seatrial_cdk.policy import Statement

    FieldProblems = Iterator[tuple[str, str]]


LONGEST_WORKFLOW_S: Final = 7 * 86_400
"""Five days of the longest job, and two in which it may wait for an instance."""
HANDLER = "seatrial_cdk.optimization_job.runtime.handler.handler"
MEMORY_MB = 256
LONGEST_CALL_S = 120
ACKNOWLEDGED = {
    "L1": "The function runs on the Python version that its code is tested with.",
    "S1": "The jobs' roles and the models' roles alone use the bucket; CloudTrail data events log who reads it.",
    "SF1": "Step Functions keeps the history of an execution for 90 days, and each step writes to the function's log.",
    "SF2": "Each step writes to the function's log; tracing would need rights on every X-Ray resource.",
}
WILDCARDS = (
    "The wildcards end the names of jobs, executions, parameters and objects of this environment, whose ends are "
    "digests that are not known beforehand."
)

ENVIRONMENT: Final = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,31}")
"""The name of a job has 63 characters at most, with the digest and the number of the attempt."""
KINDS: Final = frozenset(
    {
        "ModelCompilationConfig",
        "ModelQuantizationConfig",
        "ModelShardingConfig",
        "ModelSpeculativeDecodingConfig",
    }
)
MOST_CONFIGS: Final = 10
MOST_TAGS: Final = 50
MOST_CHARACTERS: Final = 6_000
"""Of a request with its tags: an advanced parameter has 8 KB, and JSON in JSON has more characters."""


def definition(function_arn: str) -> dict[str, object]:
    """Return the state machine in the Amazon States Language.

    A creation that is refused is tried again for some minutes: a new role is not known everywhere at once. A look that
    fails is made again an hour long: the job goes on meanwhile.
    """
    refused = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Refused"}]
    choices = [{"Variable": "$.Next", "StringEquals": "wait", "Next": "Wait"}]
    states: dict[str, object] = {
        "Create": {**_step("create", function_arn, attempts=5), "Catch": refused, "Next": "Wait"},
        "Wait": {"Type": "Wait", "SecondsPath": "$.Seconds", "Next": "Poll"},
        "Poll": {**_step("poll", function_arn, attempts=8), "Next": "HasEnded"},
        "HasEnded": {"Type": "Choice", "Choices": choices, "Default": "Ended"},
        "Refused": {**_step("refused", function_arn, attempts=3, failure=True), "Next": "Ended"},
        "Ended": {"Type": "Succeed"},
    }
    return {"StartAt": "Create", "TimeoutSeconds": LONGEST_WORKFLOW_S, "States": states}


def _step(name: str, function_arn: str, *, attempts: int, failure: bool = False) -> dict[str, object]:
    failure_input = {"Failure.$": "$.Failure"} if failure else {}
    return {
        "Type": "Task",
        "Resource": function_arn,
        "Parameters": {"Step": name, "Order.$": "$.Order", **failure_input},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 10, "MaxAttempts": attempts, "BackoffRate": 2}],
    }


def jobs_archive() -> bytes:
    """Return the zip archive of the function; equal sources give equal bytes."""
    library = Path(seatrial_cdk.__path__[0])
    own = [library / "__init__.py", library / "jobs" / "__init__.py", *(library / "jobs" / "runtime").glob("*.py")]
    entry = handler_module(HANDLER, "seatrial_cdk.jobs.runtime.job_handler")
    return zip_bytes({**packed_modules(library, own), **entry})


class OptimizationService(EnvironmentService):
    """The optimization jobs of an environment; there is one in an account and region for each environment.

    Its function answers CloudFormation at once; the workflow creates a job and follows it, for days if need be. What
    is known of a job is in an SSM parameter. Roles of models read the artifacts by their policies; the bucket's own key
    lets every role of the account that may read an object decrypt it, through S3 only.

    Args:
        environment: The environment's name, at the beginning of the names of jobs.
        removal: `destroy` empties and deletes the bucket with the stack; `retain` keeps artifacts and key.
        key: Key of the artifacts; default: a key of its own.
        role_options: Path and permissions boundary of its roles.
        retention: How long logs are kept; default: a month. Artifacts don't expire.

    Raises:
        SpecError: SEA439 when names of functions and jobs can't begin with the environment's.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        removal: Literal["destroy", "retain"] = "retain",
        key: kms.IKey | None = None,
        role_options: RoleOptions = NO_OPTIONS,
        retention: Retention | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        check_environment(self, environment)
        self.environment, self.name, self.role_options = environment, jobs_name(environment), role_options
        self.key: kms.IKey = key if key is not None else _own_key(self, removal)
        artifacts = Construct(self, "Artifacts")
        self.bucket = private_bucket(artifacts, key=self.key, removal=removal, lifecycle_rules=[])
        bound_emptying_role(self, role_options)
        days = (retention or Retention()).log_days
        logs = log_group_of(self, keep=removal == "retain", days=days)
        self.role = _role(self, logs)
        self.function = _function(self, logs)
        self.state_machine = service_workflow(
            self,
            description=f"Optimization workflow of {environment}",
            definition=definition("${Function}"),
        )
        acknowledge(self, ACKNOWLEDGED)


def _own_key(scope: Construct, removal: Literal["destroy", "retain"]) -> kms.Key:
    """Define a key that each role of the account may use through S3, where its own policy lets it read the object."""
    place = StackPlace.of(scope)
    key = kms.Key(
        scope,
        "Key",
        description="Artifacts of optimization jobs",
        enable_key_rotation=True,
        removal_policy=removal_policy(removal),
    )
    key.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=["*"],  # of a key's policy: the key
            principals=[iam.AnyPrincipal()],
            conditions={
                "StringEquals": {
                    "kms:CallerAccount": place.account,
                    "kms:ViaService": f"s3.{place.region}.amazonaws.com",
                }
            },
        )
    )
    return key


def _role(scope: OptimizationService, logs: LogGroup) -> iam.Role:
    statements = [*_statements(scope)]
    writing = allow(["logs:CreateLogStream", "logs:PutLogEvents"], [logs.log_group_arn])
    role = service_role(
        scope,
        "Role",
        description=f"Optimization jobs of {scope.environment}",
        assumed_by="lambda.amazonaws.com",
        policies={"Optimize": policy_document([writing, *statements])},
    )
    acknowledge_wildcards(role, resources_of(statements), WILDCARDS)
    return role


def _statements(scope: OptimizationService) -> list[Statement]:
    """Return the rights of the function; the roles of jobs are passed by a policy beside each job."""
    place, environment = StackPlace.of(scope), scope.environment
    machine, executions = (
        place.arn("states", f"{kind}:{scope.name}{end}") for kind, end in (("stateMachine", ""), ("execution", ":*"))
    )
    jobs = [place.arn("sagemaker", f"optimization-job/{environment}-*")]
    given = {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment}
    created = {**given, "sagemaker:TaggingAction": "CreateOptimizationJob"}
    tagged = {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}
    return [
        allow(["sagemaker:DescribeOptimizationJob"], jobs),
        allow(["sagemaker:CreateOptimizationJob"], jobs, {"StringEquals": given}),
        allow(["sagemaker:AddTags"], jobs, {"StringEquals": created}),
        allow(["sagemaker:StopOptimizationJob"], jobs, {"StringEquals": tagged}),
        allow(
            ["ssm:GetParameter", "ssm:PutParameter"],
            [place.arn("ssm", f"parameter{jobs_parameter_path(environment)}/*")],
        ),
        allow(["s3:ListBucket"], [scope.bucket.bucket_arn], {"StringLike": {"s3:prefix": [f"{FOLDER}/*"]}}),
        allow(["states:ListExecutions", "states:StartExecution"], [machine]),
        allow(["states:StopExecution"], [executions]),
    ]


def _function(scope: OptimizationService, logs: LogGroup) -> lambda_.CfnFunction:
    return service_function(
        scope,
        description=f"Optimization jobs of {scope.environment}",
        handler=HANDLER,
        archive=("jobs.zip", jobs_archive()),
        timeout_s=LONGEST_CALL_S,
        memory_mb=MEMORY_MB,
        variables={
            "BUCKET": scope.bucket.bucket_name,
            "KEY_ARN": scope.key.key_arn,
            "PARAMETERS": jobs_parameter_path(scope.environment),
            "STATE_MACHINE": StackPlace.of(scope).arn("states", f"stateMachine:{scope.name}"),
        },
        logs=logs,
    )


def check_environment(scope: Construct, environment: str) -> None:
    """Refuse the name of an environment that the names of its function and jobs can't begin with; a token is taken.

    Raises:
        SpecError: SEA439.
    """
    if not isinstance(environment, str):
        _refuse(scope, iter([("environment", f"is {environment!r}; it is text")]))
    elif not Token.is_unresolved(environment) and ENVIRONMENT.fullmatch(environment) is None:
        text = "it is 32 letters, digits and inner hyphens at most"
        _refuse(scope, iter([("environment", f"is {environment!r}; {text}")]))


def check_request(scope: Construct, request: OptimizationJobRequest) -> None:
    """Refuse a request that SageMaker would refuse, or whose digest is not that of its content.

    Raises:
        SpecError: SEA439 with all that is wrong.
    """
    _refuse(scope, _wrong_request(request))


def check_place(scope: Construct, environment: str, request: OptimizationJobRequest, network: ContainerNetwork) -> None:
    """Refuse a job of another environment than the service's, and half a network.

    Raises:
        SpecError: SEA439 with all that is wrong.
    """

    def field_problems() -> FieldProblems:
        if request.environment != environment:
            yield "request.environment", f"is {request.environment}; the service is that of {environment}"
        if not isinstance(network, ContainerNetwork):
            yield "network", f"is a {type(network).__name__}; it is a ContainerNetwork"
        elif bool(network.subnet_ids) != bool(network.security_group_ids):
            yield "network", "has subnets or security groups alone; a job needs both"

    _refuse(scope, field_problems())


def check_tags(scope: Construct, request: str, tags: Mapping[str, str]) -> None:
    """Refuse tags that SageMaker refuses, or that leave no room in the parameter that keeps the request.

    Args:
        tags: Its tags, without `seatrial:environment`.

    Raises:
        SpecError: SEA439 with all that is wrong.
    """

    def field_problems() -> FieldProblems:
        for key, value in tags.items():
            if not isinstance(value, str):
                yield f"tags.{key}", f"is {value!r}; it is text"
            if (prefix := reserved_prefix(str(key))) is not None:
                yield f"tags.{key}", f"begins with {prefix}, which is for {'AWS' if prefix == 'aws:' else 'Seatrial'}"
        if len(tags) + 1 > MOST_TAGS:
            yield "tags", f"are {len(tags) + 1} with that of the environment; at most {MOST_TAGS}"
        if len(request) + sum(len(f"{key}{value}") for key, value in tags.items()) > MOST_CHARACTERS:
            yield "tags", f"and request have more than {MOST_CHARACTERS:,} characters"

    _refuse(scope, field_problems())


def _refuse(scope: Construct, field_problems: FieldProblems) -> None:
    problems = [Finding(RULE, Place.at(scope.node.path, field), message) for field, message in field_problems]
    if problems:
        raise SpecError(problems)


def _wrong_request(request: OptimizationJobRequest) -> FieldProblems:
    if not isinstance(request, OptimizationJobRequest):
        yield "request", f"is a {type(request).__name__}; it is an OptimizationJobRequest"
        return
    content = (request.source_s3_uri, request.source_model_name, request.instance_type, *request.configs)
    if TOKEN_MARKER in f"{content}":
        message = "has tokens, and the job's name has a digest of it: a token is numbered again by each synthesis"
        yield "request", f"{message}; write the values"
        return
    uri = request.source_s3_uri
    if (uri is None) == (request.source_model_name is None):
        yield "request.source_s3_uri", "and source_model_name: give one of them"
    if uri is not None and not names_bucket(uri):
        yield "request.source_s3_uri", f"is {uri!r}; write it as s3://BUCKET/PREFIX/"
    if not 1 <= len(request.configs) <= MOST_CONFIGS:
        yield "request.configs", f"are {len(request.configs)}; 1 to {MOST_CONFIGS}"
    for index, config in enumerate(request.configs):
        if not isinstance(config, dict) or len(config) != 1 or not KINDS.issuperset(config):
            yield f"request.configs[{index}]", f"is none of {', '.join(sorted(KINDS))}"
    if request.instance_type not in instance_types():
        yield "request.instance_type", f"is {request.instance_type!r}; see DeploymentInstanceType of the API"
    hours: object = request.max_hours
    if not isinstance(hours, (int, float)) or not 0 < hours <= LONGEST_JOB_HOURS:
        yield "request.max_hours", f"is {hours!r}; it is above 0, {LONGEST_JOB_HOURS:g} at most"
