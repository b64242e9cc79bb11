"""The specs that a probe deploys: one copy, one level, fixed hardware, mode report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.probe.pinned import LONGEST_NAME, ProbedHardware, pin, pinned_name, probed_as
from seatrial.specs.load import load_spec
from seatrial.specs.spec_files import calibration_path
from seatrial_base.errors import SpecError
from tests.probe.conftest import CHEAP, DEAR, LEVEL, bound_in_doubt, locked_as

if TYPE_CHECKING:
    from pathlib import Path

    from tests.probe.conftest import Locked


def test_each_deployment_is_pinned(locked: Locked) -> None:
    plan, candidate = locked.pinned()
    for pinned, instance_type in ((plan, DEAR), (candidate, CHEAP)):
        endpoint, probed = pinned.loaded.endpoint, pinned.probed
        assert endpoint.serving.instance_types == (instance_type,)
        assert endpoint.serving.overrides.tensor_parallel_degree == probed.hardware.tensor_parallel_degree
        assert (endpoint.trial.mode, endpoint.trial.concurrency_levels) == ("report", (probed.concurrency_per_copy,))
        assert (endpoint.scaling.min_copies, endpoint.scaling.max_copies) == (1, 1)
        assert endpoint.slo == locked.loaded.endpoint.slo
        assert ProbedHardware.of(pinned.plan) == probed.hardware
        assert pinned.plan.concurrency_levels.value == (probed.concurrency_per_copy,)
        assert pinned.plan.gate_concurrency_per_copy.value == probed.concurrency_per_copy
    assert [each.deployment.stack_name for each in (plan, candidate)] == [
        "seatrial-dev-chat-probe-plan",
        "seatrial-dev-chat-probe-candidate",
    ]


def test_rates_budget_and_adaptive_search_give_way(tmp_path: Path) -> None:
    locked = locked_as(
        tmp_path,
        workload={"input_tokens": 64, "output_tokens": 64, "requests_per_second": 1},
        objective={"headroom": 0.9},
        budget={"usd_per_hour": 9.0, "discount": 0.25},
        trial={"search": "adaptive", "goal": "max_concurrency", "requests_per_concurrency": 5},
    )
    probed = probed_as(locked.plan, ProbedHardware(CHEAP, 1), 3)
    (pinned,) = pin(locked.loaded, [probed], tmp_path / "probe", locked.environments)
    endpoint = pinned.loaded.endpoint
    assert (endpoint.workload.concurrency, endpoint.workload.requests_per_second) == (3, None)
    assert (endpoint.budget.usd_per_hour, endpoint.budget.discount) == (None, 0.25)
    assert (endpoint.trial.search, endpoint.trial.goal, endpoint.trial.requests_per_concurrency) == ("sweep", "knee", 5)


def test_random_arrivals_give_way_and_the_lengths_of_a_file_stay(tmp_path: Path) -> None:
    """A probe is one level of a closed loop, of the requests that the spec describes."""
    (tmp_path / "cdk.json").write_text("{}")
    (tmp_path / "requests.jsonl").write_text('{"input_tokens": 64, "output_tokens": 64}\n')
    locked = locked_as(
        tmp_path,
        workload={
            "input_tokens": 64,
            "output_tokens": 64,
            "requests_per_second": 8,
            "arrivals": "gamma",
            "arrival_smoothness": 0.5,
            "dataset": "requests.jsonl",
        },
    )
    probed = probed_as(locked.plan, ProbedHardware(CHEAP, 1), 3)
    (pinned,) = pin(locked.loaded, [probed], tmp_path / "probe", locked.environments)
    workload = pinned.loaded.endpoint.workload
    assert (workload.arrivals, workload.arrival_smoothness, workload.concurrency) == ("closed", 1.0, 3)
    assert pinned.loaded.dataset.pairs == locked.loaded.dataset.pairs == ((64, 64),)


def test_a_throughput_of_all_copies_is_shared_by_them_and_not_planned_for(tmp_path: Path) -> None:
    """The planner refuses a deployment that is predicted to miss it: the probe is to measure just that."""
    scaling = {"min_copies": 3, "max_copies": 3}
    locked = locked_as(tmp_path, slo={"output_tok_s": 60.0}, scaling=scaling, serving={"instance_types": [CHEAP]})
    probed = probed_as(locked.plan, ProbedHardware(CHEAP, 1), None)
    (pinned,) = pin(locked.loaded, [probed], tmp_path / "probe", locked.environments)
    assert pinned.loaded.endpoint.slo.output_tok_s is None
    assert pinned.least_tok_s == pytest.approx(20.0)


def test_overrides_of_environments_are_merged_and_files_found_from_the_new_place(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text("{}")
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "architectures": ["LlamaForCausalLM"],
                "model_type": "llama",
                "hidden_size": 4096,
                "intermediate_size": 11008,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 32,
                "vocab_size": 32000,
                "max_position_embeddings": 4096,
                "torch_dtype": "float16",
            }
        )
    )
    model = {"hub_id": "me/own-model", "config_file": "config.json"}
    locked = locked_as(tmp_path, model=model, environments={"dev": {"trial": {"budget_minutes": 4}}})
    (pinned,) = pin(
        locked.loaded,
        [probed_as(locked.plan, ProbedHardware(CHEAP, 1), 2)],
        tmp_path / ".seatrial" / "x",
        locked.environments,
    )
    assert pinned.loaded.endpoint.trial.budget_minutes == 4
    assert pinned.loaded.endpoint.model.config_file == "../../../config.json"
    assert pinned.plan.architecture.endswith("config.json")
    assert "environments" not in yaml.safe_load(pinned.loaded.path.read_text())


def test_every_problem_of_every_deployment_is_told_and_nothing_is_left(locked: Locked, tmp_path: Path) -> None:
    probed = [
        probed_as(locked.plan, hardware, 4)
        for hardware in (ProbedHardware("ml.x9.large", 1), ProbedHardware(CHEAP, 64))
    ]
    folder = tmp_path / "probe"
    with pytest.raises(SpecError) as refused:
        pin(locked.loaded, probed[:1], folder, locked.environments)
    alone = refused.value.problems
    with pytest.raises(SpecError) as both:
        pin(locked.loaded, probed[1:], folder, locked.environments)
    assert alone
    assert both.value.problems
    assert not folder.exists()


def test_the_calibration_of_the_endpoint_is_used(tmp_path: Path) -> None:
    bound = bound_in_doubt(tmp_path)
    entry = {
        "instance_type": CHEAP,
        "tensor_parallel_degree": 1,
        "engine": "lmi",
        "engine_version": "0.36.0-lmi27.0.0",
        "quantization": None,
        "model": "meta-llama/Llama-2-7b-chat-hf",
        "input_tokens": 256,
        "output_tokens": 256,
        "fixed": 2.0,
        "marginal": 2.0,
        "points": [{"concurrency": LEVEL, "output_tok_s": 200.0, "ms_per_token_p90": None}],
        "throughput_error": 0.5,
        "latency_error": 0.5,
        "source": {"file": "x", "digest": "0123456789abcdef", "engine_note": ""},
    }
    path = calibration_path(tmp_path / "chat.yaml")
    path.write_text(json.dumps({"schema_version": "1", "environments": {"dev": entry}}))
    locked = locked_as(tmp_path, slo={"tpot_ms": {"p95": bound}})
    (pinned,) = pin(
        locked.loaded,
        [probed_as(locked.plan, ProbedHardware(CHEAP, 1), LEVEL)],
        tmp_path / "probe",
        locked.environments,
    )
    assert pinned.loaded.calibration == entry
    assert pinned.plan.curve[0].tpot_p95_ms > 1.5 * bound


@pytest.mark.parametrize("name", ["chat", "a" * 24, "a" * 25, "a" * 40, f"{'a' * 15}--{'b' * 20}", "a-" * 19 + "a"])
@pytest.mark.parametrize("role", ["plan", "candidate"])
def test_a_name_is_as_long_as_a_spec_allows(name: str, role: str) -> None:
    made = pinned_name(name, role)
    assert len(made) <= LONGEST_NAME
    assert made.endswith(f"-probe-{role}")
    assert "--probe" not in made


def test_two_long_names_stay_two() -> None:
    assert pinned_name("a" * 39 + "b", "candidate") != pinned_name("a" * 39 + "c", "candidate")


def test_what_no_single_copy_can_keep_is_left_out_of_the_environment(tmp_path: Path) -> None:
    locked = locked_as(tmp_path, serving={"instance_types": [CHEAP]}, slo={"output_tok_s": 10.0})
    rails = "{trial_mode: rollback, slo: {output_tok_s: 10}, usd_per_million_output_tokens: 1000, max_copies: 5}"
    (locked.environments / "qa.yaml").write_text("name: qa\nregion: us-east-1\n")
    governed = f"name: dev\nregion: us-east-1\nguard_rails: {rails}\npromotion: {{source: qa, required: true}}\n"
    (locked.environments / "dev.yaml").write_text(governed)
    (locked.environments / "prices.yaml").write_text("schema_version: '1'\nregions: {}\n")
    loaded = load_spec(locked.loaded.path, "dev", environments=locked.environments)
    probed = probed_as(locked.plan, ProbedHardware(CHEAP, 1), None)
    (pinned,) = pin(loaded, [probed], tmp_path / "probe", locked.environments)
    environment = pinned.loaded.environment
    assert (environment.guard_rails.max_copies, environment.guard_rails.trial_mode) == (5, None)
    assert environment.promotion.source is None
    assert pinned.loaded.prices == loaded.prices
    assert pinned.environments == tmp_path / "probe" / "plan" / "environments"
