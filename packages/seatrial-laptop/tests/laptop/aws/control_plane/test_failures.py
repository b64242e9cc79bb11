"""The failures of AWS that a switch makes: capacity, slow starts, tags, raised alarms, the same configuration."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pytest

from seatrial_base.catalog.symptoms import SYMPTOMS
from seatrial_laptop.aws.alarms import StateValue
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status, arn_of
from seatrial_laptop.aws.gateway.gateway import denial
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from tests.stub_cloud import StubSageMaker, variant
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_laptop.aws.json_document import Document

MANAGED: Final = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}


def refused(call: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as refusal:
        call()
    return refusal.value


def one_gpu(**more: object) -> dict[str, object]:
    return {**variant("main"), "InstanceType": "ml.g5.2xlarge", "ManagedInstanceScaling": MANAGED, **more}


def host(stub: StubSageMaker, name: str = "chat", **more: object) -> str:
    stub.config(f"{name}-config", one_gpu(**more))
    return stub.endpoint(name, f"{name}-config").name


def specification(model: str, **startup: int) -> dict[str, object]:
    resources = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    named: dict[str, object] = {"ModelName": model, "ComputeResourceRequirements": resources}
    return {**named, **({"StartupParameters": startup} if startup else {})}


def ask(name: str, model: str, copies: int = 1, **startup: int) -> dict[str, object]:
    return {
        "InferenceComponentName": name,
        "EndpointName": "chat",
        "VariantName": "main",
        "Specification": specification(model, **startup),
        "RuntimeConfig": {"CopyCount": copies},
        "Tags": [{"Key": "seatrial:environment", "Value": "dev"}],
    }


def component(
    stub: StubSageMaker,
    name: str = "model",
    model: str = "one",
    copies: int = 1,
    startup: Mapping[str, int] = MappingProxyType({}),
) -> Record:
    if stub.cloud.store.find(Kind.MODEL, model) is None:
        stub.model(model)
    stub.call("CreateInferenceComponent", **ask(name, model, copies, **startup))
    return stub.settled(Kind.INFERENCE_COMPONENT, name)


def faults(stub: StubSageMaker, **settings: object) -> None:
    stub.cloud.faults.change({"clock_speed": 600, **settings})


def instances(stub: StubSageMaker) -> tuple[object, object]:
    told = stub.variants("chat")["main"]
    return told["CurrentInstanceCount"], told["DesiredInstanceCount"]


@pytest.mark.parametrize(
    ("operation", "request_", "kind"),
    [
        ("DescribeInferenceComponent", {"InferenceComponentName": "gone"}, Kind.INFERENCE_COMPONENT),
        ("DescribeEndpoint", {"EndpointName": "gone"}, Kind.ENDPOINT),
        ("DeleteEndpointConfig", {"EndpointConfigName": "gone"}, Kind.ENDPOINT_CONFIG),
        ("UpdateEndpoint", {"EndpointName": "chat", "EndpointConfigName": "gone"}, Kind.ENDPOINT_CONFIG),
    ],
)
def test_what_is_absent_is_denied(stub: StubSageMaker, operation: str, request_: Document, kind: Kind) -> None:
    host(stub)
    assert denial(stub.cloud, operation, request_) is None
    faults(stub, absent_is_denied=True)
    error = denial(stub.cloud, operation, request_)
    assert error is not None
    assert (error.code, error.status) == ("AccessDeniedException", 400)
    assert error.message.endswith(
        f"is not authorized to perform: sagemaker:{operation} on resource: {arn_of(kind, 'gone')} "
        f"because no identity-based policy allows the sagemaker:{operation} action"
    )


def test_what_is_there_or_is_to_be_created_is_not_denied(stub: StubSageMaker) -> None:
    host(stub)
    faults(stub, absent_is_denied=True)
    assert denial(stub.cloud, "DescribeEndpoint", {"EndpointName": "chat"}) is None
    assert denial(stub.cloud, "CreateModel", {"ModelName": "new"}) is None
    assert denial(stub.cloud, "InvokeEndpoint", {"EndpointName": "gone"}) is None


def test_tags_of_a_new_resource_are_late(stub: StubSageMaker) -> None:
    host(stub)
    faults(stub, clock_speed=1, tags_late_s=600)
    made = component(stub)
    tags = [{"Key": "seatrial:environment", "Value": "dev"}]
    assert stub.call("ListTags", ResourceArn=made.arn) == {"Tags": []}
    faults(stub, tags_late_s=600)
    until(lambda: stub.call("ListTags", ResourceArn=made.arn) == {"Tags": tags}, "tags")


def test_without_capacity_a_component_is_created_without_end_and_nobody_can_delete_it(stub: StubSageMaker) -> None:
    host(stub)
    component(stub)
    faults(stub, capacity_pending=True)
    stub.call("CreateInferenceComponent", **ask("candidate", "one"))
    since_s = stub.cloud.clock.now_s()
    until(lambda: stub.cloud.clock.now_s() > since_s + 900, "900 virtual seconds")
    record = stub.cloud.store.need(Kind.INFERENCE_COMPONENT, "candidate")
    assert (record.status, record.failure_reason, instances(stub)) == (Status.CREATING, "", (1, 2))
    error = refused(lambda: stub.call("DeleteInferenceComponent", InferenceComponentName="candidate"))
    assert error.code == "ValidationException"
    assert error.message.startswith(f'Cannot update in-progress inference component "{record.arn}"')
    assert "Cannot delete endpoint with inference component associated" in (
        refused(lambda: stub.call("DeleteEndpoint", EndpointName="chat")).message
    )
    faults(stub, capacity_pending=False)
    assert stub.settled(Kind.INFERENCE_COMPONENT, "candidate").status is Status.IN_SERVICE
    assert instances(stub) == (2, 2)


@pytest.mark.parametrize("comes", [True, False])
def test_a_component_without_room_is_created_until_there_is_room_or_its_time_is_over(
    stub: StubSageMaker,
    comes: bool,  # noqa: FBT001 (a parameter)
) -> None:
    host(stub, ManagedInstanceScaling={**MANAGED, "MaxInstanceCount": 1})
    component(stub)
    longest = {"ContainerStartupHealthCheckTimeoutInSeconds": 600}
    since_s = stub.cloud.clock.now_s()  # before the call: the component's own time begins within it
    stub.call("CreateInferenceComponent", **ask("candidate", "one", **longest))
    until(lambda: stub.cloud.clock.now_s() > since_s + 300, "300 virtual seconds")
    record = stub.cloud.store.need(Kind.INFERENCE_COMPONENT, "candidate")
    assert record.status is Status.CREATING
    error = refused(lambda: stub.call("DeleteInferenceComponent", InferenceComponentName="candidate"))
    assert error.message.startswith(f'Cannot update in-progress inference component "{record.arn}"')
    if comes:
        stub.call("DeleteInferenceComponent", InferenceComponentName="model")
        assert stub.settled(Kind.INFERENCE_COMPONENT, "candidate").status is Status.IN_SERVICE
        return
    settled = stub.settled(Kind.INFERENCE_COMPONENT, "candidate")
    assert (settled.status, settled.failure_reason.partition(":")[0]) == (Status.FAILED, "InsufficientInstanceCapacity")
    assert stub.cloud.clock.now_s() >= since_s + 600
    stub.call("DeleteInferenceComponent", InferenceComponentName="candidate")


def test_without_capacity_an_endpoint_is_created_without_end_and_nobody_can_delete_it(stub: StubSageMaker) -> None:
    stub.config("config", one_gpu())
    faults(stub, capacity_pending=True)
    stub.call("CreateEndpoint", EndpointName="chat", EndpointConfigName="config")
    error = refused(lambda: stub.call("DeleteEndpoint", EndpointName="chat"))
    assert error.message.startswith("Cannot update in-progress endpoint")
    faults(stub, capacity_pending=False)
    assert stub.settled(Kind.ENDPOINT, "chat").status is Status.IN_SERVICE


def test_capacity_is_waited_for_no_longer_than_the_variant_says(stub: StubSageMaker) -> None:
    faults(stub, capacity_pending=True)
    made = host(stub, VariantInstanceProvisionTimeoutInSeconds=300)
    record = stub.cloud.store.need(Kind.ENDPOINT, made)
    assert record.status is Status.FAILED
    assert record.failure_reason == "InsufficientInstanceCapacity: no instance within 300 s."


def test_an_update_that_waits_for_capacity_ends_with_its_execution_timeout(stub: StubSageMaker) -> None:
    host(stub)
    component(stub)
    faults(stub, capacity_pending=True)
    policy = {
        "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
        "WaitIntervalInSeconds": 0,
        "MaximumExecutionTimeoutInSeconds": 600,
    }
    stub.call(
        "UpdateInferenceComponent",
        InferenceComponentName="model",
        Specification=specification(stub.model("two")),
        DeploymentConfig={"RollingUpdatePolicy": policy},
    )
    record = stub.settled(Kind.INFERENCE_COMPONENT, "model")
    assert record.status is Status.IN_SERVICE
    assert record.failure_reason == "It took more than MaximumExecutionTimeoutInSeconds (600 s)."
    assert instances(stub) == (1, 1)


NO_CAPACITY = {
    "capacity": (
        "InsufficientInstanceCapacity",
        "CapacityError: Insufficient capacity for ml.g5.2xlarge.",
        "Insufficient capacity.",
        "We currently do not have sufficient ml.g5.2xlarge capacity in the Availability Zone you requested.",
        "The variant AllTraffic does not have enough capacity.",
        "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error.",
        "Amazon SageMaker does not have enough capacity to fulfil the request.",
        "Instance type 'ml.g5.48xlarge' is temporarily unavailable in supported availability zones [euw1-az1].",
    ),
    "no-room": (
        "Not enough hardware resources on the endpoint's instances.",
        "There is no instance with enough accelerators.",
    ),
}
"""A sentence for each wording of the catalog by which SageMaker tells a lack of capacity."""


def wordings(name: str) -> list[str]:
    """Return the alternatives of a symptom's pattern at its top level."""
    pattern = next(each.pattern for each in SYMPTOMS.rows if each.name == name)
    depth, in_class, found = 0, False, [""]
    for sign in pattern:
        in_class = sign == "[" or (in_class and sign != "]")
        depth += 0 if in_class else {"(": 1, ")": -1}.get(sign, 0)
        if sign == "|" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


