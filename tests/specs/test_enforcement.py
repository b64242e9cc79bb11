"""Guard rails beyond Seatrial: rules of CloudFormation Guard held against templates, denials of IAM, and waivers."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.locks.guard_rails import waiver_findings
from seatrial.operations.review.changes import loosened_rails
from seatrial.specs.environment import EnvironmentSpec, unmatched_waivers
from seatrial.specs.guardrails.enforcement import BY_IAM, ENFORCED, NOT_IN_TEMPLATES, guard_rules, iam_denials
from seatrial.specs.guardrails.limits import NO_RAILS, GuardRails
from seatrial.specs.load import load_spec
from seatrial_base.catalog.service_authorization import action_facts
from seatrial_base.errors import SpecError
from seatrial_cdk.trials.trials_stack import TrialsStack
from tests.policy_findings import HAS_GUARD, broken_rails

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec
    from tests.specs.conftest import Write

by_guard = pytest.mark.skipif(not HAS_GUARD, reason="cfn-guard-rs has no wheel here")
Changes = dict[str, dict[str, Any]]
COMMIT, SUBNET, GROUP = "4f2b1e0c" * 5, "subnet-0a1b2c3d", "sg-0a1b2c3d"
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.20.2-gpu-py312"
SSM = "EnableSSMAccess"
TAGS = [
    {"Key": "seatrial:environment", "Value": "dev"},
    {"Key": "team", "Value": "search"},
    {"Key": "stage", "Value": "dev"},
]
VPC = {"Subnets": [SUBNET], "SecurityGroupIds": [GROUP]}
RESOURCES: Changes = {
    "Config": {
        "Type": "AWS::SageMaker::EndpointConfig",
        "Properties": {
            "ProductionVariants": [{"InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 1, SSM: False}],
            "DataCaptureConfig": {"DestinationS3Uri": "s3://ours/captures/"},
            "KmsKeyId": KEY,
            "VpcConfig": VPC,
            "Tags": TAGS,
        },
    },
    "Model": {
        "Type": "AWS::SageMaker::Model",
        "Properties": {
            "EnableNetworkIsolation": True,
            "PrimaryContainer": {
                "Image": IMAGE,
                "Environment": {
                    "SM_VLLM_MODEL": "mistralai/Mistral-7B-v0.1",
                    "SM_VLLM_REVISION": COMMIT,
                    "HF_TOKEN": "{{resolve:secretsmanager:hub/token:SecretString:::}}",
                },
            },
            "VpcConfig": VPC,
            "Tags": TAGS,
        },
    },
    "Component": {
        "Type": "AWS::SageMaker::InferenceComponent",
        "Properties": {"RuntimeConfig": {"CopyCount": 1}, "Tags": TAGS},
    },
    "Endpoint": {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointName": "dev-chat", "Tags": TAGS}},
    "Target": {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Properties": {"MaxCapacity": 2, "ResourceId": "inference-component/dev-chat-model"},
    },
}
RAILS: dict[str, Any] = {
    "instance_types": ["ml.g5.2xlarge"],
    "max_copies": 2,
    "models": ["mistralai/*", "s3://ours/*"],
    "revisions": "pinned",
    "remote_code": "refused",
    "engines": ["vllm"],
    "router": "refused",
    "output_targets": ["s3://ours/*"],
    "hub_token_secrets": ["hub/*"],
    "required_tags": ["team"],
    "tag_values": {"stage": ["dev", "test-*"]},
}
PLACE: dict[str, Any] = {
    "account": "123456789012",
    "network": {"subnet_ids": [SUBNET], "security_group_ids": [GROUP], "isolated": True},
    "kms_key_arn": KEY,
}
FUNCTION = {"Fn::GetAtt": ["Function", "Arn"]}


def environment(rails: Mapping[str, Any] = RAILS, **fields: object) -> EnvironmentSpec:
    document = {"name": "dev", "region": "us-east-1", "guard_rails": rails, **fields}
    return EnvironmentSpec.model_validate_json(json.dumps(document))


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the template with another value at a path; a member that ends with `!` is removed."""
    resources: Any = deepcopy(RESOURCES)
    name, *parents = path.split("/")
    node = resources.setdefault(name, {"Type": "AWS::Lambda::Url", "Properties": {}})["Properties"]
    *parents, last = parents
    for parent in parents:
        node = node[int(parent)] if parent.isdigit() else node.setdefault(parent, {})
    if last.endswith("!"):
        del node[last[:-1]]
    else:
        node[last] = value
    return {"Resources": resources}


