"""What an environment does not allow, told of a spec alone: the field, the rail, its place and its owner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.guardrails.fleets import least_size
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_base.findings import Finding
    from tests.specs.conftest import Write

HEAD = "name: dev\nregion: us-east-1\nowner: platform-team\nguard_rails:\n"
TYPES = "serving: {instance_types: [ml.g5.xlarge]}\n"
ADAPTERS = "serving: {overrides: {lora: {adapters: [{name: a, path: me/a}, {name: b, path: /opt/b}]}}}\n"
SPEC = """\
name: chat
model: {hub_id: meta-llama/Llama-2-7b-chat-hf}
workload: {input_tokens: 256, output_tokens: 128, concurrency: 8}
"""
PACKAGE_ARN = "arn:aws:sagemaker:us-east-1:999999999999:model-package/evil/1"
PACKAGE = SPEC.replace(
    "hub_id: meta-llama/Llama-2-7b-chat-hf",
    f"model_package_arn: '{PACKAGE_ARN}', architecture: meta-llama/Llama-2-7b-chat-hf, licence: llama2",
)
HUB_CONTENT = "arn:aws:sagemaker:us-east-1:999999999999:hub-content/hub/Model/evil/1.0.0"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:hub/llama-AbCdEf"
COMPONENT = f"""{SPEC}serving:
  adapters: [{{name: sql, s3_uri: s3://b00/sql.tar.gz}}]
  overrides: {{lora: {{max_rank: 8, max_adapters: 1}}}}
"""
IN_S3 = SPEC.replace("hub_id: meta-llama/Llama-2-7b-chat-hf", "s3_uri: s3://b00/m/")
PINNED = SPEC.replace("hub_id", f"revision: {'4f2b1e0c' * 5}, hub_id")
REMOTE = SPEC.replace("hub_id", "trust_remote_code: true, hub_id")
SHARES = "more_models: [other], traffic: [{spec: chat, weight: 3}, {spec: other, weight: 1}]"
SINGLE = f"{SPEC}trial: {{mode: 'off'}}\nhosting: {{kind: single_model, "

CREATED = [
    ("slo: {output_tok_s: 500}", SPEC, ["slo.output_tok_s"]),
    ("models: [meta-llama/*]", PACKAGE, ["model.model_package_arn"]),
    (f"models: ['{PACKAGE_ARN[:-2]}*']", PACKAGE, []),
    ("models: [meta-llama/*]", SPEC.replace("hub_id", "revision: refs/pr/7, hub_id"), ["model.revision"]),
    ("models: [meta-llama/*, 'meta-llama/*@refs/pr/7']", SPEC.replace("hub_id", "revision: refs/pr/7, hub_id"), []),
    ("models: [meta-llama/*]", SPEC.replace("hub_id", "revision: 4f2b1e0, hub_id"), []),
    ("max_copies: 9", SPEC.replace("hub_id", "revision: refs/pr/7, hub_id"), []),
    (
        "models: [meta-llama/*]",
        f"{SPEC}serving: {{engine: vllm, overrides: {{extra: {{code_revision: refs/pr/7}}}}}}\n",
        ["serving.overrides.extra.code_revision"],
    ),
    (
        "models: ['s3://b00/*']",
        IN_S3.replace("}", f", hub_content_arn: '{HUB_CONTENT}'}}", 1),
        ["model.hub_content_arn"],
    ),
    (
        "models: [meta-llama/*]",
        COMPONENT,
        ["serving.adapters[0].s3_uri"],
    ),
    ("models: [meta-llama/*]", f"{SPEC}optimization: [{{awq: {{checkpoint: me/awq}}}}]\n", ["model.hub_id"]),
    ("models: [meta-llama/*]", f"{SPEC}serving: {{code: code}}\n", ["serving.code"]),
    ("licences: [llama2]", f"{SPEC}serving: {{code: code}}\n", ["serving.code"]),
    ("code: refused", f"{SPEC}serving: {{code: code}}\n", ["serving.code"]),
    ("max_copies: 9", f"{SPEC}serving: {{code: code}}\n", []),
    (
        "hub_token_secrets: ['hub/*']",
        SPEC.replace("hub_id", "hub_token_secret: prod/db, hub_id"),
        ["model.hub_token_secret"],
    ),
    ("hub_token_secrets: ['hub/*']", SPEC.replace("hub_id", "hub_token_secret: hub/llama, hub_id"), []),
    (
        "hub_token_secrets: ['hub/*']",
        SPEC.replace("hub_id", f"hub_token_secret: '{SECRET}', hub_id"),
        ["model.hub_token_secret"],
    ),
    ("hub_token_secrets: ['arn:*:secret:hub/*']", SPEC.replace("hub_id", f"hub_token_secret: '{SECRET}', hub_id"), []),
    (
        "instance_types: [ml.g6.xlarge]",
        f"{SPEC}hosting: {{instance_pools: [ml.g6.xlarge, ml.p4d.24xlarge]}}\n",
        ["hosting.instance_pools[1]"],
    ),
    (
        "instance_types: [ml.g6.xlarge]",
        f"{SPEC}optimization: [{{awq: {{job: {{instance_type: ml.p5.48xlarge}}}}}}]\n",
        ["optimization[0].awq.job.instance_type"],
    ),
    ("trial_mode: rollback", f"{SPEC}trial: {{update: verify_only}}\n", ["trial.update"]),
    ("trial_mode: rollback", f"{SPEC}trial: {{confidence: 0}}\n", ["trial.confidence"]),
    ("trial_mode: rollback", f"{SPEC}trial: {{on_inconclusive: pass}}\n", ["trial.on_inconclusive"]),
    ("trial_mode: rollback", f"{SPEC}trial: {{requests_per_concurrency: 1}}\n", ["trial.requests_per_concurrency"]),
    ("trial_mode: report", f"{SPEC}trial: {{mode: report, confidence: 0}}\n", []),
    ("tag_values: {stage: [dev]}", f"{SPEC}tags: {{stage: prod, team: a}}\n", ["tags.stage"]),
    ("tag_values: {stage: [dev], team: [search, 'ads-*']}", f"{SPEC}tags: {{stage: dev, team: ads-1}}\n", []),
    ("tag_values: {team: [search, 'ads-*']}", f"{SPEC}tags: {{team: Search}}\n", ["tags.team"]),
    ("tag_values: {team: [search]}", SPEC, []),
    ("revisions: pinned", SPEC, ["model.hub_id"]),
    ("revisions: pinned", SPEC.replace("hub_id", "revision: main, hub_id"), ["model.revision"]),
    ("revisions: pinned", SPEC.replace("hub_id", "revision: 4f2b1e0, hub_id"), ["model.revision"]),
    ("revisions: pinned", PINNED, []),
    ("revisions: pinned", IN_S3, []),
    ("revisions: pinned", PINNED + ADAPTERS, ["serving.overrides.lora.adapters[0].path"]),
    ("remote_code: refused", REMOTE, ["model.trust_remote_code"]),
    ("remote_code: refused", SPEC, []),
    ("remote_code: pinned", REMOTE, ["model.hub_id"]),
    ("remote_code: pinned", SPEC, []),
    ("remote_code: pinned", PINNED.replace("hub_id", "trust_remote_code: true, hub_id"), []),
    ("remote_code: pinned", IN_S3.replace("s3_uri", "trust_remote_code: true, s3_uri"), []),
    ("router: refused", f"{SPEC}hosting: {{router: true, {SHARES}}}\n", ["hosting.router"]),
    ("router: allowed", f"{SPEC}hosting: {{router: true, {SHARES}}}\n", []),
    (
        "output_targets: ['s3://ours/*']",
        f"{SINGLE}data_capture: {{s3_uri: 's3://b00/x/'}}}}\n",
        ["hosting.data_capture.s3_uri"],
    ),
    ("output_targets: ['s3://b00/*']", f"{SINGLE}data_capture: {{s3_uri: 's3://b00/x/'}}}}\n", []),
    ("output_targets: ['s3://ours/*']", f"{SINGLE}core_dump_s3_uri: 's3://b00/x/'}}\n", ["hosting.core_dump_s3_uri"]),
    (
        "output_targets: ['s3://ours/*']",
        f"{SINGLE}asynchronous: {{output_s3_uri: 's3://ours/a/', failure_s3_uri: 's3://b00/x/', error_topic_arn: "
        "'arn:aws:sns:us-east-1:999999999999:a'}}\n",
        ["hosting.asynchronous.error_topic_arn", "hosting.asynchronous.failure_s3_uri"],
    ),
    ("trial: {confidence: 0.5}", f"{SPEC}trial: {{confidence: 0.4, on_inconclusive: pass}}\n", ["trial.confidence"]),
]
"""Rails, specs and fields: what is loaded, run or read whatever the model is called, and trials that prove nothing."""


def broken(rail: str, spec: str, write: Write, environments: Path, more: str = "") -> list[Finding]:
    (environments / "dev.yaml").write_text(f"{HEAD}  {rail}\n{more}")
    try:
        load_spec(write(spec), "dev", environments=environments)
    except SpecError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    ("rail", "spec", "fields"),
    [
        ("models: [tiiuae/*, 's3://ours/*']", SPEC, ["model.hub_id"]),
        ("models: [meta-llama/Llama-?-7b*]", SPEC, []),
        ("models: [META-LLAMA/*]", SPEC, ["model.hub_id"]),
        (
            "models: [meta-llama/*]",
            SPEC + ADAPTERS,
            ["serving.overrides.lora.adapters[0].path"],
        ),
        (
            "models: [meta-llama/*]",
            f"{SPEC}serving: {{overrides: {{speculative_decoding: "
            "{draft_tokens: 3, acceptance_rate: 0.7, model: me/draft}}}",
            ["serving.overrides.speculative_decoding.model"],
        ),
        ("licences: [apache-2.0, mit]", SPEC, ["model.hub_id"]),
        ("licences: [llama2]", SPEC, []),
        ("licences: [mit]", SPEC.replace("meta-llama", "someone"), ["model.hub_id"]),
        ("licences: [mit]", SPEC.replace("hub_id: meta-llama", "licence: mit, hub_id: someone"), []),
        ("licences: [mit]", IN_S3, ["model.s3_uri"]),
        ("engines: [vllm]", f"{SPEC}serving: {{engine: tgi}}\n", ["serving.engine"]),
        ("engines: [vllm]", f"{SPEC}serving: {{backend: vllm}}\n", ["serving.backend"]),
        ("engines: [vllm]", SPEC, []),
        ("trial_mode: rollback", f"{SPEC}trial: {{mode: report}}\n", ["trial.mode"]),
        ("trial_mode: rollback", SPEC, []),
        ("required_tags: [team, cost-center]", f"{SPEC}tags: {{team: search}}\n", ["tags.cost-center"]),
        ("required_tags: [team]", f"{SPEC}tags: {{team: ''}}\n", ["tags.team"]),
        ("required_tags: [team]", f"{SPEC}tags: {{team: ' '}}\n", ["tags.team"]),
        ("required_tags: [team]", f"{SPEC}tags: {{team: ' -_./ '}}\n", ["tags.team"]),
        ("required_tags: [team]", f"{SPEC}tags: {{team: ' a '}}\n", []),
        ("max_copies: 2", f"{SPEC}scaling: {{max_copies: 3}}\n", ["scaling.max_copies"]),
        ("instance_types: [ml.g6.xlarge]", SPEC + TYPES, ["serving.instance_types"]),
        ("slo: {ttft_ms: {p95: 2000}}", SPEC, ["slo.ttft_ms.p95"]),
        ("slo: {ttft_ms: {p95: 2000}}", f"{SPEC}slo: {{ttft_ms: {{p95: 2001}}}}\n", ["slo.ttft_ms.p95"]),
        ("slo: {ttft_ms: {p95: 2000}}", f"{SPEC}slo: {{ttft_ms: {{p90: 100}}}}\n", ["slo.ttft_ms.p95"]),
        ("slo: {ttft_ms: {p95: 2000}}", f"{SPEC}slo: {{ttft_ms: {{p99: 2000}}}}\n", []),
        (
            "slo: {tpot_ms: {p50: 20}, error_rate: 0.001, output_tok_s: 500}",
            f"{SPEC}slo: {{output_tok_s: 400}}\n",
            ["slo.error_rate", "slo.output_tok_s", "slo.tpot_ms.p50"],
        ),
        ("slo: {error_rate: 0.01}", SPEC, []),
        ("slo: {error_rate: 0.01}", f"{SPEC}slo: {{error_rate: 0.0101}}\n", ["slo.error_rate"]),
        ("slo: {output_tok_s: 500}", f"{SPEC}slo: {{output_tok_s: 499}}\n", ["slo.output_tok_s"]),
        ("slo: {output_tok_s: 500}", f"{SPEC}slo: {{output_tok_s: 500}}\n", []),
        # The stricter of two bounds is what holds at the percentile of the rail.
        ("slo: {tpot_ms: {p50: 20}}", f"{SPEC}slo: {{tpot_ms: {{p50: 30, p95: 20}}}}\n", []),
        *CREATED,
    ],
)  # fmt: skip
def test_each_broken_rail_is_told_with_its_field_place_and_owner(
    rail: str, spec: str, fields: list[str], write: Write, environments: Path
) -> None:
    found = broken(rail, spec, write, environments)
    assert sorted(problem.field for problem in found) == fields
    assert {problem.rule for problem in found} <= {"SEA111"}
    assert all("dev.yaml:5)" in problem.message for problem in found)
    assert all("(set by platform-team in " in problem.message for problem in found)


@pytest.mark.parametrize(("tags", "actual"), [("", "is missing"), ("tags: {team: ''}\n", "is ''")])
def test_a_tag_that_is_missing_is_not_an_empty_one(tags: str, actual: str, write: Write, environments: Path) -> None:
    (problem,) = broken("required_tags: [team]", f"{SPEC}{tags}", write, environments)
    assert f"the tag team {actual};" in problem.message


def test_every_broken_rail_is_told_at_once(write: Write, environments: Path) -> None:
    rail = "models: [tiiuae/*]\n  licences: [mit]\n  engines: [vllm]\n  trial_mode: report\n  required_tags: [team]"
    found = broken(rail, f"{SPEC}serving: {{engine: lmi}}\n", write, environments)
    assert len(found) == 5


def test_a_tag_of_the_environment_is_one_of_the_endpoints(write: Write, environments: Path) -> None:
    assert broken("required_tags: [team]", SPEC, write, environments, more="tags: {team: search}\n") == []


def test_a_blank_of_the_endpoint_hides_the_tag_of_the_environment(write: Write, environments: Path) -> None:
    spec = f"{SPEC}tags: {{team: ' '}}\n"
    (found,) = broken("required_tags: [team]", spec, write, environments, more="tags: {team: search}\n")
    assert (found.rule, found.field) == ("SEA111", "tags.team")


def test_a_declared_licence_may_not_contradict_the_catalog(write: Write, environments: Path) -> None:
    spec = SPEC.replace("hub_id", "licence: mit, hub_id")
    (problem,) = broken("licences: [llama2]", spec, write, environments)
    assert (problem.rule, problem.field) == ("SEA108", "model.licence")


def with_extra(options: str) -> str:
    return f"{SPEC}serving: {{engine: vllm, overrides: {{extra: {{{options}}}}}}}\n"


@pytest.mark.parametrize(
    "option",
    [
        "model: evil/model",
        "Model: evil/model",
        "model_id: evil/model",
        "tokenizer: evil/tokens",
        "hf_config_path: evil/config",
        "speculative_model: evil/draft",
        """speculative_config: '{"model": "evil/draft", "num_speculative_tokens": 3}'""",
        """speculative_config: '{"method": "eagle", "model": "evil/draft"}'""",
        "speculative_config: evil/draft",
        """hf_overrides: '{"auto_map": {"AutoModel": "evil/code--modeling.Evil"}}'""",
        "lora_modules: sql=evil/sql",
        "worker_cls: evil.Worker",
        "tool_parser_plugin: /opt/ml/model/evil.py",
        "tokenizer: /opt/ml/model/../../../etc/evil",
        "an_option_of_tomorrow: evil/model",
        "An_Option_Of_Tomorrow: evil",
        "AN_OPTION_OF_TOMORROW: evil",
        """structured_outputs_config: '{"reasoning_parser_plugin": "/srv/evil.py"}'""",
        """structured_outputs_config: '{"reasoning_parser_plugin": "/opt/ml/model/evil.py"}'""",
        """structured_outputs_config: '{"reasoning_parser_plugin": "evil"}'""",
        """structured_outputs_config: '{"member_of_tomorrow": ["evil/model"]}'""",
        """reasoning_config: '{"deep": {"deeper": "evil.module"}}'""",
        """kv_events_config: '["evil:function"]'""",
        "distributed_executor_backend: evil.module.Executor",
        "docker_image: evil/image",
        "load_format: ./evil",
        "skops_trusted_types: 'evil.Type, other.Type'",
        "lora_adapters: 'meta-llama/a,evil/b'",
        "lora_modules: 'a=meta-llama/a b=evil/b'",
        "tokenizer: meta-llama/../evil",
        f"lora_modules: '{'meta-llama/a,' * 800}'",
        f"""compilation_config: '{{"a": {"[" * 9_000}'""",
    ],
)
@pytest.mark.parametrize("rail", ["models: [meta-llama/*]", "licences: [llama2]"])
def test_what_an_option_loads_is_held_against_the_rails(
    rail: str, option: str, write: Write, environments: Path
) -> None:
    found = broken(rail, with_extra(option), write, environments)
    name = option.partition(":")[0]
    assert {(each.rule, each.field) for each in found} == {("SEA111", f"serving.overrides.extra.{name}")}
    assert all(f"`extra: [{name}]`" in each.hint for each in found)
    assert all(each.hint.endswith("dev.yaml") for each in found)
    assert broken(f"{rail}\n  extra: [{name}]", with_extra(option), write, environments) == []
    assert broken("max_copies: 9", with_extra(option), write, environments) == []


@pytest.mark.parametrize(
    "option",
    [
        "gpu_memory_utilization: 0.8",
        "tokenizer_mode: mistral",
        "served_model_name: org/chat",
        "tool_call_parser: hermes",
        "Tool_Call_Parser: hermes",
        "tokenizer: meta-llama/Llama-2-7b-chat-hf",
        "tokenizer: /opt/ml/model/tokens",
        "generation_config: vllm",
        "Generation_Config: vllm",
        "chat_template: '{{ messages }}'",
        "Chat_Template: '{{ messages }}/{{ x }}'",
        f"chat_template: '{'{{ messages }}/' * 1_000}'",
        f"""compilation_config: '{{"a": {"[" * 900}{"]" * 900}}}'""",
        """structured_outputs_config: '{"backend": "xgrammar", "reasoning_parser": "qwen3"}'""",
        """compilation_config: '{"mode": 3, "cudagraph_mode": "FULL", "custom_ops": ["+rms_norm"]}'""",
        """limit_mm_per_prompt: '{"image": 2}'""",
        "long_lora_scaling_factors: '2.0, 4.0'",
        "otlp_traces_endpoint: http://collector.local:4317",
        "host: 0.0.0.0",
        "stop_sequence: '</s>'",
        """speculative_config: '{"method": "ngram", "num_speculative_tokens": 3}'""",
        "an_option_of_tomorrow: true",
        "an_option_of_tomorrow: 3",
    ],
)
def test_an_option_that_loads_nothing_foreign_is_allowed(option: str, write: Write, environments: Path) -> None:
    assert broken("models: [meta-llama/*]", with_extra(option), write, environments) == []


OF_A_STRANGER = [
    "refs/pr/1",
    "refs//pr/1",
    "REFS/PR/1",
    "Refs/pr/1",
    "refs/heads/../pr/1",
    "refs/./pr/1",
    "refs/tags//../pr/1",
    "pr/1",
    "PR/1",
    "refs/convert/parquet",
    "convert/parquet",
    "refs/namespace_of_tomorrow/1",
    "feature/x",
    "main/../refs/pr/1",
    "a..b",
]
OF_THE_OWNER = ["main", "v1.0", "4f2b1e0", "4f2b1e0" + "0" * 33, "refs/heads/main", "refs/heads/pr/1", "refs/tags/v1.0"]
REVISIONS = {
    "model.revision": SPEC.replace("hub_id", "revision: %s, hub_id"),
    "serving.overrides.extra.code_revision": with_extra("code_revision: %s"),
    "serving.overrides.extra.tokenizer_revision": with_extra("tokenizer_revision: %s"),
    "serving.overrides.extra.speculative_config": with_extra(
        """speculative_config: '{"model": "meta-llama/Llama-2-7b-chat-hf", "revision": "%s"}'"""
    ),
    "serving.overrides.extra.lora_adapters": with_extra("lora_adapters: meta-llama/Llama-2-7b-chat-hf@%s"),
}
"""Every field that can name a revision of a repository of the hub."""


@pytest.mark.parametrize("revision", OF_A_STRANGER)
@pytest.mark.parametrize("field", REVISIONS)
@pytest.mark.parametrize("rail", ["models: [meta-llama/*]", "licences: [llama2]"])
def test_a_revision_that_may_be_a_strangers_is_refused(
    rail: str, field: str, revision: str, write: Write, environments: Path
) -> None:
    spec = REVISIONS[field].replace("%s", revision)
    found = broken(rail, spec, write, environments)
    assert [(each.rule, each.field) for each in found] == [("SEA111", field)]
    named = f"meta-llama/Llama-2-7b-chat-hf@{revision}"
    is_name = ".." not in revision  # no pattern allows what leads out of a folder
    assert (f"'{named}'" in found[0].hint) == is_name
    assert revision in found[0].message
    assert "meta-llama/Llama-2-7b-chat-hf" in found[0].message
    allowing = f"licences: [llama2]\n  models: [meta-llama/*, '{named}']"
    assert bool(broken(allowing, spec, write, environments)) != is_name
    assert broken("max_copies: 9", spec, write, environments) == []


@pytest.mark.parametrize("revision", OF_THE_OWNER)
@pytest.mark.parametrize("field", REVISIONS)
@pytest.mark.parametrize("rail", ["models: [meta-llama/*]", "licences: [llama2]"])
def test_a_commit_a_tag_and_a_branch_are_the_repositorys_own(
    rail: str, field: str, revision: str, write: Write, environments: Path
) -> None:
    assert broken(rail, REVISIONS[field].replace("%s", revision), write, environments) == []


FOREIGN = "666666666666.dkr.ecr.us-east-1.amazonaws.com/evil:1"
OWN = "111122223333.dkr.ecr.us-east-1.amazonaws.com/llm/vllm:1"
OF_AWS = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
OF_TGI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.4.0-tgi2.4.0-gpu-py311"


@pytest.mark.parametrize(
    ("rail", "image", "allowed"),
    [
        ("usd_per_hour: 90", FOREIGN, False),
        ("usd_per_hour: 90", OWN, True),
        ("usd_per_hour: 90", OF_AWS, True),
        ("models: [meta-llama/*]", OWN, False),
        ("licences: [llama2]", OWN, False),
        ("engines: [lmi]", OWN, False),
        ("engines: [lmi]", OF_AWS, True),
        ("engines: [lmi]", OF_TGI, False),
        ("images: ['*/llm/*']", OWN, True),
        ("images: [111122223333.dkr.ecr.us-east-1.amazonaws.com/llm/vllm]", OWN, True),
        ("images: ['*/llm/*']", FOREIGN, False),
        ("images: ['*/llm/*']", OF_AWS, True),
        ("models: [meta-llama/*]\n  images: ['*/llm/*']", OWN, True),
    ],
)
@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("serving.image", f"{SPEC}serving: {{image: '%s'}}\n"),
        ("hosting.shadow.image", f"{SINGLE}shadow: {{image: '%s'}}}}\n"),
        ("hosting.variants[1].image", f"{SINGLE}variants: [{{name: a}}, {{name: b, image: '%s'}}]}}\n"),
    ],
)
def test_every_image_is_of_aws_of_the_account_or_allowed(
    rail: str, image: str, field: str, spec: str, write: Write, environments: Path, *, allowed: bool
) -> None:
    found = broken(rail, spec.replace("%s", image), write, environments, more="account: '111122223333'\n")
    assert [(each.rule, each.field) for each in found] == ([] if allowed else [("SEA111", field)])


def test_without_rails_an_image_is_not_judged(write: Write, environments: Path) -> None:
    (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    assert load_spec(write(f"{SPEC}serving: {{image: '{FOREIGN}'}}\n"), "dev", environments=environments)


def test_the_image_of_a_package_is_allowed_with_the_package_alone(write: Write, environments: Path) -> None:
    (problem,) = broken("engines: [lmi]", PACKAGE, write, environments)
    assert (problem.field, "guard_rails.models" in problem.hint) == ("model.model_package_arn", True)
    assert broken(f"engines: [lmi]\n  models: ['{PACKAGE_ARN}']", PACKAGE, write, environments) == []


def test_metadata_of_jumpstart_names_weights_of_its_own(write: Write, environments: Path) -> None:
    other = {"model_id": "meta-textgeneration-llama-2-7b", "version": "9.9.9", "hosting_artifact_key": "evil/m.tar.gz"}
    model = "jumpstart_id: meta-textgeneration-llama-2-7b, jumpstart_metadata: m.json, accept_eula: true"
    file = write(SPEC.replace("hub_id: meta-llama/Llama-2-7b-chat-hf", model))
    (file.parent / "m.json").write_text(json.dumps(other))
    spec = file.read_text()
    (problem,) = broken("models: [meta-*]", spec, write, environments)
    assert (problem.field, "s3://jumpstart-cache-prod-us-east-1/evil/m.tar.gz" in problem.message) == (
        "model.jumpstart_metadata",
        True,
    )
    assert broken("models: [meta-*, 's3://jumpstart-cache-prod-us-east-1/evil/*']", spec, write, environments) == []


def test_metadata_of_an_unknown_jumpstart_id_names_weights_too(write: Write, environments: Path) -> None:
    key = {"model_id": "model-of-tomorrow", "version": "1.0.0", "hosting_artifact_key": "evil/m.tar.gz"}
    model = "jumpstart_id: model-of-tomorrow, jumpstart_metadata: m.json, accept_eula: true"
    shape = ", architecture: meta-llama/Llama-2-7b-chat-hf"
    file = write(SPEC.replace("hub_id: meta-llama/Llama-2-7b-chat-hf", model + shape))
    (file.parent / "m.json").write_text(json.dumps(key))
    found = broken("models: [model-*]", file.read_text(), write, environments)
    assert [(each.rule, each.field) for each in found] == [("SEA111", "model.jumpstart_metadata")]
    assert "s3://jumpstart-cache-prod-us-east-1/evil/m.tar.gz" in found[0].message


def test_a_default_of_the_trial_names_the_rail_that_implies_it(write: Write, environments: Path) -> None:
    loose = f"{SPEC}trial: {{confidence: 0.5}}\n"
    (implied,) = broken("trial_mode: rollback", loose, write, environments)
    assert implied.message == (
        f"trial.confidence is 0.5; dev requires at least 0.9 (set by platform-team in {environments}/dev.yaml:5)"
    )
    assert "guard_rails.trial.confidence" in implied.hint
    assert broken("trial_mode: rollback\n  trial: {confidence: 0.5}", loose, write, environments) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{resolve:secretsmanager:prod/db:SecretString:password}}",
        "{{ RESOLVE :ssm:/prod/key}}",
        "before {{resolve:ssm-secure:key:1}} after",
        "${Token[TOKEN.1]}",
        "#{Token[TOKEN.2]}",
        "${TOKEN[AWS.Region.3]}",
    ],
)
@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("description", f"{SPEC}description: '%s'\n"),
        ("serving.overrides.extra.served_model_name", with_extra("served_model_name: '%s'")),
        ("overrides.dev.description", f"{SPEC}overrides: {{dev: {{description: '%s'}}}}\n"),
        ("workload.%s", SPEC.replace("workload: {", "workload: {'%s': 1, ")),
    ],
)
def test_no_text_is_replaced_when_it_is_deployed(
    text: str, field: str, spec: str, write: Write, environments: Path
) -> None:
    found = broken("max_copies: 9", spec.replace("%s", text), write, environments)
    assert ("SEA137", field.replace("%s", text)) in {(problem.rule, problem.field) for problem in found}


def test_a_text_of_an_environment_is_not_replaced_either(write: Write, environments: Path) -> None:
    found = broken("max_copies: 9", SPEC, write, environments, more="tags: {a: '{{resolve:ssm:x}}'}\n")
    assert ("SEA137", "tags.a") in {(problem.rule, problem.field) for problem in found}


def test_a_chat_template_may_hold_braces(write: Write, environments: Path) -> None:
    spec = with_extra("chat_template: '{{ resolve }}{% for m in messages %}{{ m.resolve }}{% endfor %}'")
    assert broken("max_copies: 9", spec, write, environments) == []


FILES = {
    "model.config_file": SPEC.replace("hub_id", "config_file: '%s', hub_id"),
    "model.jumpstart_metadata": SPEC.replace(
        "hub_id: meta-llama/Llama-2-7b-chat-hf",
        "jumpstart_id: meta-textgeneration-llama-2-7b, accept_eula: true, jumpstart_metadata: '%s'",
    ),
    "slo.quality.evaluation_set": f"{SPEC}slo: {{quality: {{evaluation_set: '%s'}}}}\n",
}


@pytest.mark.parametrize("field", FILES)
@pytest.mark.parametrize("name", ["../../out/x.json", "OUT/x.json", "~/x.json", "link.json", "linked/x.json"])
def test_no_file_outside_of_the_repository_is_read(field: str, name: str, write: Write, environments: Path) -> None:
    out = environments.parents[1] / "out"
    out.mkdir(exist_ok=True)
    (out / "x.json").write_text("{}")
    file = write(FILES[field].replace("%s", name.replace("OUT", out.as_posix())))
    (file.parent / "link.json").symlink_to(out / "x.json")
    (file.parent / "linked").symlink_to(out)
    found = broken("max_copies: 9", file.read_text(), write, environments)
    assert [(problem.rule, problem.field) for problem in found] == [("SEA138", field)]


def test_no_link_in_a_folder_of_metadata_leads_out(write: Write, environments: Path) -> None:
    file = write(FILES["model.jumpstart_metadata"].replace("%s", "models"))
    (environments.parents[1] / "secret.json").write_text("{}")
    (file.parent / "models").mkdir()
    (file.parent / "models" / "a.json").symlink_to(environments.parents[1] / "secret.json")
    found = broken("max_copies: 9", file.read_text(), write, environments)
    assert [(problem.rule, problem.field) for problem in found] == [("SEA138", "model.jumpstart_metadata")]


def test_prices_outside_of_the_repository_are_not_read(write: Write, environments: Path) -> None:
    found = broken("max_copies: 9", SPEC, write, environments, more="prices: ../../prices.yaml\n")
    assert [(problem.rule, problem.field) for problem in found] == [("SEA138", "prices")]


@pytest.mark.parametrize(
    ("hosting", "field"),
    [
        (f"shadow: {{image: '{OF_AWS}', instance_count: 900}}}}\n", "hosting.shadow"),
        (f"variants: [{{name: a, instance_count: 900}}, {{name: b, image: '{OF_AWS}'}}]}}\n", "hosting.variants[0]"),
        ("variants: [{name: a}, {name: b, spec: other, instance_count: 900}]}\n", "hosting.variants[1]"),
        ("variants: [{name: a}, {name: b, spec: other}, {name: c, spec: third}]}\n", "hosting.variants[0]"),
    ],
)
def test_the_copies_of_all_variants_count(hosting: str, field: str, write: Write, environments: Path) -> None:
    (problem,) = broken("max_copies: 2", f"{SINGLE}{hosting}", write, environments)
    assert (problem.rule, problem.field) == ("SEA111", field)
    assert "copies of all variants exceed dev's guard rail 2" in problem.message
    assert broken("max_copies: 1000", f"{SINGLE}{hosting}", write, environments) == []


@pytest.mark.parametrize("field", [*FILES, "workload.dataset", "serving.code"])
def test_a_zero_byte_in_a_path_is_a_users_mistake(field: str, write: Write, environments: Path) -> None:
    more = {
        "workload.dataset": SPEC.replace("concurrency: 8", 'concurrency: 8, dataset: "%s"'),
        "serving.code": f'{SPEC}serving: {{code: "%s"}}\n',
    }
    spec = {**{key: text.replace("'%s'", '"%s"') for key, text in FILES.items()}, **more}[field]
    found = broken("max_copies: 9", spec.replace("%s", "a\\0b"), write, environments)
    assert [(problem.rule, problem.field) for problem in found] == [("SEA118", field)]


@pytest.mark.parametrize("field", [*FILES, "workload.dataset"])
@pytest.mark.parametrize("name", ["a" * 300, "a/" * 2_000, "\N{GRINNING FACE}" * 100])
def test_a_path_that_is_too_long_for_a_file_is_not_there(
    field: str, name: str, write: Write, environments: Path
) -> None:
    spec = {**FILES, "workload.dataset": SPEC.replace("concurrency: 8", "concurrency: 8, dataset: '%s'")}[field]
    found = broken("max_copies: 9", spec.replace("%s", name), write, environments)
    assert ("SEA101", field) in [(problem.rule, problem.field) for problem in found]


@pytest.mark.parametrize(("fewest", "instances"), [(0, 1), (1, 1), (3, 3)])
def test_the_smallest_size_has_the_fewest_copies_and_one_at_least(fewest: int, instances: int) -> None:
    scaling = {"min_copies": fewest, "max_copies": 4}
    spec = EndpointSpec.model_validate({**yaml.safe_load(SPEC), "scaling": scaling})
    size = least_size(spec)
    assert (size.instance_count, size.most_copies) == (instances, 4)
