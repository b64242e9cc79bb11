from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from seatrial_base.catalog import service_authorization
from seatrial_base.catalog.service_authorization import patterns_overlap
from seatrial_base.findings import RULES, template_rules
from seatrial_lint.cloudformation import template as templates
from seatrial_lint.cloudformation.template import template_of
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from tests.template_rules.sample import DELETE, IMAGE, changed, components, found, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from seatrial_base.findings import Finding

VARIANT = "Config.Properties.ProductionVariants.0"
SPECIFICATION = "Component.Properties.Specification"
ROLLING = "Component.Properties.DeploymentConfig.RollingUpdatePolicy"
CONTAINER = "Model.Properties.PrimaryContainer"
OWN = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
TRACKING = "Tracking.Properties.TargetTrackingScalingPolicyConfiguration"
PARAMETER = {"Ref": "Parameter"}
NO_VALUE = {"Ref": "AWS::NoValue"}
TYPE_OF = "PredefinedMetricSpecification.PredefinedMetricType"
POOLS = [{"InstanceType": f"ml.x{number}.xlarge", "Priority": number} for number in range(1, 7)]
ALARMS = [{"AlarmName": f"{number}"} for number in range(11)]

ON_COMPONENTS: list[tuple[str, str, object, str]] = [
    ("SEA388", f"{CONTAINER}.Image", "registry.acme.example/chat:1", "pulls no image from registry.acme.example"),
    ("SEA389", f"{CONTAINER}.Image", IMAGE.replace("us-east-1", "us-west-2"), "in us-west-2, and the model in us-east"),
    ("SEA389", f"{CONTAINER}.Image", IMAGE.replace("763104351884", "763104330519"), "in account 763104351884, not in"),
    ("SEA390", f"{CONTAINER}.Image", IMAGE.replace("36.0-lmi27.0.0-cu130", "27.0-lmi10-cu124"), "is of DJL 0.28.0"),
    ("SEA391", f"{CONTAINER}.Image", f"{OWN}/text-generation-inference:1.0.1", "text-generation-launcher"),
    ("SEA393", f"{CONTAINER}.ModelDataSource.S3DataSource.S3Uri", "s3://weights/model.tar.gz", "is not unpacked"),
    ("SEA393", f"{CONTAINER}.ModelDataUrl", "s3://weights/chat/", "is no archive"),
    ("SEA394", f"{CONTAINER}.Environment.HF_MODEL_ID", "Qwen/Qwen3-8B", "from the hub instead"),
    ("SEA701", "Model.Properties.ModelName", "chat", "chat is a fixed name"),
    ("SEA701", "Config.Properties.EndpointConfigName", {"Fn::Sub": "${AWS::StackName}-config"}, "${AWS::StackName}-co"),
    ("SEA702", "Config.Properties.ExecutionRoleArn", DELETE, "ExecutionRoleArn is missing"),
    ("SEA704", f"{VARIANT}.InstanceType", DELETE, "neither InstanceType nor InstancePools"),
    (
        "SEA707",
        f"{VARIANT}.ManagedInstanceScaling.MinInstanceCount",
        3,
        "MinInstanceCount 3 exceeds MaxInstanceCount 2",
    ),
    ("SEA707", "Target.Properties.MinCapacity", 3, "MinCapacity 3 exceeds MaxCapacity 2"),
    ("SEA708", f"{VARIANT}.InstancePools", [], "0 instance pools are outside 1 to 5"),
    ("SEA708", f"{VARIANT}.InstancePools", POOLS, "6 instance pools are outside 1 to 5"),
    ("SEA708", f"{VARIANT}.InstancePools", [POOLS[0], POOLS[0]], "two instance pools have Priority 1"),
    ("SEA709", f"{VARIANT}.RoutingConfig.RoutingStrategy", "PREFIX_AWARE", "requires PrefixAwareRoutingConfig"),
    ("SEA709", f"{VARIANT}.RoutingConfig.PrefixAwareRoutingConfig", {"PrefixLength": 1024}, "LEAST_OUTSTANDING"),
    (
        "SEA709",
        f"{VARIANT}.RoutingConfig",
        {
            "RoutingStrategy": "PREFIX_AWARE",
            "PrefixAwareRoutingConfig": {"PrefixLength": 1023, "ConcurrencyThreshold": 1},
        },
        "PrefixLength 1023 is outside 1024 to 65536",
    ),
    ("SEA710", f"{VARIANT}.ContainerStartupHealthCheckTimeoutInSeconds", 3601, "3601 s is outside 60 s to 3600 s"),
    ("SEA710", f"{VARIANT}.VariantInstanceProvisionTimeoutInSeconds", "299", "299 s is outside 300 s to 3600 s"),
    ("SEA710", f"{SPECIFICATION}.StartupParameters.ModelDataDownloadTimeoutInSeconds", 59, "59 s is outside"),
    ("SEA726", f"{VARIANT}.InferenceAmiVersion", DELETE, "needs CUDA 13.0, and no InferenceAmiVersion is chosen"),
    ("SEA711", f"{VARIANT}.InferenceAmiVersion", "al2-ami-sagemaker-inference-gpu-3-1", "newer than al2-ami-sagem"),
    ("SEA712", f"{VARIANT}.VolumeSizeInGB", 100, "ml.g6e.12xlarge has local NVMe disks"),
    ("SEA712", "Config.Properties.KmsKeyId", PARAMETER, "KmsKeyId is set"),
    ("SEA713", "Config.Properties.AsyncInferenceConfig", {"OutputConfig": {}}, "can't name an inference component"),
    ("SEA714", "Config.Properties.ShadowProductionVariants", [{"VariantName": "s", "ModelName": "m"}], "no ModelName"),
    ("SEA715", f"{CONTAINER}.ModelDataSource.S3DataSource.S3Uri", "s3://weights/chat", "does not end in a slash"),
    ("SEA716", f"{CONTAINER}.Environment.HF_MODEL_ID", "meta-llama/Llama-3.1-8B", "would download meta-llama/Llama"),
    ("SEA717", f"{CONTAINER}.Environment.HF_TOKEN", "hf_abcdefghij0123456789", "a secret is in plain text"),
    ("SEA718", f"{CONTAINER}.ModelDataSource.S3DataSource.S3Uri", "s3://jumpstart-private-cache-x/m/", "are gated"),
    ("SEA718", f"{CONTAINER}.ModelDataSource.S3DataSource.ModelAccessConfig.AcceptEula", False, "AcceptEula is false"),
    ("SEA719", f"{CONTAINER}.Environment.OPTION", "x" * 1025, "1025 characters of name or value exceed 1024"),
    ("SEA719", f"{CONTAINER}.Environment", {f"A{number}": "1" for number in range(101)}, "101 environment variables"),
    ("SEA720", "Component.Properties.DeploymentConfig.BlueGreenUpdatePolicy", {"A": 1}, "has both RollingUpdatePolicy"),
    ("SEA721", f"{ROLLING}.MaximumBatchSize.Value", 51, "a batch of 51 % is outside 5 % to 50 %"),
    ("SEA721", f"{ROLLING}.MaximumBatchSize.Value", 4, "a batch of 4 % is outside 5 % to 50 %"),
    ("SEA722", f"{ROLLING}.WaitIntervalInSeconds", DELETE, "has no WaitIntervalInSeconds"),
    ("SEA723", "Component.Properties.DeploymentConfig.AutoRollbackConfiguration.Alarms", ALARMS, "11 alarms exceed 10"),
    ("SEA723", "Component.Properties.DeploymentConfig.AutoRollbackConfiguration.Alarms", [], "has no alarm"),
    ("SEA730", "Component.Properties.RuntimeConfig.CopyCount", 0, "can't be created with CopyCount 0"),
    ("SEA731", "Component.DependsOn", DELETE, "does not wait for its endpoint Endpoint"),
    ("SEA732", f"{SPECIFICATION}.ComputeResourceRequirements.NumberOfCpuCoresRequired", 49, "exceeds the 48 vCPUs"),
    (
        "SEA733",
        f"{SPECIFICATION}.ComputeResourceRequirements.MinMemoryRequiredInMb",
        393217,
        "need 786434 MiB of memory; 2 x ml.g6e.12xlarge have 786432",
    ),
    ("SEA733", "Component.Properties.RuntimeConfig.CopyCount", 3, "need 12 accelerators; 2 x ml.g6e.12xlarge have 8"),
    ("SEA735", "Endpoint.Properties.EndpointName", "c" * 64, "has 64 characters, more than 63"),
    ("SEA735", "Component.Properties.InferenceComponentName", "chat_model", "has other characters than letters"),
    (
        "SEA737",
        f"{SPECIFICATION}.ComputeResourceRequirements.MinMemoryRequiredInMb",
        DELETE,
        "no MinMemoryRequiredInMb",
    ),
    ("SEA737", f"{SPECIFICATION}.BaseInferenceComponentName", "base", "an adapter uses the resources of its base"),
    ("SEA738", "Component.Properties.VariantName", "Blue", "no variant Blue; it has AllTraffic"),
    ("SEA740", "Target.Properties.ScalableDimension", "sagemaker:variant:DesiredInstanceCount", "does not match"),
    ("SEA740", "Target.Properties.ScalableDimension", "sagemaker:variant:Copies", "is no scalable dimension"),
    ("SEA740", "Target.Properties.ServiceNamespace", "ecs", "ServiceNamespace ecs does not match"),
    ("SEA741", f"{TRACKING}.{TYPE_OF}", "SageMakerVariantInvocationsPerInstance", "does not belong to sagemaker:inf"),
    ("SEA743", f"{TRACKING}.ScaleInCooldown", DELETE, "ScaleInCooldown missing"),
    ("SEA744", "WakeAlarm.Properties.AlarmActions", DELETE, "no alarm of these templates starts"),
    ("SEA745", "WakeAlarm.Properties.MetricName", "Invocations", "nothing adds a copy"),
    ("SEA745", "Wake", DELETE, "nothing adds a copy"),
    ("SEA746", f"{VARIANT}.ManagedInstanceScaling.MinInstanceCount", 1, "the instances are billed without a copy"),
    ("SEA746", f"{VARIANT}.RoutingConfig.RoutingStrategy", "RANDOM", "RoutingStrategy is RANDOM"),
    ("SEA748", "Target.Properties.ResourceId", "inference-component/chat-model", "does not wait for Component"),
]