ENVIRONMENT = "Model/PrimaryContainer/Environment"
BROKEN: list[tuple[str, str, object]] = [
    ("instance_types", "Config/ProductionVariants/0/InstanceType", "ml.p4d.24xlarge"),
    ("instance_types", "Config/ShadowProductionVariants", [{"InstanceType": "ml.p4d.24xlarge"}]),
    ("instance_types", "Config/ProductionVariants/0/InstancePools", [{"InstanceType": "ml.p4d.24xlarge"}]),
    ("max_copies", "Component/RuntimeConfig/CopyCount", 3),
    ("max_copies", "Target/MaxCapacity", 3),
    ("max_copies", "Target/MaxCapacity", "3"),
    ("max_copies", "Config/ProductionVariants/0/InitialInstanceCount", 3),
    ("models", f"{ENVIRONMENT}/SM_VLLM_MODEL", "evil/model"),
    ("models", f"{ENVIRONMENT}/OPTION_MODEL_ID", "evil/model"),
    ("models", f"{ENVIRONMENT}/SM_VLLM_TOKENIZER", "evil/model"),
    ("models", f"{ENVIRONMENT}/SM_VLLM_LORA_MODULES", "sql=evil/model"),
    ("models", f"{ENVIRONMENT}/SM_VLLM_SPECULATIVE_CONFIG", '{"method": "eagle", "model": "evil/model"}'),
    ("models", f"{ENVIRONMENT}/SM_VLLM_WORKER_CLS", "evil.Worker"),
    ("models", f"{ENVIRONMENT}/SM_VLLM_SPECULATIVE_CONFIG", r'{"mod\u0065l": "evil/m"}'),
    ("models", f"{ENVIRONMENT}/SM_VLLM_SPECULATIVE_CONFIG", '{"model": ["evil/m"]}'),
    ("models", f"{ENVIRONMENT}/SM_VLLM_KV_TRANSFER_CONFIG", '{"kv_connector_module_path": "evil.mod"}'),
    ("models", f"{ENVIRONMENT}/SM_VLLM_MODEL", "/dev/shm/evil"),  # noqa: S108 (refused)
    ("models", "Model/PrimaryContainer/ModelDataUrl", f"s3://cdk-a-assets-210987654321-us-east-1/{COMMIT}.tar.gz"),
    ("models", "Model/PrimaryContainer/ModelDataUrl", "s3://theirs/model.tar.gz"),
    ("models", "Model/PrimaryContainer/ModelDataUrl", "s3://ours/../../theirs/model.tar.gz"),
    ("models", "Model/PrimaryContainer/ModelDataSource", {"S3DataSource": {"S3Uri": "s3://theirs/"}}),
    ("models", "Model/PrimaryContainer/ModelPackageName", "arn:aws:sagemaker:us-east-1:1:model-package/evil/1"),
    ("models", "Model/Containers", [{"Environment": {"HF_MODEL_ID": "evil/model", "HF_REVISION": COMMIT}}]),
    ("models", "Component/Specification/Container", {"ArtifactUrl": "s3://theirs/adapter.tar.gz"}),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_REVISION", "main"),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_REVISION!", None),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_TOKENIZER_REVISION", "main"),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_CODE_REVISION", "main"),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_TOKENIZER", "mistralai/tok"),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_LORA_MODULES", "sql=mistralai/lora"),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_LORA_MODULES", '[{"name": "a", "path": "mistralai/lora"}]'),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_SPECULATIVE_CONFIG", '{"model": "mistralai/eagle"}'),
    ("revisions", f"{ENVIRONMENT}/SM_VLLM_SPECULATIVE_CONFIG", '{"model": "mistralai/eagle", "revision": "main"}'),
    ("remote_code", f"{ENVIRONMENT}/SM_VLLM_TRUST_REMOTE_CODE", "true"),
    ("remote_code", f"{ENVIRONMENT}/SM_VLLM_TRUST_REMOTE_CODE", ""),
    ("images", "Model/PrimaryContainer/Image", "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0"),
    ("images", "Component/Specification/Container", {"Image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/x:1"}),
    ("router", "Url/TargetFunctionArn", "arn:aws:lambda:us-east-1:123456789012:function:seatrial-dev-chat-Router"),
    ("router", "Url/TargetFunctionArn", FUNCTION),
    ("ssm_access", f"Config/ProductionVariants/0/{SSM}", True),
    ("ssm_access", f"Config/ProductionVariants/0/{SSM}", "true"),
    ("output_targets", "Config/DataCaptureConfig/DestinationS3Uri", "s3://theirs/"),
    ("output_targets", "Config/AsyncInferenceConfig/OutputConfig", {"S3FailurePath": "s3://theirs/"}),
    ("output_targets", "Config/ProductionVariants/0/CoreDumpConfig", {"DestinationS3Uri": "s3://theirs/"}),
    ("hub_token_secrets", f"{ENVIRONMENT}/HF_TOKEN", "{{resolve:secretsmanager:prod/db:SecretString:::}}"),
    ("hub_token_secrets", f"{ENVIRONMENT}/HF_TOKEN", "hf_abc"),
    ("hub_token_secrets", f"{ENVIRONMENT}/HF_TOKEN", "{{resolve:ssm-secure:/prod/db}}"),
    ("hub_token_secrets", f"{ENVIRONMENT}/OTHER", "{{resolve:ssm-secure:/prod/db}}"),
    ("max_copies", "Config/ProductionVariants/0/ManagedInstanceScaling", {"MaxInstanceCount": 50}),
    ("max_copies", "Config/ProductionVariants/0/ServerlessConfig", {"MaxConcurrency": 200}),
    ("required_tags", "Model/Tags", TAGS[:1]),
    ("required_tags", "Config/Tags", [TAGS[0], {"Key": "team", "Value": " "}]),
    ("tag_values", "Config/Tags", [*TAGS[:2], {"Key": "stage", "Value": "finance"}]),
    ("network", "Model/EnableNetworkIsolation", False),
    ("network", "Model/VpcConfig!", None),
    ("network", "Model/VpcConfig", {**VPC, "Subnets": ["subnet-ffff"]}),
    ("network", "Config/VpcConfig", {**VPC, "SecurityGroupIds": ["sg-ffff"]}),
    ("kms_key_arn", "Config/KmsKeyId", "alias/aws/sagemaker"),
]
ALLOWED: list[tuple[str, object]] = [
    ("Config/ProductionVariants/0/InstanceType", {"Ref": "Type"}),
    ("Target/MaxCapacity", "2"),
    ("Component/RuntimeConfig/CopyCount", FUNCTION),
    ("Config/KmsKeyId!", None),
    (f"{ENVIRONMENT}/SM_VLLM_MODEL", "/opt/ml/model"),
    (f"{ENVIRONMENT}/SM_VLLM_SPECULATIVE_CONFIG", f'{{"model": "mistralai/eagle", "revision": "{COMMIT}"}}'),
    (f"{ENVIRONMENT}/SM_VLLM_LORA_MODULES", '[{"name": "a", "path": "/opt/ml/model/a"}]'),
    (f"{ENVIRONMENT}/SM_VLLM_TRUST_REMOTE_CODE", "false"),
    ("Config/Tags", [TAGS[0], {"Key": "team", "Value": {"Ref": "Team"}}]),
    ("Config/Tags", [*TAGS[:2], {"Key": "stage", "Value": "test-eu"}]),
    ("Url/TargetFunctionArn", "arn:aws:lambda:us-east-1:123456789012:function:a-website"),
    (
        "Model/PrimaryContainer/ModelDataUrl",
        f"s3://cdk-hnb659fds-assets-123456789012-us-east-1/{COMMIT}.tar.gz",
    ),
]


