from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

from seatrial_base.errors import BenchError
from seatrial_load.aws.deployment_check import prove_live, prove_still_live
from seatrial_load.documents.request import Expected, TrialTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_load.documents.result import LiveProof

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TARGET = TrialTarget(endpoint_name="chat", inference_component="chat-copy", region="eu-west-1")
EXPECTED = Expected(endpoint_config_name="config-2", model_name="model-2")
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/chat"
ENDPOINT: dict[str, object] = {
    "EndpointName": "chat", "EndpointArn": ARN, "EndpointConfigName": "config-2", "EndpointStatus": "InService",
    "CreationTime": NOW, "LastModifiedTime": NOW,
}  # fmt: skip
COMPONENT: dict[str, object] = {
    "InferenceComponentName": "chat-copy", "InferenceComponentArn": ARN, "EndpointName": "chat", "EndpointArn": ARN,
    "InferenceComponentStatus": "InService", "CreationTime": NOW, "LastModifiedTime": NOW,
    "Specification": {"ModelName": "model-2"}, "RuntimeConfig": {"DesiredCopyCount": 2, "CurrentCopyCount": 2},
}  # fmt: skip


@pytest.fixture(scope="module")
def sagemaker() -> SageMakerClient:
    return boto3.client("sagemaker", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")


IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"
PINNED = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference@sha256:1f"
MODEL: dict[str, object] = {"ModelName": "model-2", "ModelArn": ARN, "CreationTime": NOW}


@contextmanager
def answering(
    client: SageMakerClient,
    endpoint: dict[str, object],
    component: dict[str, object] | None,
    model: dict[str, object] | None = None,
) -> Iterator[None]:
    with Stubber(client) as stub:
        stub.add_response("describe_endpoint", endpoint, {"EndpointName": "chat"})
        if component is not None:
            stub.add_response("describe_inference_component", component, {"InferenceComponentName": "chat-copy"})
        if model is not None:
            stub.add_response("describe_model", model, {"ModelName": "model-2"})
        yield
        stub.assert_no_pending_responses()


def differences(client: SageMakerClient, endpoint: dict[str, object], component: dict[str, object]) -> list[str]:
    with (
        answering(client, {**ENDPOINT, **endpoint}, {**COMPONENT, **component}),
        pytest.raises(BenchError) as caught,
    ):
        prove_live(TARGET, EXPECTED, sagemaker=client)
    assert {problem.rule for problem in caught.value.problems} == {"SEA502"}
    return [f"{problem.field}: {problem.message}" for problem in caught.value.problems]


def test_this_deployment_is_live(sagemaker: SageMakerClient) -> None:
    with answering(sagemaker, ENDPOINT, COMPONENT):
        proof = prove_live(TARGET, EXPECTED, sagemaker=sagemaker)
    assert (proof.proven, proof.endpoint_config_name, proof.model_name, proof.copy_count) == (
        True,
        "config-2",
        "model-2",
        2,
    )
    assert proof.because == (
        "the endpoint is InService with config config-2, its component is InService and runs model model-2 in 2 copies"
    )


def test_an_endpoint_without_components_is_proven_by_its_config_alone(sagemaker: SageMakerClient) -> None:
    target = TrialTarget(endpoint_name="chat", inference_component=None, region="eu-west-1")
    with answering(sagemaker, ENDPOINT, None):
        proof = prove_live(target, EXPECTED, sagemaker=sagemaker)
    assert (proof.model_name, proof.copy_count) == (None, None)
    assert proof.because == "the endpoint is InService with config config-2"


@pytest.mark.parametrize(
    ("endpoint", "component", "difference"),
    [
        (
            {"EndpointConfigName": "config-1"},
            {},
            "EndpointConfigName: the live endpoint config is config-1, not config-2 of this deployment",
        ),
        ({"FailureReason": "no capacity"}, {}, "FailureReason: the endpoint's last update failed: no capacity"),
        (
            {},
            {"InferenceComponentStatus": "Failed"},
            "InferenceComponentStatus: component chat-copy is Failed, not InService or Updating",
        ),
        ({}, {"FailureReason": "health check"}, "FailureReason: component chat-copy: health check"),
        ({}, {"EndpointName": "other"}, "EndpointName: component chat-copy is on endpoint other"),
        (
            {},
            {"Specification": {"ModelName": "model-1"}},
            "Specification.ModelName: the live model of component chat-copy is model-1, not model-2 of this deployment",
        ),
        (
            {},
            {"Specification": {}},
            "Specification.ModelName: the live model of component chat-copy is none, not model-2 of this deployment",
        ),
        (
            {},
            {"RuntimeConfig": {"DesiredCopyCount": 1, "CurrentCopyCount": 0}},
            "RuntimeConfig.CurrentCopyCount: component chat-copy runs 0 copies; at least 1 is needed",
        ),
    ],
)
def test_each_difference(
    sagemaker: SageMakerClient, endpoint: dict[str, object], component: dict[str, object], difference: str
) -> None:
    assert differences(sagemaker, endpoint, component) == [difference]


def test_a_healthy_endpoint_may_be_updating_while_its_instances_and_copies_scale(sagemaker: SageMakerClient) -> None:
    with answering(
        sagemaker,
        {**ENDPOINT, "EndpointStatus": "Updating"},
        {**COMPONENT, "InferenceComponentStatus": "Updating"},
    ):
        proof = prove_live(TARGET, EXPECTED, sagemaker=sagemaker)
    assert proof.because == (
        "the endpoint is Updating with config config-2, its component is Updating and runs model model-2 in 2 copies"
    )


@pytest.mark.parametrize(
    "status",
    ["OutOfService", "Creating", "SystemUpdating", "RollingBack", "Deleting", "Failed", "UpdateRollbackFailed"],
)
def test_every_other_status_of_the_endpoint_is_refused(sagemaker: SageMakerClient, status: str) -> None:
    assert differences(sagemaker, {"EndpointStatus": status}, {}) == [
        f"EndpointStatus: the endpoint is {status}, not InService or Updating"
    ]


@pytest.mark.parametrize("status", ["Creating", "Deleting", "Failed"])
def test_every_other_status_of_the_component_is_refused(sagemaker: SageMakerClient, status: str) -> None:
    assert differences(sagemaker, {}, {"InferenceComponentStatus": status}) == [
        f"InferenceComponentStatus: component chat-copy is {status}, not InService or Updating"
    ]


class Failing:
    """A control plane that can't be asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def describe_endpoint(self, **_: str) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            NoCredentialsError(),
            "endpoint chat: SEA503: there are no AWS credentials: Unable to locate credentials\n"
            "  hint: log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        (
            EndpointConnectionError(endpoint_url="https://api.example"),
            "endpoint chat: SEA504: AWS can't be reached: Could not connect to the endpoint URL: "
            '"https://api.example"\n  hint: check the connection, the region and AWS_ENDPOINT_URL',
        ),
    ],
)
def test_a_control_plane_that_cannot_be_asked_is_told_without_a_traceback(error: Exception, message: str) -> None:
    with pytest.raises(BenchError) as caught:
        prove_live(TARGET, EXPECTED, sagemaker=cast("SageMakerClient", Failing(error)))
    assert str(caught.value) == message


def test_a_rolled_back_update_is_told_in_full(sagemaker: SageMakerClient) -> None:
    with (
        answering(
            sagemaker,
            {**ENDPOINT, "EndpointConfigName": "config-1", "FailureReason": "alarm"},
            {**COMPONENT, "Specification": {"ModelName": "model-1"}},
        ),
        pytest.raises(BenchError) as caught,
    ):
        prove_live(TARGET, EXPECTED, sagemaker=sagemaker)
    hint = "\n  hint: the update was rolled back or another deployment replaced it: check the endpoint's events"
    assert str(caught.value) == "\n".join(
        f"endpoint chat: {line}{hint}"
        for line in (
            "EndpointConfigName: SEA502: the live endpoint config is config-1, not config-2 of this deployment",
            "FailureReason: SEA502: the endpoint's last update failed: alarm",
            "Specification.ModelName: SEA502: the live model of component chat-copy is model-1, not model-2 of this "
            "deployment",
        )
    )


def test_an_endpoint_that_does_not_exist(sagemaker: SageMakerClient) -> None:
    with Stubber(sagemaker) as stub:
        stub.add_client_error("describe_endpoint", "ValidationException", "Could not find endpoint")
        with pytest.raises(BenchError) as caught:
            prove_live(TARGET, EXPECTED, sagemaker=sagemaker)
    assert str(caught.value) == (
        "endpoint chat: SEA502: it can't be described: An error occurred (ValidationException) "
        "when calling the DescribeEndpoint operation: Could not find endpoint"
    )


def imaged(wanted: str) -> Expected:
    return replace(EXPECTED, image=wanted)


@pytest.mark.parametrize(
    ("wanted", "live"), [(IMAGE, IMAGE), (PINNED, PINNED), (PINNED, "mirror.example/djl-inference@sha256:1f")]
)
def test_the_image_of_the_model_is_proven_by_its_name_or_by_its_digest(
    sagemaker: SageMakerClient, wanted: str, live: str
) -> None:
    with answering(sagemaker, ENDPOINT, COMPONENT, {**MODEL, "PrimaryContainer": {"Image": live}}):
        proof = prove_live(TARGET, imaged(wanted), sagemaker=sagemaker)
    assert proof.because == (
        "the endpoint is InService with config config-2, its component is InService and runs model model-2 in 2 "
        "copies, "
        f"from image {live}"
    )


@pytest.mark.parametrize("wanted", [PINNED, IMAGE.replace("27.0.0", "28.0.0")])
def test_another_image_under_the_same_names_is_a_difference(sagemaker: SageMakerClient, wanted: str) -> None:
    with (
        answering(sagemaker, ENDPOINT, COMPONENT, {**MODEL, "PrimaryContainer": {"Image": IMAGE}}),
        pytest.raises(BenchError) as caught,
    ):
        prove_live(TARGET, imaged(wanted), sagemaker=sagemaker)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field) == ("SEA502", "Image")
    assert problem.message == f"the live image is {IMAGE}, not {wanted} of this deployment"


def test_the_digest_that_was_pulled_for_a_component_proves_a_pinned_image(sagemaker: SageMakerClient) -> None:
    deployed = {"SpecifiedImage": IMAGE, "ResolvedImage": PINNED, "ResolutionTime": NOW}
    component = {**COMPONENT, "Specification": {"ModelName": "model-2", "Container": {"DeployedImage": deployed}}}
    with answering(sagemaker, ENDPOINT, component, {**MODEL, "PrimaryContainer": {"Image": IMAGE}}):
        assert prove_live(TARGET, imaged(PINNED), sagemaker=sagemaker).proven


def test_the_image_of_another_model_is_not_asked_for(sagemaker: SageMakerClient) -> None:
    """The right to describe a model is that of this deployment's alone."""
    with (
        answering(sagemaker, ENDPOINT, {**COMPONENT, "Specification": {"ModelName": "model-1"}}),
        pytest.raises(BenchError) as caught,
    ):
        prove_live(TARGET, imaged(IMAGE), sagemaker=sagemaker)
    assert [problem.field for problem in caught.value.problems] == ["Specification.ModelName"]


def test_a_model_without_a_named_image_leaves_the_image_unproven(sagemaker: SageMakerClient) -> None:
    with answering(sagemaker, ENDPOINT, COMPONENT, MODEL):
        proof = prove_live(TARGET, imaged(IMAGE), sagemaker=sagemaker)
    assert proof.because == (
        "the endpoint is InService with config config-2, its component is InService and runs model model-2 in 2 copies"
    )


def test_a_model_whose_image_is_not_to_be_proven_is_never_described(sagemaker: SageMakerClient) -> None:
    """The environment of a model holds the hub's token: who proves no image may not read it."""
    with answering(sagemaker, ENDPOINT, COMPONENT):
        assert prove_live(TARGET, EXPECTED, sagemaker=sagemaker).proven
        assert EXPECTED.image is None


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException"])
@pytest.mark.parametrize("prove", [prove_live, prove_still_live])
def test_a_permission_that_was_just_granted_is_waited_for(
    sagemaker: SageMakerClient, prove: Callable[..., LiveProof], code: str
) -> None:
    slept: list[float] = []
    with Stubber(sagemaker) as stub:
        stub.add_client_error("describe_endpoint", code, "not authorized")
        stub.add_response("describe_endpoint", ENDPOINT)
        stub.add_client_error("describe_inference_component", code, "not authorized")
        stub.add_response("describe_endpoint", ENDPOINT)
        stub.add_response("describe_inference_component", COMPONENT)
        proof = prove(TARGET, EXPECTED, sagemaker=sagemaker, sleep=slept.append)
        stub.assert_no_pending_responses()
    assert (proof.proven, slept) == (True, [5.0, 5.0])


@pytest.mark.parametrize(("patience_s", "asked"), [(60.0, 13), (12.0, 3), (4.9, 1), (0.0, 1)])
def test_a_permission_that_stays_missing_is_told(sagemaker: SageMakerClient, patience_s: float, asked: int) -> None:
    slept: list[float] = []
    with Stubber(sagemaker) as stub:
        for _ in range(asked):
            stub.add_client_error("describe_endpoint", "AccessDeniedException", "in its words")
        with pytest.raises(BenchError) as caught:
            prove_live(TARGET, EXPECTED, sagemaker=sagemaker, sleep=slept.append, patience_s=patience_s)
    assert [problem.rule for problem in caught.value.problems] == ["SEA511"]
    assert slept == [5.0] * (asked - 1)
