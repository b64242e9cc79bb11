"""How components are read where AWS answers with AccessDenied: of what is absent, and of a right that is young."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trials.runtime.components import AwsComponents, remove_candidate
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.conftest import component

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sagemaker import SageMakerClient

NAME = "dev-chat-candidate-00000000"
DENIED = "not authorized to perform: sagemaker:DescribeInferenceComponent"
ARN = "arn:aws:sagemaker:us-east-1:123456789012:"


@pytest.fixture
def client() -> SageMakerClient:
    return boto3.client("sagemaker", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def stacks() -> CloudFormationClient:
    return boto3.client("cloudformation", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def service(client: SageMakerClient) -> Iterator[Stubber]:
    """Answer the client's calls: botocore checks requests and answers against the service's own model."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def components(client: SageMakerClient, stacks: CloudFormationClient, pauses: list[float]) -> AwsComponents:
    return AwsComponents(client, stacks, pauses.append)


def deny(service: Stubber) -> None:
    service.add_client_error("describe_inference_component", "AccessDeniedException", DENIED)


def list_names(service: Stubber, *names: str, contains: str = NAME) -> None:
    listed = [
        {
            "InferenceComponentName": name,
            "InferenceComponentArn": f"{ARN}inference-component/{name}",
            "EndpointName": "dev-chat",
            "EndpointArn": f"{ARN}endpoint/dev-chat",
            "VariantName": "AllTraffic",
            "CreationTime": 0,
            "LastModifiedTime": 0,
        }
        for name in names
    ]
    service.add_response("list_inference_components", {"InferenceComponents": listed}, {"NameContains": contains})


def describe(service: Stubber, status: str = "InService") -> None:
    answer = {
        "InferenceComponentName": NAME,
        "InferenceComponentArn": f"{ARN}inference-component/{NAME}",
        "EndpointName": "dev-chat",
        "EndpointArn": f"{ARN}endpoint/dev-chat",
        "InferenceComponentStatus": status,
        "CreationTime": 0,
        "LastModifiedTime": 0,
    }
    service.add_response("describe_inference_component", answer)


def test_the_copies_that_serve_are_not_those_that_are_wanted(components: AwsComponents, service: Stubber) -> None:
    answer = {
        "InferenceComponentName": NAME,
        "InferenceComponentArn": f"{ARN}inference-component/{NAME}",
        "EndpointName": "dev-chat",
        "EndpointArn": f"{ARN}endpoint/dev-chat",
        "RuntimeConfig": {"CurrentCopyCount": 2, "DesiredCopyCount": 3},
        "CreationTime": 0,
        "LastModifiedTime": 0,
    }
    service.add_response("describe_inference_component", answer)
    state = components.describe(NAME)
    assert state is not None
    assert (state.current_copies, state.desired_copies) == (2, 3)


class TestDenied:
    def test_what_the_list_does_not_name_is_absent(
        self, components: AwsComponents, service: Stubber, pauses: list[float]
    ) -> None:
        deny(service)
        list_names(service, f"{NAME}-other")
        assert components.describe(NAME) is None
        assert pauses == []

    def test_a_candidate_that_was_deleted_is_gone(self, components: AwsComponents, service: Stubber) -> None:
        deny(service)
        list_names(service)
        assert remove_candidate(components, NAME, "dev")

    def test_what_the_list_names_is_asked_for_again_until_the_right_is_known(
        self, components: AwsComponents, service: Stubber, pauses: list[float]
    ) -> None:
        for _ in range(2):
            deny(service)
            list_names(service, NAME)
        describe(service)
        found = components.describe(NAME)
        assert found is not None
        assert (found.status, pauses) == ("InService", [5.0, 5.0])

    def test_a_right_that_is_missing_for_a_minute_is_told(
        self, components: AwsComponents, service: Stubber, pauses: list[float]
    ) -> None:
        for _ in range(13):
            deny(service)
            list_names(service, NAME)
        with pytest.raises(UnavailableError, match="AccessDeniedException"):
            components.describe(NAME)
        assert sum(pauses) == 60.0

    def test_an_endpoint_is_asked_for_again_too(
        self, components: AwsComponents, service: Stubber, pauses: list[float]
    ) -> None:
        service.add_client_error("describe_endpoint", "AccessDeniedException", "not authorized")
        answer = {
            "EndpointName": "dev-chat",
            "EndpointArn": f"{ARN}endpoint/dev-chat",
            "EndpointConfigName": "config-1",
            "EndpointStatus": "InService",
            "CreationTime": 0,
            "LastModifiedTime": 0,
        }
        service.add_response("describe_endpoint", answer)
        assert components.live_config("dev-chat") == "config-1"
        assert pauses == [5.0]