@by_guard
@pytest.mark.parametrize(("rail", "path", "value"), BROKEN, ids=str)
def test_a_template_that_breaks_a_rail_fails_its_rule_with_a_message_of_it(rail: str, path: str, value: object) -> None:
    rails = {**RAILS, "revisions": "pinned" if rail == "revisions" else "any"}
    broken = broken_rails(changed(path, value), guard_rules(environment(rails, **PLACE)))
    assert [*broken] == [rail]
    assert all(message.startswith(f"SEA111 {rail}") and ";" in message for message in broken[rail])
    assert broken[rail]


@by_guard
@pytest.mark.parametrize(("path", "value"), ALLOWED, ids=str)
def test_what_the_rails_allow_and_what_a_function_returns_breaks_no_rule(path: str, value: object) -> None:
    assert broken_rails(changed(path, value), guard_rules(environment(**PLACE))) == {}


@by_guard
def test_remote_code_may_run_at_a_whole_commit_where_it_must_be_pinned() -> None:
    rules = guard_rules(environment({"remote_code": "pinned"}))
    code = changed(f"{ENVIRONMENT}/SM_VLLM_TRUST_REMOTE_CODE", "true")
    variables = code["Resources"]["Model"]["Properties"]["PrimaryContainer"]["Environment"]
    for revision, broken in ((COMMIT, []), ("main", ["remote_code"]), (None, ["remote_code"])):
        variables.update({"SM_VLLM_REVISION": revision})
        if revision is None:
            del variables["SM_VLLM_REVISION"]
        assert [*broken_rails(code, rules)] == broken
    assert broken_rails(changed(f"{ENVIRONMENT}/SM_VLLM_REVISION", "main"), rules) == {}


