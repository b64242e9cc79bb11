"""What a kind of endpoint excludes, and names and figures within a template that must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from seatrial_base.catalog.hosting_kinds import EXCLUSIONS, METRICS, SOURCES
from seatrial_base.findings import RULES
from tests.template_rules.sample import DELETE, IMAGE, changed, components, found, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

CONFIG = "Config.Properties"
VARIANT = f"{CONFIG}.ProductionVariants.0"
SIZE = f"{VARIANT}.ServerlessConfig"
MODEL = "Model.Properties"
TARGET = "Target.Properties"
ALARM = "WakeAlarm.Properties"
TRACKING = "Tracking.Properties.TargetTrackingScalingPolicyConfiguration"
METRIC = f"{TRACKING}.CustomizedMetricSpecification"
UNKNOWN: JsonValue = {"Ref": "Parameter"}
EITHER: JsonValue = {"Fn::If": ["IsWide", {"Ref": "A"}, {"Ref": "AWS::NoValue"}]}
CHOSEN: JsonValue = {"Fn::If": ["IsServerless", {"MemorySizeInMB": 1, "MaxConcurrency": 1}, {"Ref": "AWS::NoValue"}]}
SHADOW: JsonValue = [{"VariantName": "s", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}]
ROLLING: JsonValue = {
    "RollingUpdatePolicy": {
        "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
        "WaitIntervalInSeconds": 60,
    }
}
Template: TypeAlias = "dict[str, JsonValue]"


def serverless() -> Template:
    """Return a template of a serverless endpoint in which no rule finds anything."""
    document = single()
    for name in ("Tracking", "Wake", "WakeAlarm", "Target"):
        changed(document, name, DELETE)
    for name in ("InstanceType", "InitialInstanceCount", "VolumeSizeInGB"):
        changed(document, f"{VARIANT}.{name}", DELETE)
    changed(document, f"{CONFIG}.AsyncInferenceConfig", DELETE)
    changed(document, SIZE, {"MemorySizeInMB": 4096, "MaxConcurrency": 5, "ProvisionedConcurrency": 5})
    return changed(document, f"{MODEL}.PrimaryContainer.Image", "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:3")


def scaled(dimension: str, of: Callable[[], Template] = serverless) -> Template:
    document = changed(of(), "Target", single()["Resources"]["Target"])  # type: ignore[index,call-overload]
    changed(document, f"{TARGET}.ScalableDimension", dimension)
    return changed(document, f"{TARGET}.MinCapacity", 1)


def on_components() -> Template:
    """Return the template of components, whose instances are scaled as a variant's."""
    return scaled("sagemaker:variant:DesiredInstanceCount", real_time)


def real_time(instance_type: str = "ml.g5.xlarge") -> Template:
    document = changed(single(), f"{CONFIG}.AsyncInferenceConfig", DELETE)
    for name in ("Tracking", "Wake", "WakeAlarm", "Target"):
        changed(document, name, DELETE)
    changed(document, f"{VARIANT}.VolumeSizeInGB", DELETE)
    return changed(document, f"{VARIANT}.InstanceType", instance_type)


