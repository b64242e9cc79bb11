"""An endpoint that serves: its hardware is read, and the model on it is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.stub import Stubber

from seatrial.probe.pinned import ProbedHardware
from seatrial.probe.run import ProbedEndpoint, check_hardware, level_request, read_live
from seatrial_base.errors import BenchError
from tests.probe.conftest import CHEAP, LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker import SageMakerClient

    from tests.probe.conftest import Locked

ARN = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/dev-chat"
NOW = "2026-11-22T00:00:00Z"
LIVE = ProbedEndpoint(
    endpoint_name="dev-chat",
    component="dev-chat-model",
    config_name="config-2",
    model_name="model-2",
    hardware=ProbedHardware(CHEAP, 1),
)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with Stubber(boto3.client("sagemaker", region_name="us-east-1")) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def client_of(stub: Stubber) -> SageMakerClient:
    return cast("SageMakerClient", stub.client)


def serves(
    stub: Stubber, *components: str, devices: float | None = 1, endpoint: str = "dev-chat", listed: bool = True
) -> None:
    """Answer as the control plane does for an endpoint with these components."""
    described = {"EndpointName": "dev-chat", "EndpointArn": ARN, "EndpointStatus": "InService"}
    times = {"CreationTime": NOW, "LastModifiedTime": NOW}
    stub.add_response("describe_endpoint", {**described, **times, "EndpointConfigName": "config-2"})
    variant = {"VariantName": "v", "InstanceType": CHEAP}
    config = {"EndpointConfigName": "config-2", "EndpointConfigArn": ARN, "ProductionVariants": [variant]}
    stub.add_response("describe_endpoint_config", {**config, "CreationTime": NOW})
    each = {"EndpointName": "dev-chat", "EndpointArn": ARN, "VariantName": "v", "InferenceComponentArn": ARN, **times}
    if listed:
        names = [{**each, "InferenceComponentName": name} for name in components]
        stub.add_response("list_inference_components", {"InferenceComponents": names})
    if len(components) != 1:
        return
    needs = {"MinMemoryRequiredInMb": 1024} | ({"NumberOfAcceleratorDevicesRequired": devices} if devices else {})
    specification = {"ModelName": "model-2", "ComputeResourceRequirements": needs}
    named = {**each, "InferenceComponentName": components[0], "EndpointName": endpoint}
    stub.add_response("describe_inference_component", {**named, "Specification": specification})


def test_the_only_component_tells_what_it_runs_on(stub: Stubber) -> None:
    serves(stub, "dev-chat-model")
    assert read_live(client_of(stub), "dev-chat", None) == LIVE


def test_a_named_component_is_not_looked_for(stub: Stubber) -> None:
    serves(stub, "dev-chat-model", listed=False)
    assert read_live(client_of(stub), "dev-chat", "dev-chat-model") == LIVE


@pytest.mark.parametrize(("components", "hint"), [((), "a Seatrial stack"), (("b", "a"), "--component: a, b")])
def test_without_one_component_it_is_refused(stub: Stubber, components: tuple[str, ...], hint: str) -> None:
    serves(stub, *components)
    with pytest.raises(BenchError) as refused:
        read_live(client_of(stub), "dev-chat", None)
    (problem,) = refused.value.problems
    assert problem.rule == "SEA502"
    assert hint in problem.hint


def test_a_component_of_another_endpoint_is_refused(stub: Stubber) -> None:
    serves(stub, "dev-chat-model", endpoint="prod-chat", listed=False)
    with pytest.raises(BenchError, match="SEA502: component dev-chat-model is on endpoint prod-chat"):
        read_live(client_of(stub), "dev-chat", "dev-chat-model")


def test_a_component_without_accelerators_is_refused(stub: Stubber) -> None:
    serves(stub, "dev-chat-model", devices=None)
    with pytest.raises(BenchError, match="SEA502: component dev-chat-model has no model"):
        read_live(client_of(stub), "dev-chat", None)


def test_an_endpoint_that_is_not_there_is_told(stub: Stubber) -> None:
    stub.add_client_error("describe_endpoint", "ValidationException", "Could not find endpoint")
    with pytest.raises(BenchError, match="SEA502: there is no such endpoint"):
        read_live(client_of(stub), "dev-chat", None)


def test_other_hardware_than_asked_for_is_refused() -> None:
    check_hardware(LIVE, None)
    check_hardware(LIVE, ProbedHardware(CHEAP, 1))
    with pytest.raises(BenchError, match=r"SEA502: .* runs on ml\.g5\.2xlarge, TP 1, not on ml\.g5\.2xlarge, TP 4"):
        check_hardware(LIVE, ProbedHardware(CHEAP, 4))


def test_the_trial_is_of_the_level_and_proves_the_image(locked: Locked) -> None:
    (candidate,) = locked.pinned("candidate")
    request = level_request(candidate, LIVE)
    assert request.load.concurrency_levels == (LEVEL,)
    assert (request.gate_concurrency, request.mode) == (LEVEL, "report")
    assert request.target.inference_component == "dev-chat-model"
    assert request.expected is not None
    assert (request.expected.endpoint_config_name, request.expected.model_name) == ("config-2", "model-2")
    assert request.expected.image == candidate.deployment.serving.image