@pytest.mark.parametrize("name", NO_CAPACITY)
def test_every_wording_of_the_catalog_has_a_sentence(name: str) -> None:
    said = "\n".join(NO_CAPACITY[name])
    assert [one for one in wordings(name) if not re.search(one, said, re.IGNORECASE)] == []


@pytest.mark.parametrize("reason", [reason for reasons in NO_CAPACITY.values() for reason in reasons])
def test_a_lack_of_capacity_fails_with_a_chosen_wording(stub: StubSageMaker, reason: str) -> None:
    host(stub)
    faults(stub, no_capacity=["ml.g5.2xlarge"], no_capacity_reason=reason)
    component(stub)
    record = component(stub, "candidate")
    assert (record.status, record.failure_reason) == (Status.FAILED, reason)


def test_an_instance_starts_and_pulls_its_image_before_a_copy_runs(stub: StubSageMaker) -> None:
    host(stub)
    component(stub)
    faults(stub, instance_start_s=600, image_pull_gb=10, pull_gb_per_s=0.1)
    since_s = stub.cloud.clock.now_s()
    assert component(stub, "candidate").status is Status.IN_SERVICE
    assert stub.cloud.clock.now_s() - since_s >= 700


@pytest.mark.parametrize(
    ("settings", "startup", "reason"),
    [
        (
            {"download_s": 1200},
            {"ModelDataDownloadTimeoutInSeconds": 900},
            "Model data download timed out: it took more than ModelDataDownloadTimeoutInSeconds (900 s).",
        ),
        (
            {"startup_s": 1200},
            {"ContainerStartupHealthCheckTimeoutInSeconds": 600},
            "The primary container did not pass the ping health check within 600 s.",
        ),
        ({"startup_s": 600}, {"ContainerStartupHealthCheckTimeoutInSeconds": 600}, ""),
        ({"instance_start_s": 1200}, {"ContainerStartupHealthCheckTimeoutInSeconds": 600}, ""),
    ],
)
def test_downloads_and_containers_have_their_timeouts_and_instances_are_not_in_them(
    stub: StubSageMaker, settings: dict[str, object], startup: dict[str, int], reason: str
) -> None:
    host(stub)
    faults(stub, **settings)
    record = component(stub, startup=startup)
    assert (record.failure_reason, record.status is Status.FAILED) == (reason, bool(reason))