ON_SINGLE: list[tuple[str, str, object, str]] = [
    ("SEA704", f"{VARIANT}.InitialInstanceCount", DELETE, "neither InitialInstanceCount nor ManagedInstanceScaling"),
    ("SEA704", f"{VARIANT}.InitialInstanceCount", "0", "InitialInstanceCount is 0, and the API takes 1 or more"),
    ("SEA705", f"{VARIANT}.ManagedInstanceScaling", {"MinInstanceCount": 1}, "the variant has a ModelName"),
    (
        "SEA714",
        "Config.Properties.ShadowProductionVariants",
        [
            {"VariantName": name, "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
            for name in "ab"
        ],
        "2 shadow variants for 1 production variants",
    ),
    ("SEA724", "Endpoint.Properties.RetainAllVariantProperties", DELETE, "sets it back to InitialInstanceCount"),
    ("SEA747", "Config.Properties.AsyncInferenceConfig", DELETE, "keeps at least 1 instance"),
    (
        "SEA749",
        f"{TRACKING}.CustomizedMetricSpecification.Dimensions",
        [{"Name": "EndpointName"}, {"Name": "VariantName"}],
        "has the dimension EndpointName alone, not EndpointName, VariantName",
    ),
    ("SEA749", f"{TRACKING}.CustomizedMetricSpecification.MetricName", "Invocations", "scaled on Invocations"),
    (
        "SEA725",
        "Endpoint.Properties.DeploymentConfig.BlueGreenUpdatePolicy.TrafficRoutingConfiguration",
        {"Type": "LINEAR", "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 9}},
        "LinearStepSize 9 % is outside 10 % to 50 %",
    ),
    (
        "SEA725",
        "Endpoint.Properties.DeploymentConfig.BlueGreenUpdatePolicy.TrafficRoutingConfiguration",
        {"Type": "CANARY"},
        "Type CANARY requires CanarySize",
    ),
]


def test_several_variants_are_not_updated_in_batches() -> None:
    policy = {"MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50}, "WaitIntervalInSeconds": 60}
    one = changed(single(), "Endpoint.Properties.DeploymentConfig", {"RollingUpdatePolicy": policy})
    assert "SEA727" not in {each.rule for each in found(one)}
    variant = {"ModelName": "other", "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 1}
    two = changed(one, "Config.Properties.ProductionVariants", [{**variant, "VariantName": name} for name in "ab"])
    (finding,) = (each for each in found(two) if each.rule == "SEA727")
    assert finding.place.field == "Properties.DeploymentConfig.RollingUpdatePolicy"


def test_the_samples_break_no_rule() -> None:
    assert found(components(), single()) == ()


@pytest.mark.parametrize(
    ("sample", "rule", "path", "value", "message"),
    [(components, *row) for row in ON_COMPONENTS] + [(single, *row) for row in ON_SINGLE],
    ids=[f"{rule}-{number}" for number, (rule, *_) in enumerate(ON_COMPONENTS + ON_SINGLE)],
)
def test_one_wrong_value_is_found(
    sample: Callable[[], dict[str, JsonValue]], rule: str, path: str, value: object, message: str
) -> None:
    findings = found(changed(sample(), path, value))
    told = [each for each in findings if each.rule == rule]
    assert [message in each.message for each in told].count(True) >= 1
    assert all(each.hint and each.severity == RULES[rule].severity for each in told)
    assert {each.rule for each in findings} <= {rule, *ALONG.get(path, ())}


ALONG = {  # what the same value breaks beside
    f"{SPECIFICATION}.ComputeResourceRequirements.NumberOfCpuCoresRequired": {"SEA733"},
    f"{SPECIFICATION}.ComputeResourceRequirements.MinMemoryRequiredInMb": {"SEA732"},
    f"{CONTAINER}.Environment.HF_MODEL_ID": {"SEA394", "SEA716"},
    f"{CONTAINER}.ModelDataSource.S3DataSource.S3Uri": {"SEA715"},
    f"{VARIANT}.ManagedInstanceScaling.MinInstanceCount": {"SEA746"},
    f"{VARIANT}.InstancePools": {"SEA708"},
    f"{VARIANT}.ManagedInstanceScaling": {"SEA705"},
    f"{SPECIFICATION}.BaseInferenceComponentName": {"SEA737"},
    "Target.Properties.ScalableDimension": {"SEA741", "SEA743"},
    "WakeAlarm.Properties.AlarmActions": {"SEA745"},
    "Endpoint.Properties.EndpointName": {"SEA748"},
    "Config.Properties.ShadowProductionVariants": {"SEA704", "SEA795"},
    "Config.Properties.AsyncInferenceConfig": {"SEA747"},
}


@pytest.mark.parametrize("path", sorted({row[1] for row in ON_COMPONENTS if row[2] is not DELETE}))
def test_what_only_the_deployment_knows_breaks_no_rule(path: str) -> None:
    known = {"SEA712", "SEA713"}  # there at all is too much
    findings = [each for each in found(changed(components(), path, PARAMETER)) if each.rule not in known]
    allowed = {
        "Component.Properties.DeploymentConfig.BlueGreenUpdatePolicy",
        f"{SPECIFICATION}.BaseInferenceComponentName",  # an adapter with requirements, whatever its base is
        f"{VARIANT}.RoutingConfig.PrefixAwareRoutingConfig",  # beside another strategy, whatever it says
    }
    assert path in allowed or findings == []
    # What a condition may leave out may not be there at all.
    assert found(changed(components(), path, {"Fn::If": ["Large", PARAMETER, NO_VALUE]})) == ()


@pytest.mark.parametrize("sample", [components, single])
def test_a_variant_that_a_condition_chooses_breaks_no_rule(sample: Callable[[], dict[str, JsonValue]]) -> None:
    variant = template_of(sample(), name="a").resources["Config"].at("ProductionVariants").items[0].raw
    for other in (variant, NO_VALUE):
        chosen = [{"Fn::If": ["Large", variant, other]}]
        document = changed(sample(), "Config.Properties.ProductionVariants", chosen)
        assert found(document) == ()
        changed(document, "Config.Properties.AsyncInferenceConfig", {"OutputConfig": {"S3OutputPath": "s3://a/b"}})
        assert "SEA713" not in {each.rule for each in found(document)}
    model = {"Fn::If": ["Large", {"Fn::GetAtt": ["Model", "ModelName"]}, NO_VALUE]}
    assert found(changed(sample(), f"{VARIANT}.ModelName", model)) == ()


STARTS = json.loads(Path(__file__).with_name("starts.json").read_text(encoding="utf-8"))


def hosted(sample: str, image: object, environment: object, kind: object, more: dict[str, object]) -> list[Finding]:
    document = changed(components() if sample == "component" else single(), f"{VARIANT}.InstanceType", kind)
    changed(document, CONTAINER, {"Image": image, "Environment": environment})
    for path, value in more.items():
        changed(document, path, DELETE if value is None else value)
    return [each for each in found(document) if each.rule.startswith("SEA25")]


@pytest.mark.parametrize("sample", ["component", "single"])
@pytest.mark.parametrize(("image", "environment", "kind", "rules"), STARTS["alike"])
def test_what_an_engine_can_not_start_is_told_as_lint_tells_it(
    sample: str, image: object, environment: object, kind: object, rules: list[str]
) -> None:
    told = hosted(sample, image, environment, kind, {})
    assert [each.rule for each in told] == rules
    given = Given(instance_type=kind if isinstance(kind, str) else None)
    document = json.dumps({"PrimaryContainer": {"Image": image, "Environment": environment}})
    findings = lint_sources(read_content(document.encode(), "model.json"), given).findings
    linted = {(one.rule, one.message, one.hint, one.severity) for one in findings}
    for each in told:
        assert (each.rule, each.message, each.hint, each.severity) in linted
        assert each.place.resource == ("Config" if each.rule == "SEA257" else "Model")
        last = {"SEA254": "TENSOR_PARALLEL_SIZE", "SEA257": "InstanceType"}.get(each.rule, "MODEL")
        assert last in each.place.field.rpartition(".")[2]


@pytest.mark.parametrize(("sample", "environment", "more", "count"), STARTS["once"])
def test_a_container_is_judged_once_on_the_accelerators_that_it_sees(
    sample: str, environment: object, more: dict[str, object], count: int
) -> None:
    image = IMAGE.replace("36.0-lmi27.0.0-cu130", "36.0-lmi20.0.0-cu128")
    assert [each.rule for each in hosted(sample, image, environment, "ml.p5.48xlarge", more)] == ["SEA254"] * count


def test_components_and_models_exclude_each_other_on_a_variant() -> None:
    both = changed(components(), f"{VARIANT}.ModelName", {"Fn::GetAtt": ["Model", "ModelName"]})
    assert {"SEA703", "SEA705"} == {each.rule for each in found(both)}


def test_zero_instances_and_regions_are_warned_of_where_they_were_refused_or_are_not_listed() -> None:
    assert [each.rule for each in found(components(), region="eu-west-3")] == ["SEA736", "SEA706", "SEA389"]
    assert found(components(), region=None) == ()


def test_two_components_of_a_template_share_no_name_and_no_more_than_the_instances() -> None:
    document = components()
    second = components()["Resources"]["Component"]  # type: ignore[index,call-overload]
    findings = found(changed(document, "Second", second))
    assert [each.rule for each in findings] == ["SEA734", "SEA733"]
    assert findings[1].message == "the copies of Component, Second need 16 accelerators; 2 x ml.g6e.12xlarge have 8"


def test_a_batch_of_copies_is_held_against_their_number_where_nothing_scales_them() -> None:
    fixed = changed(components(), "Target", DELETE)
    for name in ("Tracking", "Wake", "WakeAlarm"):
        changed(fixed, name, DELETE)
    changed(fixed, f"{ROLLING}.MaximumBatchSize", {"Type": "COPY_COUNT", "Value": 2})
    assert [each.message for each in found(fixed)] == ["a batch of 2 of 2 is outside 5 % to 50 %"]
    assert found(changed(fixed, f"{ROLLING}.MaximumBatchSize.Value", 1)) == ()
    one = changed(fixed, "Component.Properties.RuntimeConfig.CopyCount", 1)
    assert found(one) == ()


def test_variants_of_components_are_not_scaled_by_instances() -> None:
    document = changed(single(), f"{VARIANT}.ModelName", DELETE)
    changed(document, "Config.Properties.AsyncInferenceConfig", DELETE)
    rules = {each.rule for each in found(document)}
    assert {"SEA702", "SEA742", "SEA747"} == rules


def test_an_import_leads_to_the_other_template() -> None:
    network = {
        "Resources": {},
        "Outputs": {"Name": {"Value": {"Fn::GetAtt": ["Config", "X"]}, "Export": {"Name": "config-name"}}},
    }
    first, second = components(), components()
    network["Resources"] = {"Config": first["Resources"]["Config"]}  # type: ignore[index,call-overload,dict-item]
    changed(second, "Config", DELETE)
    changed(second, "Endpoint.Properties.EndpointConfigName", {"Fn::ImportValue": "config-name"})
    assert found(network, second) == ()  # type: ignore[arg-type]
    changed(second, "Component.Properties.VariantName", "Blue")
    assert [(each.place.file, each.rule) for each in found(network, second)] == [("1", "SEA738")]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "document",
    [
        {"Resources": {"C": {"Type": "AWS::SageMaker::EndpointConfig"}, "Fn::ForEach::Topics": []}},
        {"Resources": {"A": {"Type": "AWS::SageMaker::EndpointConfig", "Properties": {"ProductionVariants": "x"}}}},
        {"Resources": {"A": {"Type": "AWS::SageMaker::InferenceComponent", "Properties": {"Fn::Transform": {}}}}},
        {"Resources": {"A": {"Type": "AWS::SageMaker::Endpoint", "Properties": [], "DependsOn": {"A": 1}}}},
    ],
)
def test_properties_of_another_form_break_nothing(document: dict[str, JsonValue]) -> None:
    assert found(document) == ()


def test_every_rule_has_a_title_and_a_case() -> None:
    cases = {row[0] for row in ON_COMPONENTS + ON_SINGLE} | {"SEA703", "SEA706", "SEA727", "SEA734", "SEA736", "SEA742"}
    of_policies = {f"SEA78{number}" for number in range(7)}  # test_policies.py
    of_kinds = {f"SEA{number}" for number in range(789, 804)}  # test_kinds.py and test_roles.py
    of_engines = {"SEA254", "SEA255", "SEA256", "SEA257"}
    assert {rule.id for rule in template_rules()} == cases | of_policies | of_kinds | of_engines | {"SEA788"}


def role(*statements: dict[str, JsonValue]) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = {"Version": "2012-10-17", "Statement": [*statements]}
    policies: list[JsonValue] = [{"PolicyName": "p", "PolicyDocument": document}]
    return {"Resources": {"R": {"Type": "AWS::IAM::Role", "Properties": {"Policies": policies}}}}


ON_QUEUE: dict[str, JsonValue] = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:sqs:::q"}


def test_what_takes_too_many_comparisons_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each.rule for each in found(role(ON_QUEUE))] == ["SEA782"]
    monkeypatch.setattr(templates, "MOST_STEPS", 1)
    (left_out,) = found(role(ON_QUEUE))
    assert (left_out.rule, left_out.severity, left_out.place.line) == ("SEA788", "warning", 0)


def test_of_one_rule_a_hundred_findings_are_told_and_the_rest_is_counted() -> None:
    told = [each for each in found(role(*([ON_QUEUE] * 150))) if each.rule != "SEA784"]
    assert [each.rule for each in told] == ["SEA782"] * 101
    assert told[-1].message == "50 more findings of this rule in this file are not listed"


@pytest.mark.parametrize(
    ("statement", "comparisons"),
    [
        (lambda n: {"Action": ["s3:*"], "Resource": [f"arn:aws:s3:::b{at}" for at in range(n)]}, 30),
        (
            lambda n: {
                "Action": [f"s3:Get{'?' * at}*" for at in range(n)],
                "Resource": [f"arn:aws:s3:::b{at}" for at in range(n)],
                "Condition": {"StringEquals": {f"s3:k{at}": "a" for at in range(n)}},
            },
            70,
        ),
    ],
)
def test_comparisons_grow_with_a_statement_and_not_with_its_square(
    statement: Callable[[int], dict[str, JsonValue]], comparisons: int
) -> None:
    counts = []
    for n in (20, 40):
        template = role({"Effect": "Allow", **statement(n)})
        with patch(f"{service_authorization.__name__}.patterns_overlap", wraps=patterns_overlap) as overlap:
            found(template)
        counts.append(overlap.call_count)
    assert counts[1] <= 2.2 * counts[0]
    assert counts[1] <= comparisons * 40


def test_the_region_of_the_images_is_that_of_the_policies_where_nobody_says_it() -> None:
    def with_arn(region: str) -> tuple[str, ...]:
        arn = f"arn:aws:ecr:{region}:763104351884:repository/djl-inference"
        statement = {"Effect": "Allow", "Action": "ecr:BatchGetImage", "Resource": arn}
        policy = {"PolicyName": "p", "PolicyDocument": {"Statement": [statement]}}
        role = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [policy]}}
        document = changed(components(), "Role", role)
        return tuple(one.message for one in found(document, region=None) if one.rule == "SEA389")

    assert with_arn("us-east-1") == ()
    assert len(with_arn("eu-west-1")) == 1
