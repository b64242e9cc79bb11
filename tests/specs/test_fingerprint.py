"""What counts in digests, as the fields of specs and plans say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Plan, values_digest
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import fingerprint
from seatrial.specs.prices import TeamPrices
from seatrial_base.field_facts import facts_of
from seatrial_base.frozen_model import digested, models_in
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

SPEC: dict[str, object] = {
    "name": "chat",
    "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
    "workload": {"input_tokens": 100, "output_tokens": 50, "concurrency": 4},
}
ENVIRONMENT = EnvironmentSpec(name="dev", region="us-east-1")
DIGESTED = (EndpointSpec, EnvironmentSpec, TeamPrices, Plan)


def paths(document: dict[str, object], parent: str = "") -> set[str]:
    """Return the dotted paths of all values that are no mappings."""
    found: set[str] = set()
    for name, value in document.items():
        is_mapping = isinstance(value, dict) and value != {}
        found |= paths(value, f"{parent}{name}.") if is_mapping else {f"{parent}{name}"}  # type: ignore[arg-type]
    return found


def digest_of(**part: Mapping[str, object]) -> str:
    parts = {name: {**SPEC.get(name, {}), **fields} for name, fields in part.items()}  # type: ignore[dict-item]
    return fingerprint(EndpointSpec.model_validate({**SPEC, **parts}), ENVIRONMENT)


def test_a_spec_of_defaults_digests_what_the_first_locks_had() -> None:
    """A field that is added without `since`, or without `planned=False`, makes every lock stale: it is seen here."""
    assert paths(digested(EndpointSpec.model_validate(SPEC))) == {
        "name",
        "objective",
        *(f"model.{name}" for name in ("hub_id", "revision", "s3_uri", "jumpstart_id", "architecture", "config_file")),
        "model.trust_remote_code",
        *(f"workload.{name}" for name in ("input_tokens", "output_tokens", "concurrency", "requests_per_second")),
        *(f"slo.{name}.{p}" for name in ("ttft_ms", "tpot_ms", "e2e_latency_ms") for p in ("p50", "p90", "p95", "p99")),
        "slo.error_rate",
        "slo.output_tok_s",
        "budget.usd_per_hour",
        *(f"serving.{name}" for name in ("engine", "engine_version", "image", "instance_types")),
        *(f"serving.overrides.{name}" for name in ("tensor_parallel_degree", "max_model_len", "max_num_seqs")),
        *(f"serving.overrides.{name}" for name in ("max_num_batched_tokens", "max_queued_requests")),
        *(f"serving.overrides.{name}" for name in ("dtype", "quantization", "extra")),
        *(f"scaling.{name}" for name in ("min_copies", "max_copies", "target_utilization")),
        *(f"trial.{name}" for name in ("mode", "concurrency_levels", "requests_per_concurrency", "warmup_requests")),
        *(f"trial.{name}" for name in ("budget_minutes", "request_timeout_s")),
    }


def test_an_environment_of_defaults_digests_what_the_first_locks_had() -> None:
    rails = ("instance_types", "usd_per_hour", "max_copies")
    assert paths(digested(ENVIRONMENT)) == {"name", "region", *(f"guard_rails.{name}" for name in rails)}


@pytest.mark.parametrize("model", sorted({model for kind in DIGESTED for model in models_in(kind)}, key=str), ids=str)
def test_a_field_that_came_later_has_a_default(model: type[BaseModel]) -> None:
    later = [name for name, facts in facts_of(model).items() if facts.since is not None]
    assert not [name for name in later if model.model_fields[name].is_required()]


def test_a_name_that_explains_does_so_wherever_a_plan_has_it() -> None:
    """A plan's digest leaves names out at every depth."""
    explaining = {name for kind in models_in(Plan) for name, facts in facts_of(kind).items() if facts.explains}
    assert explaining == {
        *("because", "sentence", "warnings", "carried_chance", "saturation_requests_per_second"),
        *("unpriced", "chance", "safer", "probe", "proposals", "promoted"),
    }
    left_out = {kind for name in ("safer", "probe") for kind in models_in(Plan.model_fields[name].annotation)}
    for kind in {*models_in(Plan)} - left_out:
        named = explaining & kind.model_fields.keys()
        assert {name for name in named if not facts_of(kind)[name].explains} == set()


def test_what_came_later_is_in_a_plan_only_where_it_differs_from_its_default() -> None:
    plain = sample_plan()
    later = {name for name, facts in facts_of(Plan).items() if facts.since is not None}
    assert not later & plain.model_dump(mode="json").keys()
    moved = sample_plan(generation=2)
    assert moved.model_dump(mode="json")["generation"] == 2
    assert moved.digest != plain.digest


def test_a_goal_alone_counts_as_it_did_and_another_headroom_counts() -> None:
    assert digested(EndpointSpec.model_validate({**SPEC, "objective": "cost"}))["objective"] == "cost"
    assert digest_of(objective={"headroom": 0.95}) == digest_of() != digest_of(objective={"headroom": 0.9})


def test_texts_are_in_no_digest_of_a_plan() -> None:
    document = sample_plan().model_dump(mode="json")
    reworded = {**document, "warnings": ["another"], "engine": {**document["engine"], "because": "another"}}
    assert values_digest(reworded) == values_digest(document)


@pytest.mark.parametrize(
    ("part", "fields"), [("serving", {"code": "auto"}), ("model", {"jumpstart_id": "x", "jumpstart_metadata": "auto"})]
)
def test_a_folder_called_auto_counts(part: str, fields: dict[str, object]) -> None:
    """Digests took the name for a default that says nothing."""
    others = {name: value for name, value in fields.items() if value != "auto"}
    assert digest_of(**{part: fields}) != digest_of(**{part: others})


def test_auto_counts_as_nothing_where_the_engine_decides_then() -> None:
    assert digest_of(serving={"overrides": {"kv_cache_dtype": "auto"}}) == digest_of()
    assert digest_of(serving={"overrides": {"kv_cache_dtype": "fp8_e4m3"}}) != digest_of()


def test_asynchronous_inference_counts_and_its_settings_do_not() -> None:
    first, other = ({"asynchronous": {"output_s3_uri": f"s3://{name}/a/"}} for name in ("here", "there"))
    assert (
        digest_of(hosting=first) == digest_of(hosting=other) != digest_of(hosting={"data_cache": True}) == digest_of()
    )