ROLLING_POLICY: Final = {
    "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
    "WaitIntervalInSeconds": 60,
    "MaximumExecutionTimeoutInSeconds": 28_800,
}
ROLLING: Final = {
    "RollingUpdatePolicy": ROLLING_POLICY,
    "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]},
}


def update(stub: StubSageMaker, model: str) -> Record:
    stub.call(
        "UpdateInferenceComponent",
        InferenceComponentName="model",
        Specification=specification(model),
        DeploymentConfig=ROLLING,
    )
    return stub.settled(Kind.INFERENCE_COMPONENT, "model")


def test_an_alarm_that_is_raised_before_ends_an_update_before_a_copy_starts(stub: StubSageMaker) -> None:
    host(stub)
    component(stub, copies=2)
    stub.model("two")
    stub.alarms["errors"] = StateValue.ALARM
    launched = list(stub.running.launched)
    record = update(stub, "two")
    assert (record.status, record.failure_reason) == (Status.IN_SERVICE, "Alarms in state ALARM: errors.")
    assert stub.running.launched == launched


@pytest.mark.parametrize(("ends", "reason"), [(False, ""), (True, "Alarms in state ALARM: errors.")])
def test_a_raised_alarm_may_end_the_way_back_too(stub: StubSageMaker, ends: bool, reason: str) -> None:  # noqa: FBT001 (a case)
    host(stub)
    component(stub, copies=2)
    stub.alarms["errors"] = StateValue.ALARM
    faults(stub, raised_alarms_end_updates=ends)
    record = update(stub, "one")
    assert (record.status, record.failure_reason) == (Status.IN_SERVICE, reason)


