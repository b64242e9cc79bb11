"""Arguments that SageMaker refuses, or that would change a job's digest by themselves: SEA439, all at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from aws_cdk import Token

from seatrial.deployment.optimization_job import OptimizationJobRequest, instance_types
from seatrial.specs.environment import reserved_prefix
from seatrial.specs.optimization import LONGEST_JOB_HOURS
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.place import TOKEN_MARKER
from seatrial_cdk.value_checks import RULE, names_bucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constructs import Construct

    FieldProblems = Iterator[tuple[str, str]]

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
        message = "has tokens, and the job's name has a digest of it: a token is numbered anew by each synthesis"
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
