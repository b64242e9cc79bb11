"""What the laptop has in place of what a spec asks for: a load that its engine carries within the trial's minute."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.trial import level_s
from seatrial.specs.environment import EMBEDDED_ACCOUNT
from seatrial.specs.load import load_spec
from seatrial.specs.local_values import MOST_MODEL_LEN
from seatrial.specs.workload import rates_of
from seatrial_laptop.engine.settings import KV_POOL_TOKENS

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec

WORKLOAD = "workload: {input_tokens: 1000, output_tokens: 200, concurrency: 16}"
SLO = "slo: {ttft_ms: {p95: 1000}, tpot_ms: {p95: 50}}"


def loaded(folder: Path, *fields: str, environment: str = "local") -> LoadedSpec:
    (folder / "local.yaml").write_text(f'name: local\naccount: "{EMBEDDED_ACCOUNT}"\nregion: us-east-1\n')
    (folder / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    spec = "\n".join(("name: chat", "model: {hub_id: Qwen/Qwen2.5-0.5B-Instruct}", *fields, ""))
    (folder / "chat.yaml").write_text(spec)
    return load_spec(folder / "chat.yaml", environment, environments=folder)


def words(spec: LoadedSpec) -> list[str]:
    return [each.words for each in spec.local_values]


def test_load_slo_and_trial_of_a_spec_for_gpus(tmp_path: Path) -> None:
    spec = loaded(tmp_path, WORKLOAD, SLO)
    assert words(spec) == [
        "workload.input_tokens: 1,000 -> 64",
        "workload.output_tokens: 200 -> 32",
        "workload.concurrency: 16 -> 8",
        "slo.ttft_ms.p95: 1,000 -> 10,000",
        "slo.tpot_ms.p95: 50 -> 500",
        "trial.concurrency_levels: default -> 1, 4, 8, 16",
        "trial.budget_minutes: 10 -> 1",
        "trial.request_timeout_s: 60 -> 20",
    ]
    assert (spec.endpoint.workload.input_tokens, spec.endpoint.workload.concurrency) == (64, 8)
    assert (spec.endpoint.slo.ttft_ms.p95, spec.endpoint.trial.concurrency_levels) == (10_000, (1, 4, 8, 16))


def test_an_environment_of_an_account_has_what_the_spec_says(tmp_path: Path) -> None:
    spec = loaded(tmp_path, WORKLOAD, SLO, environment="dev")
    assert (spec.local_values, spec.endpoint.workload.input_tokens, spec.endpoint.slo.ttft_ms.p95) == ((), 1000, 1000)


def test_what_is_written_for_the_laptop_is_kept(tmp_path: Path) -> None:
    local = (
        "environments: {local: {workload: {input_tokens: 3000, concurrency: 12}, slo: {ttft_ms: {p95: 700}}, "
        "trial: {budget_minutes: 5}}}"
    )
    spec = loaded(tmp_path, WORKLOAD, SLO, local)
    assert words(spec) == [
        "workload.output_tokens: 200 -> 32",
        "slo.tpot_ms.p95: 50 -> 500",
        "trial.concurrency_levels: default -> 1, 6, 12, 24",
        "trial.request_timeout_s: 60 -> 20",
    ]


def test_what_is_taken_away_for_the_laptop_is_not_there(tmp_path: Path) -> None:
    spec = loaded(tmp_path, WORKLOAD, SLO, "environments: {local: {slo: {tpot_ms: null}}}")
    assert spec.endpoint.slo.tpot_ms.p95 is None
    assert not any("tpot" in each for each in words(spec))


def test_a_load_that_the_engine_carries_is_kept_and_so_are_limits_of_the_trial(tmp_path: Path) -> None:
    trial = "trial: {concurrency_levels: [1, 2, 4], budget_minutes: 30, request_timeout_s: 90}"
    spec = loaded(tmp_path, "workload: {input_tokens: 48, output_tokens: 16, concurrency: 2}", trial)
    assert words(spec) == []


def test_levels_beyond_twice_the_load_are_left_out(tmp_path: Path) -> None:
    spec = loaded(tmp_path, WORKLOAD, "trial: {concurrency_levels: [2, 16, 64]}")
    assert spec.endpoint.trial.concurrency_levels == (2, 16)
    assert loaded(tmp_path, WORKLOAD, "trial: {concurrency_levels: [64]}").endpoint.trial.concurrency_levels == (8,)


def test_one_copy_carries_the_load(tmp_path: Path) -> None:
    spec = loaded(tmp_path, WORKLOAD, "scaling: {min_copies: 3, max_copies: 8}")
    assert "scaling.min_copies: 3 -> 1" in words(spec)
    assert (spec.endpoint.scaling.min_copies, spec.endpoint.scaling.max_copies) == (1, 8)
    spec = loaded(tmp_path, WORKLOAD, "scaling: {min_copies: 3, max_copies: 3}")
    assert words(spec)[3:5] == ["scaling.min_copies: 3 -> 1", "scaling.max_copies: 3 -> 1"]


@pytest.mark.parametrize("scaling", ["{min_copies: 0, max_copies: 2}", "{min_copies: 1, max_copies: 1}"])
def test_scaling_to_zero_and_a_single_copy_stay(tmp_path: Path, scaling: str) -> None:
    assert not any("scaling" in each for each in words(loaded(tmp_path, WORKLOAD, f"scaling: {scaling}")))


def test_copies_that_are_written_for_the_laptop_run_there(tmp_path: Path) -> None:
    local = "environments: {local: {scaling: {min_copies: 2, max_copies: 2}}}"
    scaling = loaded(tmp_path, WORKLOAD, "scaling: {min_copies: 1, max_copies: 4}", local).endpoint.scaling
    assert (scaling.min_copies, scaling.max_copies) == (2, 2)


def test_bounds_of_latencies_stay_apart_and_impossible_ones_stay_so(tmp_path: Path) -> None:
    slo = loaded(tmp_path, WORKLOAD, "slo: {ttft_ms: {p50: 0.01, p95: 15000, p99: 20000}}").endpoint.slo
    assert (slo.ttft_ms.p50, slo.ttft_ms.p95, slo.ttft_ms.p99) == (0.1, 150_000, 200_000)


def test_random_weights_are_not_judged_by_what_they_answer(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"prompt": "2 + 2?", "reference": "4"}\n')
    slo = "slo: {output_tok_s: 3000, quality: {evaluation_set: set.jsonl, exact_match: 0.8}}"
    spec = loaded(tmp_path, WORKLOAD, slo)
    assert words(spec)[3:5] == ["slo.output_tok_s: 3,000 -> 50", "slo.quality.exact_match: 0.8 -> none"]


def test_lengths_keep_their_form(tmp_path: Path) -> None:
    workload = (
        "workload: {input_tokens: 1000, input_tokens_stddev: 300, output_tokens: 200, output_tokens_stddev: 99, "
        "shared_prefix_tokens: 500, concurrency: 4}"
    )
    asked = loaded(tmp_path, workload).endpoint.workload
    assert (asked.input_tokens, asked.input_tokens_stddev, asked.shared_prefix_tokens) == (64, 19, 32)
    assert (asked.output_tokens, asked.output_tokens_stddev) == (32, 15)


def test_requests_of_a_file_keep_their_proportions(tmp_path: Path) -> None:
    lines = ({"input_length": 500, "output_length": 100}, {"input_length": 1500, "output_length": 300})
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    workload = "workload: {input_tokens: 1000, output_tokens: 200, concurrency: 4, dataset: requests.jsonl}"
    spec = loaded(tmp_path, workload)
    assert spec.dataset.pairs == ((32, 16), (96, 48))
    assert (spec.endpoint.workload.input_tokens, spec.endpoint.workload.output_tokens) == (64, 32)


@pytest.mark.parametrize("percentile", ["p95", "p99"])
def test_an_open_loop_proves_its_slo_within_its_budget(tmp_path: Path, percentile: str) -> None:
    workload = "workload: {input_tokens: 1000, output_tokens: 200, requests_per_second: 50, arrivals: poisson}"
    spec = loaded(tmp_path, workload, f"slo: {{ttft_ms: {{{percentile}: 1000}}}}")
    rates = rates_of(spec.endpoint)
    assert rates[-1] == 4.0
    assert level_s(spec, 1, rates) * len(rates) < 60 * spec.endpoint.trial.budget_minutes


def test_long_contexts_fit_the_cache_of_the_engine(tmp_path: Path) -> None:
    workload = "workload: {input_tokens: 90000, output_tokens: 200, concurrency: 4, max_model_len: 131072}"
    overrides = "serving: {overrides: {max_model_len: 65536}}"
    assert loaded(tmp_path, workload).endpoint.workload.max_model_len == MOST_MODEL_LEN
    short = "workload: {input_tokens: 9000, output_tokens: 200, concurrency: 4}"
    assert loaded(tmp_path, short, overrides).endpoint.serving.overrides.max_model_len == MOST_MODEL_LEN
    assert KV_POOL_TOKENS // MOST_MODEL_LEN == 32


def test_users_think_half_a_second_between_turns(tmp_path: Path) -> None:
    workload = (
        "workload: {input_tokens: 60, output_tokens: 30, concurrency: 4, turns: 3, turn_delay_s: 20, "
        "turn_delay_stddev_s: 5}"
    )
    asked = loaded(tmp_path, workload).endpoint.workload
    assert (asked.turns, asked.turn_delay_s, asked.turn_delay_stddev_s) == (3, 0.5, 0.125)
