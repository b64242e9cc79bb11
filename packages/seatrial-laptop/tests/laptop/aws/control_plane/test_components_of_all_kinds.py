"""Adapters, several specifications, and placement on instances of several types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.runtime import artifacts
from seatrial_laptop.aws.runtime.routing import route_request
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from tests.stub_cloud import IMAGE, StubSageMaker, variant

if TYPE_CHECKING:
    from collections.abc import Callable

COMPONENT = "x-amzn-sagemaker-inference-component"
NEEDS = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
POOLS: list[dict[str, object]] = [
    {"InstanceType": "ml.g6e.12xlarge", "Priority": 1},
    {"InstanceType": "ml.g5.12xlarge", "Priority": 2},
]


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ApiError) as refusal:
        call()
    return refusal.value.message


def host(stub: StubSageMaker, *, pools: list[dict[str, object]] | None = None) -> None:
    stub.model("one")
    managed = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 4}
    kind = {"InstancePools": pools} if pools else {"InstanceType": "ml.g5.12xlarge"}
    hosting = {"VariantName": "main", "InitialInstanceCount": 1, "ManagedInstanceScaling": managed, **kind}
    stub.config("hosting", hosting)
    stub.endpoint("host", "hosting")


def component(stub: StubSageMaker, name: str, *, copies: int = 1, **more: object) -> tuple[Status | None, str]:
    given = more or {"Specification": {"ModelName": "one", "ComputeResourceRequirements": NEEDS}}
    stub.call(
        "CreateInferenceComponent",
        InferenceComponentName=name,
        EndpointName="host",
        RuntimeConfig={"CopyCount": copies},
        **given,
    )
    record = stub.settled(Kind.INFERENCE_COMPONENT, name)
    return record.status, record.failure_reason


def adapter(base: str = "base", url: str = "s3://bucket/sql.tar.gz", **more: object) -> dict[str, object]:
    return {"BaseInferenceComponentName": base, "Container": {"ArtifactUrl": url}, **more}


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every artifact be there that isn't named `missing`."""

    def unpack(url: str, _folder: object) -> None:
        if "missing" in url:
            raise artifacts.ArtifactError(f"Could not find model data at {url}.")

    monkeypatch.setattr("seatrial_laptop.aws.control_plane.containers.unpack_artifact", unpack)