@by_guard
def test_an_account_is_judged_whole_and_an_environment_by_its_tag() -> None:
    other = [{"Key": "seatrial:environment", "Value": "prod"}, TAGS[1], {"Key": "stage", "Value": "finance"}]
    template = changed("Config/Tags", other)
    del template["Resources"]["Target"]
    assert broken_rails(template, guard_rules(environment())) == {}
    whole = environment({**RAILS, "enforcement": {"scope": "account"}})
    assert [*broken_rails(template, guard_rules(whole))] == ["tag_values"]


@by_guard
def test_a_waived_endpoint_fails_no_rule_by_its_name_its_stack_or_its_product() -> None:
    waiver = {"rail": "instance_types", "endpoint": "ch*", "reason": "a", "approver": "b", "expires": "2026-01-01"}
    rules = guard_rules(environment({**RAILS, "waivers": [waiver]}))
    large = changed("Config/ProductionVariants/0/InstanceType", "ml.p4d.24xlarge")
    assert broken_rails(large, rules) == {}
    (config,) = (each for each in large["Resources"].values() if each["Type"].endswith("EndpointConfig"))
    stack = "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev-{}/1"
    for name, broken in (("chat", []), ("other", ["instance_types"])):
        one = {"HookContext": {"StackId": stack.format(name)}, "Resources": {"Config": config}}
        assert [*broken_rails(one, rules)] == broken
    for product, broken in (("chat", []), ("other", ["instance_types"])):
        tagged = deepcopy(config)
        tagged["Properties"]["Tags"] = [*TAGS, {"Key": "seatrial:product", "Value": product}]
        assert [*broken_rails({"Resources": {"Config": tagged}}, rules)] == broken
    for tags in (TAGS, []):  # neither beside another endpoint, nor by one that is not of the environment
        beside = deepcopy(large)
        beside["Resources"]["Endpoint"]["Properties"]["Tags"] = tags
        if tags:
            beside["Resources"]["Other"] = deepcopy(RESOURCES["Endpoint"])
            beside["Resources"]["Other"]["Properties"]["EndpointName"] = "dev-other"
        assert [*broken_rails(beside, rules)] == ["instance_types"]
    capture = changed("Config/DataCaptureConfig/DestinationS3Uri", "s3://theirs/")
    assert [*broken_rails(capture, rules)] == ["output_targets"]  # another rail is not waived