WRONG: list[tuple[str, Callable[[], Template], str, object, str]] = [
    ("SEA795", serverless, f"{VARIANT}.InstanceType", "ml.g5.xlarge", "a serverless variant takes no InstanceType"),
    ("SEA795", serverless, f"{VARIANT}.InitialInstanceCount", 1, "takes no InitialInstanceCount"),
    ("SEA795", serverless, f"{VARIANT}.InferenceAmiVersion", "al2-ami", "takes no InferenceAmiVersion"),
    ("SEA795", serverless, f"{CONFIG}.VpcConfig", {"Subnets": ["a"]}, "takes no VpcConfig"),
    ("SEA795", serverless, f"{CONFIG}.EnableNetworkIsolation", "true", "takes no EnableNetworkIsolation"),
    ("SEA795", serverless, f"{CONFIG}.DataCaptureConfig", {"DestinationS3Uri": "s3://a/"}, "no DataCaptureConfig"),
    ("SEA795", serverless, f"{MODEL}.VpcConfig", {"Subnets": ["a"]}, "takes no VpcConfig"),
    ("SEA795", serverless, f"{MODEL}.EnableNetworkIsolation", True, "takes no EnableNetworkIsolation"),
    ("SEA795", serverless, f"{MODEL}.Containers", [{}, {}], "takes at most 1 of Containers, not 2"),
    ("SEA795", serverless, f"{MODEL}.PrimaryContainer.Mode", "MultiModel", "no PrimaryContainer.Mode MultiModel"),
    ("SEA795", serverless, "Endpoint.Properties.DeploymentConfig", ROLLING, "no DeploymentConfig.RollingUpdatePolicy"),
    ("SEA795", single, f"{CONFIG}.ShadowProductionVariants", SHADOW, "an asynchronous endpoint takes no Shadow"),
    ("SEA795", on_components, f"{VARIANT}.InstanceType", "ml.t2.medium", "burstable instances takes no ScalableDim"),
    ("SEA795", real_time, f"{VARIANT}.InstanceType", "ml.inf1.xlarge", ""),
    ("SEA796", serverless, f"{SIZE}.MemorySizeInMB", 4000, "MemorySizeInMB 4000 is none of 1024, 2048"),
    ("SEA796", serverless, f"{SIZE}.MemorySizeInMB", 8192, "MemorySizeInMB 8192 is none"),
    ("SEA796", serverless, f"{SIZE}.MaxConcurrency", 201, "MaxConcurrency 201 is outside 1 to 200"),
    ("SEA796", serverless, f"{SIZE}.ProvisionedConcurrency", 6, "6 exceeds MaxConcurrency 5"),
    ("SEA797", serverless, f"{MODEL}.PrimaryContainer.Image", IMAGE, "is for GPUs, and a serverless variant has none"),
    ("SEA797", real_time, f"{VARIANT}.InstanceType", "ml.m5.xlarge", "is for GPUs, and ml.m5.xlarge has none"),
    ("SEA798", single, f"{TARGET}.ResourceId", {"Fn::Sub": "endpoint/${Endpoint.EndpointName}/variant/v-1"}, "no vari"),
    ("SEA798", single, f"{TARGET}.ResourceId", {"Fn::Sub": "endpoint/${Endpoint}/variant/AllTraffic"}, "is its ARN"),
    (
        "SEA798",
        single,
        f"{ALARM}.Dimensions",
        [{"Name": "EndpointName", "Value": "batch"}, {"Name": "VariantName", "Value": "Blue"}],
        "Endpoint has no variant Blue; it has AllTraffic",
    ),
    ("SEA798", single, f"{ALARM}.Dimensions.0.Value", {"Ref": "Endpoint"}, "Ref of Endpoint is its ARN"),
    ("SEA798", components, f"{ALARM}.Dimensions.0.Value", {"Ref": "Component"}, "Ref of Component is its ARN"),
    ("SEA799", single, f"{ALARM}.Namespace", "/aws/sagemaker/Endpoints", "has no metric HasBacklogWithoutCapacity"),
    ("SEA799", single, f"{ALARM}.Namespace", "AWS/Sagemaker", "AWS/Sagemaker has no metric"),
    ("SEA799", single, f"{METRIC}.Namespace", "/aws/sagemaker/Endpoints", "has no metric ApproximateBacklogSizePerIn"),
    ("SEA800", single, "Wake", DELETE, "a queue of at most 5 requests adds no instance"),
    ("SEA800", single, f"{ALARM}.MetricName", "Invocations", "adds no instance"),
    ("SEA801", single, f"{ALARM}.Threshold", 2, "HasBacklogWithoutCapacity >= 2 is not raised"),
    ("SEA801", components, f"{ALARM}.Threshold", 1, "NoCapacityInvocationFailures > 1 is not raised by a single"),
    ("SEA801", components, f"{ALARM}.EvaluationPeriods", 2, "in 2 periods, and a single request is in one"),
    (
        "SEA802",
        single,
        f"{CONFIG}.AsyncInferenceConfig.OutputConfig.KmsKeyId",
        "arn:aws:kms:eu-west-1:1:key/a",
        "in eu",
    ),
    ("SEA802", single, f"{MODEL}.PrimaryContainer.ModelDataUrl", "s3://sagemaker-eu-west-1-1/m.tar.gz", "in eu-west-1"),
]