@pytest.mark.usefixtures("no_files")
def test_requests_of_an_adapter_reach_the_copies_of_its_base(stub: StubSageMaker) -> None:
    host(stub)
    component(stub, "base", copies=2)
    assert component(stub, "sql", Specification=adapter()) == (Status.IN_SERVICE, "")
    found = route_request(stub.cloud, "host", {COMPONENT: "sql"})
    found.copy.outstanding -= 1
    assert found.copy in stub.running.copies(CopyPlace("base"))
    assert found.place == CopyPlace("sql")
    told = stub.call("DescribeInferenceComponent", InferenceComponentName="sql")
    assert told["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    assert told["Specification"] == adapter()
    assert sum(count for _, _, count in stub.running.launched) == 2


VLLM = "r/vllm:0.21.0-gpu-py312"


@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize(
    ("image", "variables", "is_loaded"),
    [
        (VLLM, {}, False),
        (VLLM, {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"}, True),
        ("r/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6", {}, False),
        (IMAGE, {}, True),
    ],
)
def test_an_adapter_is_loaded_by_containers_that_have_the_route(
    stub: StubSageMaker, image: str, variables: dict[str, str], *, is_loaded: bool
) -> None:
    host(stub)
    base = {"Container": {"Image": image, "Environment": variables}, "ComputeResourceRequirements": NEEDS}
    assert component(stub, "base", Specification=base) == (Status.IN_SERVICE, "")
    status, reason = component(stub, "sql", Specification=adapter())
    assert (status is Status.IN_SERVICE, "POST /adapters" in reason) == (is_loaded, not is_loaded)


@pytest.mark.usefixtures("no_files")
def test_a_base_is_not_deleted_before_its_adapters(stub: StubSageMaker) -> None:
    host(stub)
    component(stub, "base")
    component(stub, "sql", Specification=adapter())
    said = refused(lambda: stub.call("DeleteInferenceComponent", InferenceComponentName="base"))
    assert said == "Cannot delete inference component base while it is the base of: sql. Delete them first."
    assert stub.cloud.store.need(Kind.INFERENCE_COMPONENT, "base").status is Status.IN_SERVICE


@pytest.mark.usefixtures("no_files")
def test_an_adapter_without_its_files_fails_and_an_update_keeps_the_old_ones(stub: StubSageMaker) -> None:
    host(stub)
    component(stub, "base")
    gone = adapter(url="s3://bucket/missing.tar.gz")
    said = "Could not find model data at s3://bucket/missing.tar.gz."
    assert component(stub, "bad", Specification=gone) == (Status.FAILED, said)
    component(stub, "sql", Specification=adapter())
    stub.call("UpdateInferenceComponent", InferenceComponentName="sql", Specification=gone)
    record = stub.settled(Kind.INFERENCE_COMPONENT, "sql")
    assert (record.status, record.failure_reason) == (Status.IN_SERVICE, said)
    assert record.request["Specification"] == adapter()


@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (adapter("none"), "Could not find inference component"),
        (adapter("sql"), "is an adapter itself"),
        (adapter(ComputeResourceRequirements=NEEDS), "has no ComputeResourceRequirements"),
        ({"BaseInferenceComponentName": "base", "Container": {"Image": IMAGE}}, "needs Container.ArtifactUrl"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(stub: StubSageMaker, wrong: dict[str, object], said: str) -> None:
    host(stub)
    component(stub, "base")
    component(stub, "sql", Specification=adapter())
    assert said in refused(lambda: component(stub, "other", Specification=wrong))


@pytest.mark.usefixtures("no_files")
def test_an_adapter_has_no_copies_of_its_own_and_keeps_its_base(stub: StubSageMaker) -> None:
    host(stub)
    component(stub, "base")
    component(stub, "second")
    component(stub, "sql", Specification=adapter())

    def update(**more: object) -> Callable[[], object]:
        return lambda: stub.call("UpdateInferenceComponent", InferenceComponentName="sql", **more)

    assert "its copies are those of its base" in refused(update(RuntimeConfig={"CopyCount": 3}))
    assert "can't be changed" in refused(update(Specification=adapter("second")))
    assert stub.cloud.store.need(Kind.INFERENCE_COMPONENT, "sql").status is Status.IN_SERVICE


def several() -> list[dict[str, object]]:
    return [
        {"InstanceType": pool["InstanceType"], "ModelName": name, "ComputeResourceRequirements": NEEDS}
        for pool, name in zip(POOLS, ("one", "small"), strict=True)
    ]


def test_of_several_specifications_that_of_the_instance_type_runs(stub: StubSageMaker) -> None:
    stub.model("small")
    stub.cloud.faults.change({"no_capacity": ["ml.g6e.12xlarge"]})
    host(stub, pools=POOLS)
    assert component(stub, "chat", copies=2, Specifications=several()) == (Status.IN_SERVICE, "")
    assert stub.running.launched == [(CopyPlace("chat"), "small", 2)]
    told = stub.call("DescribeInferenceComponent", InferenceComponentName="chat")
    assert ("Specification" in told, told["Specifications"]) == (False, several())
    runtime = told["RuntimeConfig"]
    assert isinstance(runtime, dict)
    assert runtime["PlacementStatus"] == [{"InstanceType": "ml.g5.12xlarge", "CurrentCopyCount": 2}]
    pools = stub.variants("host")["main"]["InstancePools"]
    assert pools == [
        {"InstanceType": "ml.g6e.12xlarge", "CurrentInstanceCount": 0},
        {"InstanceType": "ml.g5.12xlarge", "CurrentInstanceCount": 1},
    ]


def test_several_specifications_must_cover_the_pools(stub: StubSageMaker) -> None:
    stub.model("small")
    host(stub, pools=POOLS)
    one, two = several()
    assert "two or more" in refused(lambda: component(stub, "chat", Specifications=[one, one]))
    other = {**two, "InstanceType": "ml.g5.48xlarge"}
    assert "lack the instance types of the variant: ml.g5.12xlarge" in refused(
        lambda: component(stub, "chat", Specifications=[one, other])
    )


@pytest.mark.parametrize(
    ("strategy", "placed"),
    [("SPREAD", [1, 1, 1]), ("BINPACK", [3, 0, 0]), ("", [3, 0, 0])],
)
def test_copies_are_spread_or_packed(stub: StubSageMaker, strategy: str, placed: list[int]) -> None:
    stub.model("one")
    managed = {"Status": "ENABLED", "MinInstanceCount": 3, "MaxInstanceCount": 4}
    stub.config("hosting", variant("main", count=3, ManagedInstanceScaling=managed))
    stub.endpoint("host", "hosting")
    scheduling = {"SchedulingConfig": {"PlacementStrategy": strategy}} if strategy else {}
    specification = {"ModelName": "one", "ComputeResourceRequirements": NEEDS, **scheduling}
    component(stub, "chat", copies=3, Specification=specification)
    fleet = stub.cloud.fleets.find("host", "main")
    assert fleet is not None
    assert sorted(fleet.seats(), reverse=True) == placed


def test_a_model_package_runs_on_a_stand_in_image(stub: StubSageMaker) -> None:
    package = "arn:aws:sagemaker:us-east-1:000000000000:model-package/chat/1"
    stub.call("CreateModel", ModelName="packaged", PrimaryContainer={"ModelPackageName": package})
    stub.config("c", variant("a", "packaged"))
    assert stub.endpoint("chat", "c").status is Status.IN_SERVICE
    both = {"ModelPackageName": package, "Image": IMAGE}
    assert "either an Image or a ModelPackageName" in refused(
        lambda: stub.call("CreateModel", ModelName="both", PrimaryContainer=both)
    )
