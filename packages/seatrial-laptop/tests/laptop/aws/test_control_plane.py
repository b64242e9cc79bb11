from __future__ import annotations

import io
import json
import os
import re
import signal
import tarfile
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    error = refused.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def specification(model: str) -> dict[str, object]:
    resources = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    return {"ModelName": model, "ComputeResourceRequirements": resources}


def info(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/info") as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def artifact(laptop: Laptop, members: dict[str, str]) -> str:
    """Put a tar.gz file of these members into S3 and return its URL."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    bucket = laptop.name("bucket")
    laptop.s3.create_bucket(Bucket=bucket)
    laptop.s3.put_object(Bucket=bucket, Key="model.tar.gz", Body=packed.getvalue())
    return f"s3://{bucket}/model.tar.gz"


def test_names_are_unique(laptop: Laptop) -> None:
    name = laptop.model()
    image = {"Image": "r/djl-inference:0.36.0"}
    said = refusal(lambda: laptop.sagemaker.create_model(ModelName=name, PrimaryContainer=image))
    arn = f"arn:aws:sagemaker:us-east-1:000000000000:model/{name}"
    assert said == f'ValidationException: Cannot create already existing model "{arn}".'


def test_what_is_named_must_exist(laptop: Laptop) -> None:
    arn = "arn:aws:sagemaker:us-east-1:000000000000"
    variant = {"VariantName": "v", "ModelName": "none", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    said = refusal(
        lambda: laptop.sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    )
    assert said == f'ValidationException: Could not find model "{arn}:model/none".'
    said = refusal(lambda: laptop.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="none"))
    assert said == f'ValidationException: Could not find endpoint configuration "{arn}:endpoint-config/none".'


def test_a_configuration_for_components_needs_its_role(laptop: Laptop) -> None:
    variant = {"VariantName": "v", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    said = refusal(
        lambda: laptop.sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    )
    assert said == (
        "ValidationException: ExecutionRoleArn is required when variant v has no ModelName "
        "(it is to host inference components)."
    )


def test_a_component_needs_an_endpoint_that_takes_it(laptop: Laptop, host: str, chat: str) -> None:
    model = laptop.model()
    ask = {
        "InferenceComponentName": "x",
        "EndpointName": host,
        "VariantName": "other",
        "Specification": specification(model),
        "RuntimeConfig": {"CopyCount": 1},
    }
    said = refusal(lambda: laptop.sagemaker.create_inference_component(**ask))
    assert "Could not find variant" in said
    without = {"ModelName": model}
    said = refusal(
        lambda: laptop.sagemaker.create_inference_component(**{**ask, "VariantName": "main", "Specification": without})
    )
    assert said == "ValidationException: Specification must have ComputeResourceRequirements."


def test_an_endpoint_with_components_is_not_deleted(laptop: Laptop, host: str, chat: str) -> None:
    said = refusal(lambda: laptop.sagemaker.delete_endpoint(EndpointName=host))
    told = re.fullmatch(
        "ValidationException: Cannot delete endpoint with inference component associated. "
        r"Please delete inference component and try it again. \((.+)\)",
        said,
    )
    assert told is not None, said
    assert chat in told[1].split(", ")


def test_tags_are_kept(laptop: Laptop, host: str) -> None:
    arn = laptop.sagemaker.describe_endpoint(EndpointName=host)["EndpointArn"]
    laptop.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    laptop.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a"])
    assert laptop.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": "2"}]


def test_lists_are_filtered_and_paged(laptop: Laptop) -> None:
    names = sorted(laptop.model() for _ in range(3))
    first = laptop.sagemaker.list_models(NameContains="model", SortBy="Name", SortOrder="Ascending", MaxResults=2)
    rest = laptop.sagemaker.list_models(
        NameContains="model", SortBy="Name", SortOrder="Ascending", NextToken=first["NextToken"]
    )
    found = [model["ModelName"] for page in (first, rest) for model in page["Models"]]
    assert len(first["Models"]) == 2
    assert set(names) <= set(found)
    assert found == sorted(found)


def test_the_rendered_limits_reach_the_engine(laptop: Laptop, chat: str) -> None:
    (port,) = laptop.ports(chat)
    found = info(port)
    assert found["engine"] == "local-cpu-random-llama (not the model named)"
    assert found["model_named"] == "org/model"
    assert (found["slots"], found["settings"]["max_total_tokens"]) == (2, 2048)


def test_the_packaged_properties_reach_the_engine(laptop: Laptop, host: str) -> None:
    text = "engine=Python\noption.model_id=packaged\noption.max_rolling_batch_size=5\noption.max_model_len=512\n"
    component = laptop.component(host, laptop.model(artifact=artifact(laptop, {"serving.properties": text})))
    (port,) = laptop.ports(component)
    assert (info(port)["model_named"], info(port)["slots"]) == ("packaged", 5)
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


@pytest.mark.parametrize(
    ("member", "reason"),
    [("../outside", "would be extracted to"), ("/absolute/../../outside", "would be extracted to")],
)
def test_an_artifact_that_leaves_its_folder_is_refused(laptop: Laptop, host: str, member: str, reason: str) -> None:
    component = laptop.component(host, laptop.model(artifact=artifact(laptop, {member: "x"})))
    status, said = laptop.component_settled(component)
    assert status == "Failed"
    assert said.startswith("Could not unpack model data at s3://")
    assert reason in said
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_a_download_needs_the_right_of_the_role_at_that_moment(laptop: Laptop, host: str) -> None:
    iam, name, url = (
        boto3.client("iam"),
        laptop.name("role"),
        artifact(laptop, {"serving.properties": "engine=Python\n"}),
    )
    trusted = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": trusted}))["Role"]["Arn"]

    def allow(key: str) -> None:
        statement = {"Effect": "Allow", "Action": "s3:Get*", "Resource": f"arn:aws:s3:::{url[5:].split('/')[0]}/{key}"}
        pull = {"Effect": "Allow", "Action": "ecr:*", "Resource": "*"}
        document = json.dumps({"Statement": [statement, pull]})
        iam.put_role_policy(RoleName=name, PolicyName="download", PolicyDocument=document)

    model = laptop.name("model")
    container = {"Image": LMI, "Environment": {"HF_MODEL_ID": "org/model"}, "ModelDataUrl": url}
    laptop.sagemaker.create_model(ModelName=model, ExecutionRoleArn=arn, PrimaryContainer=container)
    allow("model.tar.gz")
    component = laptop.component(host, model)
    assert laptop.component_settled(component) == ("InService", "")

    allow("another.tar.gz")
    laptop.sagemaker.update_inference_component_runtime_config(
        InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": 2}
    )
    status, reason = laptop.component_settled(component)
    assert (status, len(laptop.ports(component))) == ("InService", 1)
    assert reason == (
        f"AccessDenied: User: arn:aws:sts::000000000000:assumed-role/{name}/SageMaker is not authorized to perform: "
        f"s3:GetObject on resource: arn:aws:s3:::{url[5:]} because no identity-based policy allows the s3:GetObject "
        "action"
    )
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_a_configuration_that_the_container_refuses_fails_with_its_last_lines(laptop: Laptop, host: str) -> None:
    component = laptop.component(host, laptop.model(OPTION_DTYPE="bfloat16"))
    assert laptop.component_settled(component) == (
        "Failed",
        "The container ended with status 1 before it passed the ping health check. Its last lines:\n"
        "option.dtype: SEA605: 'bfloat16' is not one of auto, fp32, fp16, bf16, int8",
    )
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_an_update_swaps_the_copies_and_a_failed_one_keeps_the_old(laptop: Laptop, host: str) -> None:
    good = laptop.model(OPTION_MAX_ROLLING_BATCH_SIZE="3")
    component = laptop.component(host, laptop.model(OPTION_MAX_ROLLING_BATCH_SIZE="2"))
    (before,) = laptop.ports(component)
    laptop.sagemaker.update_inference_component(InferenceComponentName=component, Specification=specification(good))
    assert laptop.component_settled(component) == ("InService", "")
    (after,) = laptop.ports(component)
    assert (after != before, info(after)["slots"]) == (True, 3)

    bad = laptop.model(OPTION_DTYPE="float16")
    laptop.sagemaker.update_inference_component(InferenceComponentName=component, Specification=specification(bad))
    status, reason = laptop.component_settled(component)
    found = laptop.sagemaker.describe_inference_component(InferenceComponentName=component)
    assert status == "InService"
    assert reason.endswith("option.dtype: SEA605: 'float16' is not one of auto, fp32, fp16, bf16, int8")
    assert found["Specification"]["ModelName"] == good
    assert laptop.ports(component) == (after,)
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_copies_are_added_and_removed_without_touching_the_others(laptop: Laptop, host: str) -> None:
    component = laptop.component(host, laptop.model())
    (first,) = laptop.ports(component)
    for count in (2, 1, 0):
        laptop.sagemaker.update_inference_component_runtime_config(
            InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": count}
        )
        assert laptop.component_settled(component) == ("InService", "")
        assert laptop.ports(component)[:1] == (first,)[:count]
        assert len(laptop.ports(component)) == count
    said = refusal(
        lambda: laptop.runtime.invoke_endpoint(EndpointName=host, InferenceComponentName=component, Body="{}")
    )
    assert said.startswith("ValidationError: Inference Component has no capacity to process this request.")
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_copies_beyond_the_instances_are_not_placed(laptop: Laptop) -> None:
    """Five copies were InService on four instances of one accelerator each."""
    endpoint = laptop.endpoint(most_instances=2)
    component = laptop.component(endpoint, laptop.model(), copies=2)
    assert laptop.component_settled(component) == ("InService", "")

    laptop.sagemaker.update_inference_component_runtime_config(
        InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": 3}
    )
    status, reason = laptop.component_settled(component)
    assert (status, len(laptop.ports(component))) == ("InService", 2)
    assert reason.startswith(f"InsufficientInstanceCapacity: 3 copies of {component} need 3 instances of ml.g5.2xlarge")


def test_what_would_never_act_is_refused(laptop: Laptop, chat: str) -> None:
    place = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"inference-component/{chat}",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    client: Any = boto3.client("application-autoscaling", config=Config(retries={"total_max_attempts": 1}))
    client.register_scalable_target(**place, MinCapacity=1, MaxCapacity=4)
    said = refusal(lambda: client.put_scaling_policy(PolicyName="soon", PolicyType="PredictiveScaling", **place))
    assert said == "InternalFailure: the embedded AWS has no PredictiveScaling policies: they would never act"
    client.deregister_scalable_target(**place)


def test_no_scaling_activity_is_told_of_what_nobody_scaled(laptop: Laptop, chat: str) -> None:
    scaling = boto3.client("application-autoscaling")
    told = scaling.describe_scaling_activities(ServiceNamespace="sagemaker", ResourceId=f"inference-component/{chat}")
    assert told["ScalingActivities"] == []


def test_an_endpoint_has_the_tags_it_was_created_with(laptop: Laptop, host: str) -> None:
    arn = laptop.sagemaker.describe_endpoint(EndpointName=host)["EndpointArn"]
    laptop.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "search"}])
    assert {"Key": "team", "Value": "search"} in laptop.sagemaker.list_tags(ResourceArn=arn)["Tags"]
    laptop.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["team"])


def test_a_copy_that_dies_makes_its_component_fail_loudly(
    laptop: Laptop, host: str, processes: Callable[[str], list[int]]
) -> None:
    component = laptop.component(host, laptop.model())
    (port,) = laptop.ports(component)
    (engine,) = processes(f"--port {port} ")
    os.kill(engine, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while laptop.component_settled(component)[0] == "InService" and time.monotonic() < deadline:
        time.sleep(0.05)
    status, reason = laptop.component_settled(component)
    assert (status, reason.splitlines()[0]) == ("Failed", "A copy's container ended with status -9. Its last lines:")
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_a_plain_endpoint_runs_its_model_and_leaves_nothing(
    laptop: Laptop, processes: Callable[[str], list[int]]
) -> None:
    endpoint = laptop.endpoint(model=laptop.model())
    answer = laptop.runtime.invoke_endpoint(
        EndpointName=endpoint, Body=json.dumps({"inputs": "hi", "parameters": {"max_new_tokens": 2}})
    )
    assert answer["InvokedProductionVariant"] == "main"
    assert processes(f"{endpoint}-main-") != []
    laptop.sagemaker.delete_endpoint(EndpointName=endpoint)
    deadline = time.monotonic() + 5
    while processes(f"{endpoint}-main-") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes(f"{endpoint}-main-") == []


def test_a_target_keeps_its_bounds_and_a_policy_its_alarms(laptop: Laptop, chat: str) -> None:
    client: Any = boto3.client("application-autoscaling")
    cloudwatch: Any = boto3.client("cloudwatch")
    place = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"inference-component/{chat}",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    metric = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    tracking = {"TargetValue": 5.0, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}}
    policy: dict[str, Any] = {"PolicyName": "knee", "PolicyType": "TargetTrackingScaling", **place}

    said = refusal(lambda: client.put_scaling_policy(**policy, TargetTrackingScalingPolicyConfiguration=tracking))
    assert said.startswith("ObjectNotFoundException: No scalable target registered for sagemaker inference-component/")
    client.register_scalable_target(**place, MinCapacity=1, MaxCapacity=4)
    rests = {"DynamicScalingInSuspended": True, "DynamicScalingOutSuspended": True, "ScheduledScalingSuspended": True}
    for suspended in (dict.fromkeys(rests, False), rests, dict.fromkeys(rests, False)):
        client.register_scalable_target(**place, SuspendedState=suspended)
        client.register_scalable_target(**place, MaxCapacity=4)
        (target,) = client.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        assert (target["SuspendedState"], target["MinCapacity"], target["MaxCapacity"]) == (suspended, 1, 4)
    alarms = client.put_scaling_policy(**policy, TargetTrackingScalingPolicyConfiguration=tracking)["Alarms"]
    found = cloudwatch.describe_alarms(AlarmNames=[alarm["AlarmName"] for alarm in alarms])["MetricAlarms"]
    assert sorted((alarm["MetricName"], alarm["Threshold"]) for alarm in found) == [
        ("ConcurrentRequestsPerCopy", 4.5),
        ("ConcurrentRequestsPerCopy", 5.0),
    ]
    misfit = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    wrong = {"TargetValue": 5.0, "PredefinedMetricSpecification": misfit}
    assert refusal(lambda: client.put_scaling_policy(**policy, TargetTrackingScalingPolicyConfiguration=wrong)) == (
        "ValidationException: Predefined metric SageMakerVariantInvocationsPerInstance does not fit scalable dimension "
        "sagemaker:inference-component:DesiredCopyCount."
    )
    client.deregister_scalable_target(**place)
    assert cloudwatch.describe_alarms(AlarmNames=[alarm["AlarmName"] for alarm in alarms])["MetricAlarms"] == []
