"""What a kind of endpoint excludes, and names and figures within a template that must agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from seatrial_base.catalog.hosting_kinds import EXCLUSIONS, METRICS, hosting_texts
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
TRACKING = "Tracking.Properties.TargetTrackingScalingPolicyConfiguration"
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


CASES = json.loads(Path(__file__).with_name("kinds.json").read_text("utf-8"))
SAMPLES = {each.__name__: each for each in (components, on_components, real_time, serverless, single)}


def of_case(of: str, path: str, value: JsonValue) -> Template:
    return changed(SAMPLES[of](), path, DELETE if value == "DELETE" else value)


@pytest.mark.parametrize(("rule", "of", "path", "value", "message"), CASES["wrong"])
def test_one_wrong_value_is_told(rule: str, of: str, path: str, value: JsonValue, message: str) -> None:
    document = of_case(of, path, value)
    if value == "ml.inf1.xlarge":
        changed(document, "Endpoint.Properties.DeploymentConfig", ROLLING)
    told = [each for each in found(document) if each.rule == rule]
    assert any(message in each.message for each in told), found(document)
    assert all(each.hint for each in told)


@pytest.mark.parametrize(("case", "of", "path", "value"), CASES["right"])
def test_what_is_right_or_known_at_deployment_only_is_not_told(case: str, of: str, path: str, value: JsonValue) -> None:
    kinds = {f"SEA{number}" for number in range(795, 803)}
    document = of_case(of, path, value)
    if of == "on_components":
        changed(document, f"{MODEL}.PrimaryContainer.Image", "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:3")
    assert [each for each in found(document) if each.rule in kinds] == [], case


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
    assert finding.source.endswith("API_ContainerDefinition.html")


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


@pytest.mark.parametrize(("image", "environment", "told"), CASES["adapters"])
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
    assert used == set(hosting_texts("sources"))
    assert RULES["SEA795"].severity == "error"