def test_one_whose_tags_have_not_arrived_is_deleted_when_they_have(
    components: AwsComponents, service: Stubber, pauses: list[float]
) -> None:
    """An update that is cancelled right after its candidate was created would leave it to the sweep."""
    denied = "not authorized to perform: sagemaker:DeleteInferenceComponent"
    service.add_client_error("delete_inference_component", "AccessDeniedException", denied)
    service.add_response("delete_inference_component", {}, {"InferenceComponentName": NAME})
    components.delete(NAME)
    assert pauses == [5.0]


def test_a_component_that_an_earlier_call_created_is_the_one(components: AwsComponents, service: Stubber) -> None:
    """The list may not name it yet; then the creation says that it is there."""
    deny(service)
    list_names(service)
    exists = f"Cannot create already existing inference component {ARN}inference-component/{NAME}"
    service.add_client_error("create_inference_component", "ValidationException", exists)
    components.create(NAME, component(), {"ModelName": "model-2"}, {})


def test_any_other_refusal_of_a_creation_is_told(components: AwsComponents, service: Stubber) -> None:
    service.add_client_error("describe_inference_component", "ValidationException", f'Could not find "{NAME}"')
    service.add_client_error("create_inference_component", "ValidationException", "the endpoint is Updating")
    with pytest.raises(UnavailableError, match="the endpoint is Updating"):
        components.create(NAME, component(), {"ModelName": "model-2"}, {})


@pytest.mark.parametrize(
    ("scaling", "most"),
    [({"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}, 4), ({"Status": "DISABLED"}, 3), (None, 3)],
)
def test_a_variant_has_as_many_instances_as_its_scaling_allows(
    components: AwsComponents, service: Stubber, scaling: dict[str, object] | None, most: int
) -> None:
    variant: dict[str, object] = {"VariantName": "AllTraffic", "CurrentInstanceCount": 2, "DesiredInstanceCount": 3}
    answer = {
        "EndpointName": "dev-chat",
        "EndpointArn": f"{ARN}endpoint/dev-chat",
        "EndpointStatus": "InService",
        "CreationTime": 0,
        "LastModifiedTime": 0,
        "ProductionVariants": [
            {"VariantName": "Other", "CurrentInstanceCount": 9},
            variant if scaling is None else {**variant, "ManagedInstanceScaling": scaling},
        ],
    }
    service.add_response("describe_endpoint", answer, {"EndpointName": "dev-chat"})
    found = components.capacity("dev-chat", "AllTraffic")
    assert (found.instances, found.most) == (2, most)


def test_another_refusal_than_a_denied_one_is_not_taken_for_an_absent_component(
    components: AwsComponents, service: Stubber
) -> None:
    service.add_client_error("describe_inference_component", "InternalFailure", "try again")
    with pytest.raises(UnavailableError, match="try again"):
        components.describe(NAME)


def test_a_component_whose_name_has_the_word_is_no_candidate(components: AwsComponents, service: Stubber) -> None:
    list_names(service, "dev-chat-candidate-0a1b2c3d", "hr-candidate-ranker-model", contains="-candidate-")
    assert components.like_candidates() == ["dev-chat-candidate-0a1b2c3d"]