@by_guard
def test_a_waiver_of_engines_reaches_the_images() -> None:
    waiver = {"rail": "engines", "endpoint": "chat", "reason": "a", "approver": "b", "expires": "2026-01-01"}
    other = changed("Model/PrimaryContainer/Image", "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0")
    assert broken_rails(other, guard_rules(environment({**RAILS, "waivers": [waiver]}))) == {}


def test_every_rail_has_a_rule_or_a_reason_why_no_template_shows_it() -> None:
    rails = GuardRails.model_fields.keys() - NO_RAILS
    assert rails <= ENFORCED | NOT_IN_TEMPLATES.keys()
    assert not ENFORCED & NOT_IN_TEMPLATES.keys()
    assert {*BY_IAM} <= ENFORCED
    if HAS_GUARD:
        assert {rail for rail, _, _ in BROKEN} | {"engines"} == ENFORCED  # by the images of an engine


def test_a_policy_denies_what_requests_carry_and_allows_nothing() -> None:
    for scope, tag in (("environment", {"aws:RequestTag/seatrial:environment": "dev"}), ("account", {})):
        policy: Any = iam_denials(environment({**RAILS, "enforcement": {"scope": scope}}, **PLACE))
        statements = {each["Sid"]: each for each in policy["Statement"]}
        assert {each["Effect"] for each in statements.values()} == {"Deny"}
        types = statements["InstanceTypes"]
        assert types["Action"] == ["sagemaker:CreateEndpointConfig"]
        assert types["Condition"] == {
            "ForAnyValue:StringNotEquals": {"sagemaker:InstanceTypes": ["ml.g5.2xlarge"]},
            "StringEquals": {"aws:RequestedRegion": "us-east-1", **tag},
        }
        assert len(statements) == 10
        for name in ("VpcSubnetsOther", "VpcSecurityGroupIdsOther"):
            assert statements[name]["Action"] == ["sagemaker:CreateModel", "sagemaker:CreateEndpointConfig"]
        assert "BoolIfExists" in statements["Isolation"]["Condition"]
        for each in statements.values():
            keys = {key for condition in each["Condition"].values() for key in condition}
            for action in each["Action"]:
                facts = action_facts(action)
                assert facts is not None
                assert all(facts.carries(key, "*") or key.startswith("aws:Requested") for key in keys)
    assert iam_denials(environment({}))["Statement"] == []


def test_the_hook_judges_resources_by_the_rules_with_a_role_that_reads_them_alone() -> None:
    for enforcement, mode in (({"mode": "fail"}, "FAIL"), ({}, "WARN")):
        place = environment({**RAILS, "enforcement": enforcement}, account="123456789012")
        template = Template.from_stack(TrialsStack(App(), environment=place))
        (hook,) = template.find_resources("AWS::CloudFormation::GuardHook").values()
        properties = hook["Properties"]
        assert (properties["FailureMode"], properties["HookStatus"]) == (mode, "ENABLED")
        assert properties["TargetOperations"] == ["RESOURCE", "CLOUD_CONTROL"]
        assert properties["Alias"] == "Seatrial::GuardRails::OfDev"
        assert {each["Action"] for each in properties["TargetFilters"]["Targets"]} == {"CREATE", "UPDATE"}
        roles = template.find_resources("AWS::IAM::Role")
        role = roles[properties["ExecutionRole"]["Fn::GetAtt"][0]]["Properties"]
        (policy,) = role["Policies"]
        rights = [(each["Action"], each["Resource"] == "*") for each in policy["PolicyDocument"]["Statement"]]
        reads = [(["s3:GetObject", "s3:GetObjectVersion"], False), ("s3:ListBucket", False)]
        assert rights == [*reads, ("kms:Decrypt", False)]
        assert "kms:ViaService" in json.dumps(policy)
        assert "type/hook/*" in json.dumps(role["AssumeRolePolicyDocument"])
    plain = Template.from_stack(TrialsStack(App(), environment=environment()))
    assert plain.find_resources("AWS::CloudFormation::GuardHook") == {}


