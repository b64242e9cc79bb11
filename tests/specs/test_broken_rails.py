"""What an environment does not allow, told of a spec alone: the field, the rail, its place and its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
IN_S3 = SPEC.replace("hub_id: meta-llama/Llama-2-7b-chat-hf", "s3_uri: s3://b00/m/")


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


def test_every_broken_rail_is_told_at_once(write: Write, environments: Path) -> None:
    rail = "models: [tiiuae/*]\n  licences: [mit]\n  engines: [vllm]\n  trial_mode: report\n  required_tags: [team]"
    found = broken(rail, f"{SPEC}serving: {{engine: lmi}}\n", write, environments)
    assert len(found) == 5


def test_a_tag_of_the_environment_is_one_of_the_endpoints(write: Write, environments: Path) -> None:
    assert broken("required_tags: [team]", SPEC, write, environments, more="tags: {team: search}\n") == []


def test_a_declared_licence_may_not_contradict_the_catalog(write: Write, environments: Path) -> None:
    spec = SPEC.replace("hub_id", "licence: mit, hub_id")
    (problem,) = broken("licences: [llama2]", spec, write, environments)
    assert (problem.rule, problem.field) == ("SEA108", "model.licence")