def test_the_same_configuration_may_be_ignored_replaced_or_refused(stub: StubSageMaker) -> None:
    host(stub)
    component(stub)
    again = {"EndpointName": "chat", "EndpointConfigName": "chat-config"}
    before = stub.running.copies(CopyPlace("model"))

    stub.call("UpdateEndpoint", **again)
    stub.settled(Kind.ENDPOINT, "chat")
    assert stub.running.copies(CopyPlace("model")) == before

    faults(stub, same_config="refused")
    assert "You must create a new EndpointConfig" in refused(lambda: stub.call("UpdateEndpoint", **again)).message

    faults(stub, same_config="replaced", instance_start_s=600)
    since_s = stub.cloud.clock.now_s()
    stub.call("UpdateEndpoint", **again)
    assert stub.settled(Kind.ENDPOINT, "chat").status is Status.IN_SERVICE
    assert not set(stub.running.copies(CopyPlace("model"))) & set(before)
    assert (len(stub.running.copies(CopyPlace("model"))), instances(stub)) == (1, (1, 1))
    assert stub.cloud.clock.now_s() - since_s >= 600


def test_a_new_fleet_needs_twice_the_capacity(stub: StubSageMaker) -> None:
    host(stub)
    component(stub)
    before = stub.running.copies(CopyPlace("model"))
    faults(stub, same_config="replaced", capacity_limit=1)
    stub.call("UpdateEndpoint", EndpointName="chat", EndpointConfigName="chat-config")
    record = stub.settled(Kind.ENDPOINT, "chat")
    assert record.failure_reason == "InsufficientInstanceCapacity: a new fleet needs 2 instances, 1 can be had."
    assert stub.running.copies(CopyPlace("model")) == before
    assert instances(stub) == (1, 1)


def test_a_rolling_update_of_several_variants_is_all_at_once_with_a_double_fleet_and_no_alarm(
    stub: StubSageMaker,
) -> None:
    stub.model("one")
    stub.config("old", variant("a", "one", count=2), variant("b", "one", count=2))
    stub.endpoint("chat", "old")
    stub.config("new", variant("a", stub.model("two"), count=2), variant("b", "two", count=2))
    stub.alarms["errors"] = StateValue.ALARM
    size = {"Type": "CAPACITY_PERCENT", "Value": 50}
    rolling = {**ROLLING, "RollingUpdatePolicy": {**ROLLING_POLICY, "MaximumBatchSize": size}}
    faults(stub, capacity_limit=7)
    again = {"EndpointName": "chat", "EndpointConfigName": "new", "DeploymentConfig": rolling}
    stub.call("UpdateEndpoint", **again)
    assert stub.settled(Kind.ENDPOINT, "chat").failure_reason == (
        "InsufficientInstanceCapacity: 8 instances were asked for, and 7 can be had."
    )
    faults(stub, capacity_limit=8)
    stub.call("UpdateEndpoint", **again)
    record = stub.settled(Kind.ENDPOINT, "chat")
    assert (record.failure_reason, record.request["EndpointConfigName"]) == ("", "new")
