"""`hosting` and `serving.adapters`: defaults, contradictions, and what makes a lock stale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.specs.load import load_spec
from seatrial.specs.router import router_findings
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/a"
P5 = "serving: {instance_types: [ml.p5.48xlarge]}"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/a:1"
LORA = "overrides: {lora: {max_rank: 16, max_adapters: 2}}"


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


@pytest.fixture
def loaded(write: Write, environments: Path, endpoint_text: str) -> Load:
    def load(added: str) -> LoadedSpec:
        off = 'trial: {mode: "off"}\n' if "single_model" in added and "trial:" not in added else ""
        return load_spec(write(f"{endpoint_text}{added}\n{off}"), "dev", environments=environments)

    return load


class Load(Protocol):
    def __call__(self, added: str) -> LoadedSpec: ...


def found(load: Load, added: str) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as caught:
        load(added)
    return [(problem.rule, problem.field) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (f"serving: {{image: {IMAGE.replace('us-east-1', 'eu-west-1')}}}", [("SEA389", "serving.image")]),
        ("serving: {image: 763104330519.dkr.ecr.us-east-1.amazonaws.com/vllm:1}", [("SEA389", "serving.image")]),
        (f"hosting: {{shadow: {{image: {IMAGE}}}}}", [("SEA125", "hosting.shadow")]),
        (
            "serving: {adapters: [{name: candidate-0a1b2c3d, s3_uri: s3://bucket/a.tar.gz}], "
            "overrides: {lora: {max_rank: 8, max_adapters: 1}}}",
            [("SEA140", "serving.adapters[0].name")],
        ),
        ("serving: {overload: refuse}", [("SEA148", "serving.overload")]),
        (
            "serving: {overload: refuse}\nslo: {ttft_ms: {p99: 500}}\n"
            "hosting: {kind: single_model, asynchronous: {output_s3_uri: 's3://bucket/answers/'}}",
            [("SEA148", "serving.overload")],
        ),
        ("hosting: {kind: single_model}\ntrial: {mode: report}", [("SEA136", "trial.mode")]),
        ("hosting: {kind: single_model, data_cache: true}", [("SEA125", "hosting.data_cache")]),
        ("hosting: {kind: single_model, more_models: [b]}", [("SEA125", "hosting.more_models")]),
        (
            "hosting: {routing: {strategy: prefix_aware}}",
            [("SEA126", "hosting.routing.prefix_length"), ("SEA126", "hosting.routing.concurrency_threshold")],
        ),
        ("hosting: {routing: {prefix_length: 1024}}", [("SEA126", "hosting.routing.prefix_length")]),
        ("hosting: {routing: {strategy: prefix_aware, prefix_length: 1023, concurrency_threshold: 1}}",
         [("SEA107", "hosting.routing.prefix_length")]),
        ("hosting: {instance_pools: [ml.g5.xlarge, ml.g5.xlarge]}", [("SEA127", "hosting.instance_pools[1]")]),
        (
            "hosting: {instance_pools: [ml.g6.xlarge, ml.g5.xlarge]}\nserving: {instance_types: [ml.g5.xlarge]}",
            [("SEA127", "serving.instance_types")],
        ),
        (f"hosting: {{instance_pools: [ml.g6.xlarge, ml.g5.xlarge], capacity_reservation_arn: '{PLAN}'}}",
         [("SEA127", "hosting.capacity_reservation_arn")]),
        (f"hosting: {{capacity_reservation_arn: '{PLAN}'}}", [("SEA144", "hosting.capacity_reservation_arn")]),
        (
            f"hosting: {{capacity_reservation_arn: '{PLAN}'}}\n"
            "serving: {instance_types: [ml.g5.xlarge, ml.p5.48xlarge]}",
            [("SEA144", "hosting.capacity_reservation_arn"), ("SEA144", "serving.instance_types[0]")],
        ),
        (
            f"hosting: {{capacity_reservation_arn: '{PLAN}', capacity_reservation_ends_at: '2027-02-30T11:30Z'}}\n{P5}",
            [("SEA145", "hosting.capacity_reservation_ends_at")],
        ),
        ("hosting: {capacity_reservation_ends_at: '2027-02-20T11:30:00Z'}",
         [("SEA145", "hosting.capacity_reservation_ends_at")]),
        (f"hosting: {{capacity_reservation_arn: '{PLAN}', capacity_reservation_notice_days: 3}}\n{P5}",
         [("SEA145", "hosting.capacity_reservation_notice_days")]),
        (f"hosting: {{capacity_reservation_arn: '{PLAN.replace('east', 'west')}'}}\n{P5}",
         [("SEA146", "hosting.capacity_reservation_arn")]),
        ("hosting: {ssm_access: true}", [("SEA111", "hosting.ssm_access")]),
        ("hosting: {core_dump_s3_uri: 's3://bucket'}", [("SEA107", "hosting.core_dump_s3_uri")]),
        ("hosting: {provision_timeout_s: 600}", [("SEA127", "hosting.provision_timeout_s")]),
        ("hosting: {more_models: [chat]}", [("SEA128", "hosting.more_models[0]")]),
        ("hosting: {more_models: [a, a]}", [("SEA128", "hosting.more_models[1]")]),
        ("hosting: {router: true}", [("SEA129", "hosting.router")]),
        ("hosting: {traffic: [{spec: chat, weight: 1}, {spec: b, weight: 1}]}",
         [("SEA129", "hosting.traffic[1].spec")]),
        ("hosting: {more_models: [b], traffic: [{spec: chat, weight: 0}, {spec: b, weight: 0}]}",
         [("SEA129", "hosting.traffic")]),
        ("hosting: {kind: single_model, variants: [{name: a}, {name: a}]}",
         [("SEA130", "hosting.variants"), ("SEA130", "hosting.variants[1].name")]),
        ("hosting: {kind: single_model, shadow: {}}", [("SEA130", "hosting.shadow")]),
        ("serving: {adapters: [{name: sql, s3_uri: 's3://bucket/sql.tar.gz'}]}", [("SEA132", "serving.adapters")]),
        (f"serving: {{adapters: [{{name: sql, s3_uri: 's3://bucket/sql'}}], {LORA}}}",
         [("SEA107", "serving.adapters[0].s3_uri")]),
    ],
)  # fmt: skip
def test_a_contradiction_is_told_at_its_field(loaded: Load, added: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(found(loaded, added)) == sorted(expected)


@pytest.mark.parametrize(
    "added",
    ["hosting: []", "hosting: 3", "hosting: {variants: x, traffic: 1, routing: 2, kind: 4, instance_pools: {}}"],
)
def test_a_value_of_the_wrong_type_is_told_and_nothing_breaks(loaded: Load, added: str) -> None:
    assert found(loaded, added)


def test_what_is_only_deployed_makes_no_lock_stale(loaded: Load) -> None:
    bare = loaded("").digest
    deployed = (
        "hosting: {data_cache: true, more_models: [b], placement: {strategy: binpack}, "
        "routing: {strategy: prefix_aware, prefix_length: 2048, concurrency_threshold: 8}}"
    )
    assert loaded("hosting: {}").digest == loaded(deployed).digest == bare


@pytest.mark.parametrize(
    "added", ["hosting: {kind: single_model}", "hosting: {instance_pools: [ml.g6.xlarge, ml.g5.xlarge]}"]
)
def test_what_is_planned_for_makes_a_lock_stale(loaded: Load, added: str) -> None:
    untried = 'trial: {mode: "off"}'
    assert loaded(f"{added}\n{untried}").digest != loaded(untried).digest


@pytest.mark.parametrize(
    ("slo", "predicted_ms", "line_bytes", "told"),
    [
        ("{}", None, 6_291_455, []),
        ("{ttft_ms: {p95: 500}}", None, 9, ["slo.ttft_ms is of streams"]),
        ("{e2e_latency_ms: {p95: 60001}}", None, 9, ["its SLO allows 60.001 s"]),
        ("{e2e_latency_ms: {p95: 60001}}", 60_000, 9, []),
        ("{e2e_latency_ms: {p95: 60000}}", 61_000, 9, ["p95 is predicted to take 61 s"]),
        ("{}", None, 6_291_457, ["a line of requests.jsonl has 6,291,457 bytes"]),
    ],
)
def test_what_does_not_fit_through_the_router_is_told(
    write: Write, environments: Path, slo: str, predicted_ms: float | None, line_bytes: int, told: list[str]
) -> None:
    router = "more_models: [b], traffic: [{spec: chat, weight: 1}, {spec: b, weight: 1}]"
    path = write(
        "name: chat\nmodel: {hub_id: meta-llama/Llama-2-7b-chat-hf, accept_eula: true}\n"
        f"workload: {{input_tokens: 9, output_tokens: 9, concurrency: 1, dataset: requests.jsonl}}\nslo: {slo}\n"
        f"hosting: {{router: true, {router}}}\n"
    )
    line = '{"input_tokens": 9, "output_tokens": 9, "text": ""}\n'
    (path.parent / "requests.jsonl").write_text(line.replace('""', f'"{"a" * (line_bytes - len(line))}"'))
    loaded = load_spec(path, "dev", environments=environments)
    findings = [f"{each.rule}: {each.message}" for each in router_findings(loaded, predicted_ms)]
    assert [each.startswith(f"SEA147: {start}") for each, start in zip(findings, told, strict=True)] == [True] * len(
        told
    )
    hosting = loaded.endpoint.hosting.model_copy(update={"router": False})
    unrouted = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"hosting": hosting}))
    assert not [*router_findings(unrouted, predicted_ms)]


@pytest.mark.parametrize(
    ("hosting", "field"),
    [
        ("routing: {strategy: kv_aware}", "hosting.routing.strategy"),
        ("accelerator_partition: mig-3g.40gb", "hosting.accelerator_partition"),
        ("inference_router: {name: chat}", "hosting.inference_router"),
        ("cross_region_traffic: {max_percent: 20}", "hosting.cross_region_traffic"),
    ],
)
def test_what_cloudformation_cannot_make_is_refused_with_its_reason(loaded: Load, hosting: str, field: str) -> None:
    assert ("SEA139", field) in found(loaded, f"hosting: {{{hosting}}}")


def test_an_asynchronous_endpoint_has_no_openai_path(write: Write, environments: Path, endpoint_text: str) -> None:
    hosting = 'hosting: {kind: single_model, asynchronous: {output_s3_uri: "s3://bucket/answers/"}}'
    text = endpoint_text.replace("workload:\n", "workload:\n  api: openai\n")
    path = write(f'{text}{hosting}\ntrial: {{mode: "off"}}\n')
    with pytest.raises(SpecError) as caught:
        load_spec(path, "dev", environments=environments)
    assert [(problem.rule, problem.field) for problem in caught.value.problems] == [("SEA136", "workload.api")]