SPEC = """\
name: chat
model: {hub_id: meta-llama/Llama-2-7b-chat-hf}
workload: {input_tokens: 256, output_tokens: 128, concurrency: 8}
hosting: {ssm_access: true}
"""
WAIVER = {"rail": "ssm_access", "endpoint": "ch*", "reason": "a case", "approver": "ana", "expires": "2027-01-31"}


def loaded(write: Write, waivers: list[dict[str, str]], **rails: object) -> LoadedSpec:
    place = {"name": "dev", "region": "us-east-1", "guard_rails": {"waivers": waivers, **rails}}
    path: Path = write(SPEC, "chat.yaml")
    return load_spec(path, "dev", environments=write(yaml.safe_dump(place), "dev.yaml").parent)


def test_a_waived_rail_is_told_as_a_note_until_its_last_day_and_refused_after_it(write: Write) -> None:
    with pytest.raises(SpecError) as refused:
        loaded(write, [{**WAIVER, "endpoint": "other"}])
    assert [problem.rule for problem in refused.value.problems] == ["SEA111"]
    spec = loaded(write, [WAIVER])
    (note,) = waiver_findings(spec, date(2027, 1, 31))
    assert (note.rule, note.severity, note.field) == ("SEA647", "note", "hosting.ssm_access")
    assert "waived until 2027-01-31: a case (approved by ana)" in note.message
    ended, _ = waiver_findings(spec, date(2027, 2, 1))
    assert (ended.rule, ended.severity, ended.field) == ("SEA645", "error", "guard_rails.waivers[0].expires")


def test_a_waived_type_is_planned_with_and_makes_another_digest(write: Write) -> None:
    rails = {"instance_types": ["ml.g5.2xlarge"]}
    kept, waived = (
        loaded(write, [WAIVER, {**WAIVER, "rail": "instance_types", "endpoint": name}], **rails)
        for name in ("other", "chat")
    )
    assert (kept.guard_rails.instance_types, waived.guard_rails.instance_types) == (("ml.g5.2xlarge",), None)
    assert kept.digest != waived.digest == loaded(write, [WAIVER]).digest


STRICT: dict[str, object] = {
    "models": ["org/*"],
    "licences": ["mit"],
    "engines": ["tgi"],
    "images": ["none"],
    "code": "refused",
    "revisions": "pinned",
    "remote_code": "refused",
    "router": "refused",
    "output_targets": ["s3://ours/*"],
    "hub_token_secrets": ["hub/*"],
    "slo": {"ttft_ms": {"p95": 1}},
    "trial_mode": "rollback",
    "trial": {"confidence": 0.99},
    "required_tags": ["team"],
    "max_copies": 1,
    "instance_types": ["ml.g5.2xlarge"],
}
LOOSE = """\
hosting: {ssm_access: true, core_dump_s3_uri: s3://theirs/dumps/}
scaling: {max_copies: 2}
serving: {engine: vllm, instance_types: [ml.p4d.24xlarge]}
trial: {mode: report, confidence: 0.5}
"""


def test_an_endpoint_for_which_every_rail_is_waived_breaks_none(write: Write) -> None:
    def load(rails: list[str]) -> LoadedSpec:
        waivers = [{**WAIVER, "rail": rail} for rail in rails]
        place = {"name": "dev", "region": "us-east-1", "guard_rails": {**STRICT, "waivers": waivers}}
        path = write(SPEC.replace("hosting: {ssm_access: true}\n", LOOSE), "chat.yaml")
        return load_spec(path, "dev", environments=write(yaml.safe_dump(place), "dev.yaml").parent)

    every = sorted(GuardRails.model_fields.keys() - NO_RAILS)
    notes = waiver_findings(load(every), date(2027, 1, 1))
    with pytest.raises(SpecError) as refused:
        load([])
    broken = [problem for problem in refused.value.problems if problem.rule == "SEA111"]
    assert len(broken) > 9
    assert {note.field for note in notes} == {problem.field for problem in broken}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"rail": "extra"}, "guard_rails.waivers[0].rail"),
        ({"rail": "colour"}, "guard_rails.waivers[0].rail"),
        ({"approver": ""}, "guard_rails.waivers[0].approver"),
        ({"reason": " "}, "guard_rails.waivers[0].reason"),
        ({"expires": "soon"}, "guard_rails.waivers[0].expires"),
        ({"expires": "1798675200"}, "guard_rails.waivers[0].expires"),
    ],
    ids=str,
)
def test_a_waiver_without_a_rail_a_reason_an_approver_or_a_day_is_refused(
    wrong: dict[str, str], field: str, write: Write
) -> None:
    with pytest.raises(SpecError) as refused:
        loaded(write, [{**WAIVER, **wrong}])
    assert field in [problem.field for problem in refused.value.problems]