@pytest.mark.parametrize(
    ("rule", "of", "path", "value", "message"), WRONG, ids=[f"{row[0]}-{at}" for at, row in enumerate(WRONG)]
)
def test_one_wrong_value_is_told(rule: str, of: Callable[[], Template], path: str, value: object, message: str) -> None:
    document = changed(of(), path, value)
    if value == "ml.inf1.xlarge":
        changed(document, "Endpoint.Properties.DeploymentConfig", ROLLING)
    told = [each for each in found(document) if each.rule == rule]
    assert any(message in each.message for each in told), found(document)
    assert all(each.hint for each in told)


RIGHT: list[tuple[str, Callable[[], Template], str, object]] = [
    ("a serverless endpoint", serverless, f"{SIZE}.MemorySizeInMB", "1024"),
    ("a size from a parameter", serverless, f"{SIZE}.MemorySizeInMB", UNKNOWN),
    ("concurrency from a parameter", serverless, f"{SIZE}.MaxConcurrency", UNKNOWN),
    ("perhaps a VPC", serverless, f"{MODEL}.VpcConfig", EITHER),
    ("no isolation", serverless, f"{MODEL}.EnableNetworkIsolation", False),
    ("no isolation of the configuration", serverless, f"{CONFIG}.EnableNetworkIsolation", "false"),
    ("capture that is off", serverless, f"{CONFIG}.DataCaptureConfig", {"EnableCapture": False}),
    ("one container", serverless, f"{MODEL}.Containers", [{}]),
    ("an image from an import", serverless, f"{MODEL}.PrimaryContainer.Image", {"Fn::ImportValue": "image"}),
    ("perhaps serverless", real_time, SIZE, CHOSEN),
    ("captured in real time", real_time, f"{CONFIG}.DataCaptureConfig", {"DestinationS3Uri": "s3://a/b/"}),
    ("isolated in real time", real_time, f"{MODEL}.EnableNetworkIsolation", True),
    ("scaled instances", on_components, f"{VARIANT}.InstanceType", "ml.m6i.large"),
    ("a type from a parameter", on_components, f"{VARIANT}.InstanceType", UNKNOWN),
    ("a variant from a parameter", single, f"{VARIANT}.VariantName", UNKNOWN),
    ("an endpoint of another stack", single, f"{TARGET}.ResourceId", "endpoint/other/variant/Blue"),
    ("an alarm of another endpoint", single, f"{ALARM}.Dimensions.0.Value", "other"),
    ("a named endpoint", single, f"{ALARM}.Dimensions.0.Value", {"Fn::GetAtt": ["Endpoint", "EndpointName"]}),
    ("a namespace from a parameter", single, f"{ALARM}.Namespace", UNKNOWN),
    ("the total queue", single, f"{ALARM}.MetricName", "ApproximateBacklogSize"),
    ("an alarm from a parameter", single, f"{ALARM}.MetricName", UNKNOWN),
    ("a threshold from a parameter", components, f"{ALARM}.Threshold", UNKNOWN),
    ("a threshold below one", components, f"{ALARM}.Threshold", 0.5),
    (
        "a key of the Region",
        single,
        f"{CONFIG}.AsyncInferenceConfig.OutputConfig.KmsKeyId",
        "arn:aws:kms:us-east-1:1:k",
    ),
    ("a bucket that only looks so", single, f"{MODEL}.PrimaryContainer.ModelDataUrl", "s3://eu-west-1-mine/m.tar.gz"),
    ("minimum one", single, f"{TARGET}.MinCapacity", 1),
]


@pytest.mark.parametrize(("of", "path", "value"), [row[1:] for row in RIGHT], ids=[row[0] for row in RIGHT])
def test_what_is_right_or_known_at_deployment_only_is_not_told(
    of: Callable[[], Template], path: str, value: object
) -> None:
    kinds = {f"SEA{number}" for number in range(795, 803)}
    document = changed(of(), path, value)
    if of is on_components:
        changed(document, f"{MODEL}.PrimaryContainer.Image", "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:3")
    assert [each for each in found(document) if each.rule in kinds] == []


