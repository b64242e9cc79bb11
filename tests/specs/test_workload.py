"""What users send, as a spec describes it: lengths, their file, shared prefixes, arrivals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec, with_recipe
from seatrial.specs.workload import rates_of
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec

FIXED = "input_tokens: 550, output_tokens: 150"
SPREAD = f"{FIXED}, input_tokens_stddev: 150, output_tokens_stddev: 50"
RATE = "requests_per_second: 4"


def loaded(folder: Path, workload: str, rest: str = "") -> LoadedSpec:
    (folder / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    text = f"name: chat\nmodel: {{hub_id: meta-llama/Llama-2-7b-chat-hf}}\nworkload: {{{workload}}}\n{rest}\n"
    (folder / "chat.yaml").write_text(text)
    return load_spec(folder / "chat.yaml", "dev", environments=folder)


def problems(folder: Path, workload: str, rest: str = "") -> list[tuple[str, str, str]]:
    """Return rule, field and message of each problem."""
    with pytest.raises(SpecError) as refused:
        loaded(folder, workload, rest)
    return [(problem.rule, problem.field, problem.message) for problem in refused.value.problems]


def requests_file(folder: Path, *lines: Mapping[str, object]) -> None:
    (folder / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    "more",
    [
        "input_tokens_stddev: 1",
        "output_tokens_stddev: 1",
        "shared_prefix_tokens: 1",
        "shared_prefix_tokens: 1, prefix_groups: 2",
        "arrivals: poisson",
        "arrivals: gamma, arrival_smoothness: 2",
    ],
)
def test_each_field_makes_a_lock_stale(tmp_path: Path, more: str) -> None:
    assert loaded(tmp_path, f"{FIXED}, {RATE}, {more}").digest != loaded(tmp_path, f"{FIXED}, {RATE}").digest


def test_a_distribution(tmp_path: Path) -> None:
    lengths = loaded(tmp_path, f"{SPREAD}, concurrency: 4").lengths
    assert lengths.words == "550 ± 150 + 150 ± 50 tokens"
    assert lengths.longest == 1_299


def test_every_mistake_of_a_workload_at_once(tmp_path: Path) -> None:
    workload = (
        "input_tokens: 101, input_tokens_stddev: 60, output_tokens: 150, output_tokens_stddev: 50, concurrency: 4, "
        "shared_prefix_tokens: 101, prefix_hit_rate: 0.5, arrivals: poisson, arrival_smoothness: 2, max_model_len: 260"
    )
    found = problems(tmp_path, workload, "trial: {search: adaptive}")
    assert sorted((rule, field) for rule, field, _ in found) == [
        ("SEA108", "trial.search"),
        ("SEA108", "workload.arrival_smoothness"),
        ("SEA108", "workload.arrivals"),
        ("SEA108", "workload.input_tokens_stddev"),
        ("SEA108", "workload.prefix_hit_rate"),
        ("SEA108", "workload.shared_prefix_tokens"),
    ]


def test_the_longest_request_must_fit(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{SPREAD}, concurrency: 4, max_model_len: 1298") == [
        ("SEA108", "workload.max_model_len", "max_model_len 1298 is below the workload's longest request, 1299 tokens")
    ]
    assert loaded(tmp_path, f"{SPREAD}, concurrency: 4, max_model_len: 1299").lengths.longest == 1_299


def test_a_prefix_is_told_once(tmp_path: Path) -> None:
    found = problems(tmp_path, f"{FIXED}, concurrency: 4, shared_prefix_tokens: 9", "trial: {shared_prefix_tokens: 9}")
    assert found == [
        (
            "SEA108",
            "trial.shared_prefix_tokens",
            "workload.shared_prefix_tokens and trial.shared_prefix_tokens exclude each other",
        )
    ]


def test_groups_need_a_prefix(tmp_path: Path) -> None:
    found = problems(tmp_path, f"{FIXED}, concurrency: 4, prefix_groups: 2")
    assert found == [("SEA108", "workload.prefix_groups", "prefix_groups needs shared_prefix_tokens")]


@pytest.mark.parametrize(
    ("caching", "rate"),
    [("", 0.0), ("serving: {overrides: {prefix_caching: true}}", 0.4), ("optimization: [prefix_cache]", 0.4)],
)
def test_a_shared_prefix_is_cached_where_the_spec_turns_caching_on(tmp_path: Path, caching: str, rate: float) -> None:
    """220 of 550 tokens."""
    endpoint = loaded(tmp_path, f"{FIXED}, concurrency: 4, shared_prefix_tokens: 220", caching).endpoint
    assert endpoint.workload.prefix_hit_rate == rate


def test_a_recipes_hit_rate_follows_from_the_prefix(tmp_path: Path) -> None:
    recipe = "optimization: [{prefix_cache: {hit_rate: 0.5}}]"
    (found,) = problems(tmp_path, f"{FIXED}, concurrency: 4, shared_prefix_tokens: 220", recipe)
    assert found[0] == "SEA230"


def test_an_open_loop_offers_shares_of_the_rate(tmp_path: Path) -> None:
    assert rates_of(loaded(tmp_path, f"{FIXED}, {RATE}, arrivals: poisson").endpoint) == (2.0, 3.0, 4.0)
    assert rates_of(loaded(tmp_path, f"{FIXED}, {RATE}").endpoint) == ()


def test_the_lengths_of_a_file(tmp_path: Path) -> None:
    requests_file(
        tmp_path,
        {"input_tokens": 100, "output_tokens": 10},
        {"prompt": "Why is the sea salt?", "input_tokens": 300, "output_tokens": 30, "timestamp": 1500},
        {"timestamp": 0, "input_length": 200, "output_length": 20, "hash_ids": [0]},
        {"input_length": 9, "output_length": 0},
    )
    spec = loaded(tmp_path, "input_tokens: 200, output_tokens: 20, concurrency: 4, dataset: requests.jsonl")
    assert spec.dataset.pairs == ((100, 10), (300, 30), (200, 20))
    assert spec.lengths.input.at(0.5) == 200


def test_another_file_makes_a_lock_stale(tmp_path: Path) -> None:
    workload = "input_tokens: 200, output_tokens: 20, concurrency: 4, dataset: requests.jsonl"
    requests_file(tmp_path, *({"input_tokens": tokens, "output_tokens": 20} for tokens in (100, 300)))
    before = loaded(tmp_path, workload).digest
    requests_file(tmp_path, *({"input_tokens": tokens, "output_tokens": 20} for tokens in (150, 250)))
    assert loaded(tmp_path, workload).digest != before


def test_the_means_are_those_of_the_file(tmp_path: Path) -> None:
    requests_file(tmp_path, *({"input_tokens": tokens, "output_tokens": 20} for tokens in (100, 301)))
    workload = "input_tokens: 500, output_tokens: 20, concurrency: 4, dataset: requests.jsonl, max_model_len: 520"
    assert problems(tmp_path, workload) == [
        ("SEA108", "workload.input_tokens", "input_tokens 500 is not the mean of the dataset, 200.5"),
    ]


RECORDED = "input_tokens: 200, output_tokens: 20, requests_per_second: 4, dataset: requests.jsonl, arrivals: recorded"


def recording(folder: Path, *times_ms: float) -> None:
    requests_file(folder, *({"input_length": 200, "output_length": 20, "timestamp": at} for at in times_ms))


def test_recorded_arrivals_take_the_times_of_the_file(tmp_path: Path) -> None:
    recording(tmp_path, 0, 100, 3000)
    spec = loaded(tmp_path, RECORDED)
    assert spec.dataset.times_s == (0.0, 0.1, 3.0)
    assert rates_of(spec.endpoint) == (2.0, 3.0, 4.0)
    before = spec.digest
    recording(tmp_path, 0, 2900, 3000)
    assert loaded(tmp_path, RECORDED).digest != before


def test_other_arrivals_leave_the_times_out(tmp_path: Path) -> None:
    recording(tmp_path, 0, 100, 3000)
    digests = {loaded(tmp_path, RECORDED.replace("recorded", "poisson")).digest}
    recording(tmp_path, 0, 2900, 3000)
    assert loaded(tmp_path, RECORDED.replace("recorded", "poisson")).digest in digests


def test_recorded_arrivals_need_file_rate_and_times(tmp_path: Path) -> None:
    found = problems(tmp_path, f"{FIXED}, concurrency: 4, arrivals: recorded")
    assert [(rule, message) for rule, _, message in found] == [
        ("SEA108", "recorded arrivals need a dataset"),
        ("SEA108", "recorded arrivals need a rate"),
    ]
    requests_file(tmp_path, {"input_length": 200, "output_length": 20})
    assert [(rule, field) for rule, field, _ in problems(tmp_path, RECORDED)] == [("SEA510", "timestamp")]


def test_conversations_are_planned_for_with_all_that_was_said(tmp_path: Path) -> None:
    """Four turns of 100 + 20 tokens: prompts of 100, 220, 340 and 460."""
    asked = "input_tokens: 100, output_tokens: 20, concurrency: 4, turns: 4"
    spec = loaded(tmp_path, asked)
    assert (spec.lengths.input.mean, spec.lengths.longest) == (280, 480)
    assert spec.endpoint.workload.prefix_hit_rate == 0
    with_cache = loaded(tmp_path, asked, "optimization: [prefix_cache]")
    cached = with_cache.endpoint.workload.prefix_hit_rate
    assert with_recipe(with_cache, with_cache.endpoint.optimization).endpoint.workload.prefix_hit_rate == cached > 0
    assert cached == pytest.approx(1 - 400 / 1120, abs=1e-4)


def test_every_mistake_of_a_conversation_at_once(tmp_path: Path) -> None:
    workload = (
        f"{FIXED}, {RATE}, arrivals: poisson, turns: 4, turns_stddev: 2, turn_delay_stddev_s: 1, prefix_hit_rate: 0.5"
    )
    assert sorted((rule, field) for rule, field, _ in problems(tmp_path, workload)) == [
        ("SEA108", "workload.arrivals"),
        ("SEA108", "workload.prefix_hit_rate"),
        ("SEA108", "workload.turn_delay_stddev_s"),
        ("SEA108", "workload.turns_stddev"),
    ]
    assert problems(tmp_path, f"{FIXED}, concurrency: 4, turn_delay_s: 4") == [
        ("SEA108", "workload.turn_delay_s", "turn_delay_s needs turns above 1")
    ]


def test_the_longest_conversation_must_fit(tmp_path: Path) -> None:
    asked = "input_tokens: 100, output_tokens: 20, concurrency: 4, turns: 4"
    assert problems(tmp_path, f"{asked}, max_model_len: 479") == [
        ("SEA108", "workload.max_model_len", "max_model_len 479 is below the longest conversation, 480 tokens")
    ]
    assert loaded(tmp_path, f"{asked}, max_model_len: 480").lengths.longest == 480


@pytest.mark.parametrize("more", ["turns: 2", "turns: 3, turns_stddev: 1", "turns: 3, turn_delay_s: 1"])
def test_a_conversation_makes_a_lock_stale(tmp_path: Path, more: str) -> None:
    assert loaded(tmp_path, f"{FIXED}, concurrency: 4, {more}").digest not in {
        loaded(tmp_path, f"{FIXED}, concurrency: 4{other}").digest for other in ("", ", turns: 3")
    }


def test_conversations_of_a_file(tmp_path: Path) -> None:
    turn = {"input_tokens": 200, "output_tokens": 20}
    requests_file(tmp_path, {"turns": [turn, {**turn, "delay": 1500}]}, turn)
    spec = loaded(tmp_path, "input_tokens: 200, output_tokens: 20, concurrency: 4, dataset: requests.jsonl")
    assert (spec.dataset.turns, spec.dataset.delays_s) == ((2, 1), (0.0, 1.5, 0.0))
    assert spec.lengths.pairs == ((200, 20), (420, 20), (200, 20))


AGENTS = [
    {"t": 0, "in": 200, "out": 20, "api_time": 1},
    {"t": 2, "type": "subagent", "requests": [{"t": 0, "in": 100, "out": 20}]},
    {"t": 4, "in": 270, "out": 20},
]


def test_a_recording_of_agents_is_the_conversations_of_each_agent(tmp_path: Path) -> None:
    """The second turn adds 50 tokens to 220; a session is both conversations, 60 output tokens."""
    requests_file(tmp_path, {"requests": AGENTS})
    spec = loaded(tmp_path, "input_tokens: 117, output_tokens: 20, concurrency: 4, dataset: requests.jsonl")
    assert (spec.dataset.turns, spec.dataset.delays_s) == ((2, 1), (0.0, 2.0, 0.0))
    assert spec.lengths.pairs == ((200, 20), (270, 20), (100, 20))
    cost = make_plan(spec).cost
    assert cost.usd_per_million_output_tokens is not None
    assert cost.usd_per_session == pytest.approx(60 * cost.usd_per_million_output_tokens / 1e6, abs=1e-6)
    assert make_plan(loaded(tmp_path, f"{FIXED}, concurrency: 4")).cost.usd_per_session is None


def test_a_recording_of_agents_has_no_arrivals_of_its_own(tmp_path: Path) -> None:
    requests_file(tmp_path, {"requests": AGENTS})
    problem = ("SEA510", "", "recorded arrivals have no sessions of agents")
    assert problem in problems(tmp_path, f"{FIXED}, {RATE}, arrivals: recorded, dataset: requests.jsonl")


def test_every_bad_turn_of_a_file(tmp_path: Path) -> None:
    requests_file(tmp_path, {"turns": []}, {"turns": [1, {"input_tokens": 1}, {"delay": -1}]})
    found = problems(tmp_path, f"{FIXED}, concurrency: 4, dataset: requests.jsonl, turns: 3")
    assert [(rule, field) for rule, field, _ in found] == [
        ("SEA108", "workload.turns"),
        ("SEA510", "turns"),
        ("SEA510", "turns"),
        ("SEA510", "output_tokens"),
        ("SEA510", "delay"),
    ]


def test_every_bad_line_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text('{"prompt": "a", "output_tokens": 1}\n[]\n{"input_tokens": "x"}\n{\n')
    found = problems(tmp_path, f"{FIXED}, concurrency: 4, dataset: requests.jsonl")
    assert [(rule, field) for rule, field, _ in found] == [
        ("SEA510", "input_tokens"),
        ("SEA510", ""),
        ("SEA510", "input_tokens"),
        ("SEA510", "output_tokens"),
        ("SEA510", ""),
    ]


@pytest.mark.parametrize(("name", "rule"), [("none.jsonl", "SEA101"), ("../none.jsonl", "SEA138")])
def test_a_file_that_is_not_there(tmp_path: Path, name: str, rule: str) -> None:
    (tmp_path / "endpoints").mkdir()
    (tmp_path / ".git").mkdir()
    (found,) = problems(tmp_path, f"{FIXED}, concurrency: 4, dataset: {name}")
    assert found[:2] == (rule, "workload.dataset")