def test_a_waiver_of_a_name_that_nothing_has_is_told(write: Write) -> None:
    spec = loaded(write, [WAIVER, {**WAIVER, "endpoint": "chta"}])
    (problem,) = unmatched_waivers(spec.environment, spec.place, ["chat", "other"])
    assert (problem.rule, problem.field) == ("SEA646", "guard_rails.waivers[1].endpoint")


def test_new_and_prolonged_waivers_and_weaker_hooks_are_looser_rails() -> None:
    def of(**rails: object) -> EnvironmentSpec:
        return environment(rails)

    later, hook = {**WAIVER, "expires": "2027-06-30"}, {"mode": "fail", "scope": "account"}
    name = "waivers.ssm_access for ch*"
    assert [each.field for each in loosened_rails(of(), of(waivers=[WAIVER]))] == [name]
    assert [each.field for each in loosened_rails(of(waivers=[WAIVER]), of(waivers=[later]))] == [name]
    assert loosened_rails(of(waivers=[later]), of(waivers=[WAIVER])) == ()
    assert loosened_rails(of(waivers=[later]), of()) == ()
    weaker = [of(enforcement={**hook, "mode": "warn"}), of(enforcement={**hook, "scope": "environment"}), of()]
    assert all(loosened_rails(of(enforcement=hook), each) for each in weaker)
    assert loosened_rails(of(), of(enforcement=hook)) == ()
    (told,) = loosened_rails(of(), of(waivers=[WAIVER]))
    assert told.new == '"2027-01-31: a case (approved by ana)"'
    for field in ("reason", "approver"):
        assert loosened_rails(of(waivers=[WAIVER]), of(waivers=[{**WAIVER, field: "x"}]))
    assert loosened_rails(of(waivers=[WAIVER]), of(waivers=[{**WAIVER, "endpoint": "chat"}])) == ()
    assert loosened_rails(of(models=["a/?"]), of(models=["a/*"]))


def test_what_the_hook_takes_of_network_key_and_promotion_is_looser_without_it() -> None:
    simulated = {"source": "dev", "accept_simulated": True}
    strict, loose = environment({}, **PLACE, promotion={"source": "dev"}), environment({}, promotion=simulated)
    fields = {"kms_key_arn", "network.isolated", "network.security_group_ids", "network.subnet_ids"}
    assert {each.field for each in loosened_rails(strict, loose)} == fields | {"promotion.accept_simulated"}
    assert loosened_rails(loose, strict) == ()


@by_guard
@pytest.mark.parametrize(
    ("model", "name"), [("org/a", "HF_MODEL_REVISION"), ("gpt2", "REVISION"), ("org/a ", "SM_SGLANG_REVISION")]
)
def test_a_revision_counts_only_in_a_variable_that_the_container_reads(model: str, name: str) -> None:
    template = changed(f"{ENVIRONMENT}/SM_VLLM_MODEL", model)
    variables = template["Resources"]["Model"]["Properties"]["PrimaryContainer"]["Environment"]
    variables[name] = variables.pop("SM_VLLM_REVISION")
    assert [*broken_rails(template, guard_rules(environment({"revisions": "pinned"})))] == ["revisions"]


@by_guard
def test_a_bucket_of_the_cdk_is_no_place_of_models_where_the_account_is_unknown() -> None:
    packaged = changed(
        "Model/PrimaryContainer/ModelDataUrl", f"s3://cdk-a-assets-123456789012-us-east-1/{COMMIT}.tar.gz"
    )
    assert [*broken_rails(packaged, guard_rules(environment()))] == ["models"]