def test_a_serverless_endpoint_breaks_no_rule_and_needs_no_ami() -> None:
    """`SEA726` asked for an AMI, which a serverless variant can't have."""
    assert found(serverless()) == ()
    gpu = changed(serverless(), f"{MODEL}.PrimaryContainer.Image", IMAGE)
    assert {each.rule for each in found(gpu)} == {"SEA797"}


def test_a_serverless_endpoint_has_one_variant() -> None:
    variants = [{"VariantName": name, "ServerlessConfig": {"MemorySizeInMB": 1024}} for name in "ab"]
    (finding,) = (
        each for each in found(changed(serverless(), f"{CONFIG}.ProductionVariants", variants)) if each.rule == "SEA795"
    )
    assert finding.message == "a serverless variant takes at most 1 of ProductionVariants, not 2"


def test_weights_by_a_data_source_of_a_serverless_model_are_noted() -> None:
    source = {"S3DataSource": {"S3Uri": "s3://weights/chat/", "S3DataType": "S3Prefix"}}
    (finding,) = found(changed(serverless(), f"{MODEL}.PrimaryContainer.ModelDataSource", source))
    assert (finding.rule, finding.severity) == ("SEA795", "note")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (scaled("sagemaker:variant:DesiredInstanceCount"), 1),
        (scaled("sagemaker:variant:DesiredProvisionedConcurrency"), 0),
        (scaled("sagemaker:variant:DesiredProvisionedConcurrency", real_time), 1),
        (scaled("sagemaker:variant:DesiredInstanceCount", real_time), 0),
    ],
)
def test_a_scalable_dimension_is_one_of_the_variants_kind(document: Template, told: int) -> None:
    assert [each.rule for each in found(document) if each.rule == "SEA795"] == ["SEA795"] * told


def test_a_target_value_below_one_wakes_for_a_single_request() -> None:
    document = changed(changed(single(), "Wake", DELETE), f"{TRACKING}.TargetValue", 0.5)
    assert "SEA800" not in {each.rule for each in found(document)}


VLLM = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.20.2-gpu-py312-cu130-ubuntu22.04-sagemaker-v1.0"
LOADING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"


@pytest.mark.parametrize(
    ("image", "environment", "told"),
    [
        (VLLM, {}, f"{LOADING} is not set"),
        (VLLM, {LOADING: "false"}, f"{LOADING} is not set"),
        (VLLM.replace("/vllm:", "/huggingface-pytorch-tgi-inference:"), {}, "has no POST /adapters"),
        (VLLM, {LOADING: "true"}, ""),
        (VLLM, {LOADING: {"Ref": "Parameter"}}, ""),
        (VLLM, {"Fn::If": ["A", {LOADING: "true"}, {}]}, ""),
        (IMAGE, {}, ""),
        ({"Ref": "Image"}, {}, ""),
    ],
)
def test_an_adapter_needs_a_base_that_loads_it(image: JsonValue, environment: JsonValue, told: str) -> None:
    document = changed(components(), f"{MODEL}.PrimaryContainer.Image", image)
    changed(document, f"{MODEL}.PrimaryContainer.Environment", environment)
    base: JsonValue = {"Fn::GetAtt": ["Component", "InferenceComponentName"]}
    adapter: JsonValue = {"BaseInferenceComponentName": base, "Container": {"ArtifactUrl": "s3://a/b.tar.gz"}}
    properties: JsonValue = {"EndpointName": {"Ref": "Name"}, "Specification": adapter}
    changed(document, "Adapter", {"Type": "AWS::SageMaker::InferenceComponent", "Properties": properties})
    messages = [each.message for each in found(document) if each.rule == "SEA803"]
    assert [told in each for each in messages] == [True] * bool(told)


def test_every_row_of_the_tables_has_a_source_and_the_rule_a_severity() -> None:
    used = {row.source for row in EXCLUSIONS.rows} | {row.source for row in METRICS.rows}
    assert used == {row.id for row in SOURCES.rows}
    assert RULES["SEA795"].severity == "error"
