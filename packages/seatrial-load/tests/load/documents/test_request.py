from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.documents.request import Load, Objective, TrialRequest, Workload
from seatrial_load.documents.request_checks import check_trial_request, read_trial_request

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeRequest = Callable[..., TrialRequest]


def document(trial_request: MakeRequest, **changes: object) -> str:
    return json.dumps({**json.loads(trial_request().to_json()), **changes})


def problems(text: str) -> list[str]:
    with pytest.raises(BenchError) as caught:
        read_trial_request(text)
    return [str(problem) for problem in caught.value.problems]


def test_round_trip(trial_request: MakeRequest) -> None:
    request = trial_request()
    assert read_trial_request(request.to_json()) == request


def test_equal_requests_give_equal_bytes_on_one_line(trial_request: MakeRequest) -> None:
    text = trial_request().to_json()
    assert text == trial_request().to_json()
    assert "\n" not in text


def test_a_request_of_one_length_is_written_as_the_first_releases_wrote_it(trial_request: MakeRequest) -> None:
    """A function of an older release refuses keys that it doesn't know: it must get none that say nothing."""
    written = json.loads(trial_request().to_json())
    assert not {"input_tokens_stddev", "output_tokens_stddev", "lengths"} & written["workload"].keys()
    assert not {"arrival_smoothness", "rates_for_copies"} & written["load"].keys()


def test_a_workload_as_it_is_written(trial_request: MakeRequest) -> None:
    """The golden document of a distribution in an open loop: what a function in an account reads."""
    workload = Workload(
        input_tokens=550,
        output_tokens=150,
        schema="openai_chat",
        shared_prefix_tokens=200,
        prefix_groups=4,
        input_tokens_stddev=150.0,
        output_tokens_stddev=50.0,
    )
    plain = trial_request()
    rates = replace(plain.load, arrival="gamma", arrival_smoothness=0.5, rates_per_s=(1.0, 2.0), rates_for_copies=2)
    request = replace(plain, workload=workload, load=rates)
    written = json.loads(request.to_json())
    assert written["workload"] == {
        "input_tokens": 550,
        "output_tokens": 150,
        "schema": "openai_chat",
        "stream": True,
        "source": "synthetic",
        "source_digest": "",
        "shared_prefix_tokens": 200,
        "prefix_groups": 4,
        "input_tokens_stddev": 150.0,
        "output_tokens_stddev": 50.0,
    }
    asked = ("arrival", "arrival_smoothness", "rates_per_s", "rates_for_copies")
    assert [written["load"][name] for name in asked] == ["gamma", 0.5, [1.0, 2.0], 2]
    assert read_trial_request(request.to_json()) == request


def test_the_path_of_openai_clients_is_written_and_the_other_is_not(trial_request: MakeRequest) -> None:
    request = trial_request(workload=replace(trial_request().workload, api="openai"))
    assert json.loads(request.to_json())["workload"]["api"] == "openai"
    assert read_trial_request(request.to_json()) == request
    assert "api" not in json.loads(trial_request().to_json())["workload"]


def test_counted_lengths_survive_the_way(trial_request: MakeRequest) -> None:
    workload = replace(trial_request().workload, lengths=((812, 120), (40, 300)))
    request = trial_request(workload=workload)
    assert read_trial_request(request.to_json()) == request


def test_what_may_be_missing_may_be_null(trial_request: MakeRequest) -> None:
    request = trial_request(expected=None, usd_per_hour_per_copy=None, objectives=())
    assert read_trial_request(request.to_json()) == request


def test_a_whole_number_stands_for_a_number(trial_request: MakeRequest) -> None:
    read = read_trial_request(document(trial_request, fallback_target_concurrency=2))
    assert repr(read.fallback_target_concurrency) == "2.0"


def test_defaults_may_be_left_out(trial_request: MakeRequest) -> None:
    workload = {"input_tokens": 16, "output_tokens": 4, "schema": "tgi"}
    assert read_trial_request(document(trial_request, workload=workload)).workload.stream


def test_lengths_that_no_requests_have(trial_request: MakeRequest) -> None:
    """All at once: too wide a deviation, one beside counted lengths, and a pair that is none."""
    workload = {
        "input_tokens": 101,
        "output_tokens": 64,
        "schema": "tgi",
        "input_tokens_stddev": 51,
        "output_tokens_stddev": 8,
        "lengths": [[100, 64], [100], [0, 64]],
    }
    assert problems(document(trial_request, workload=workload)) == [
        "trial request: workload.input_tokens_stddev: SEA501: 51 is not at least 0 and at most 50, half of the mean "
        "less 1",
        "trial request: workload.output_tokens_stddev: SEA501: the counted lengths have a standard deviation of their "
        "own",
        "trial request: workload.lengths[1]: SEA501: [100] is not prompt and answer, from 1 to 10,000,000 tokens",
        "trial request: workload.lengths[2]: SEA501: [0, 64] is not prompt and answer, from 1 to 10,000,000 tokens",
    ]


def test_a_file_has_its_own_lengths(trial_request: MakeRequest) -> None:
    workload = {"input_tokens": 9, "output_tokens": 9, "schema": "tgi", "source": "jsonl", "input_tokens_stddev": 1}
    assert problems(document(trial_request, workload=workload)) == [
        "trial request: workload.source: SEA501: only synthetic prompts have lengths of a distribution, not those of a "
        "jsonl file"
    ]


def test_every_problem_at_once_each_with_its_path(trial_request: MakeRequest) -> None:
    raw = json.loads(trial_request().to_json())
    raw["load"]["budget_s"] = "fast"
    raw["load"]["concurrency_levels"] = [1, True, 4.5]
    raw["objectives"][0]["metric"] = "speed"
    raw["target"]["name"] = "chat"
    raw["copy_count"] = None
    del raw["workload"]["schema"]
    assert sorted(problems(json.dumps(raw))) == [
        "trial request: copy_count: SEA501: expected a whole number, got null",
        'trial request: load.budget_s: SEA501: expected a number, got "fast"',
        "trial request: load.concurrency_levels[1]: SEA501: expected a whole number, got true",
        "trial request: load.concurrency_levels[2]: SEA501: expected a whole number, got 4.5",
        "trial request: objectives[0].metric: SEA501: "
        'expected one of ttft_ms, tpot_ms, e2e_latency_ms, error_rate, output_tok_s, got "speed"',
        "trial request: target.name: SEA501: unknown key; "
        "known are endpoint_name, inference_component, region, endpoint_url, kind, model, api_key_variable, "
        "target_variant, session_id",
        "trial request: workload.schema: SEA501: missing",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "trial request: SEA501: not JSON: "),
        ("[]", "trial request: SEA501: expected an object, got []"),
        ('{"usd_per_hour_per_copy": NaN}', "trial request: SEA501: not JSON: NaN is not a JSON number"),
    ],
)
def test_not_a_request_at_all(text: str, message: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(message)


@pytest.mark.parametrize("levels", [(), (0, 1), (2, 1), (1, 1)])
def test_levels_ascend_from_one(trial_request: MakeRequest, levels: tuple[int, ...]) -> None:
    load = replace(trial_request().load, concurrency_levels=levels)
    (problem,) = problems(trial_request(load=load).to_json())
    field = "trial request: load.concurrency_levels"
    assert problem == f"{field}: SEA501: {list(levels)} is not an ascending list of whole numbers from 1"


def test_impossible_values(trial_request: MakeRequest) -> None:
    load = Load(
        concurrency_levels=(1,), requests_per_concurrency=0, warmup_requests=-1, budget_s=0.0, request_timeout_s=-0.5
    )
    request = trial_request(load=load, gate_concurrency=0, copy_count=0, target_utilization=1.01)
    assert sorted(problems(request.to_json())) == [
        "trial request: copy_count: SEA501: 0 is not above 0",
        "trial request: gate_concurrency: SEA501: 0 is not above 0",
        "trial request: load.budget_s: SEA501: 0 is not above 0",
        "trial request: load.request_timeout_s: SEA501: -0.5 is not above 0",
        "trial request: load.requests_per_concurrency: SEA501: 0 is not above 0",
        "trial request: load.warmup_requests: SEA501: -1 is below 0",
        "trial request: target_utilization: SEA501: 1.01 is more than 1",
    ]


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (
            Objective(metric="ttft_ms", statistic="value", bound=1.0, sense="at_most"),
            "ttft_ms has a percentile or mean, not value",
        ),
        (Objective(metric="error_rate", statistic="p95", bound=1.0, sense="at_most"), "error_rate has value, not p95"),
    ],
)
def test_statistics_that_a_metric_does_not_have(trial_request: MakeRequest, objective: Objective, message: str) -> None:
    assert problems(trial_request(objectives=(objective,)).to_json()) == [
        f"trial request: objectives[0].statistic: SEA501: {message}"
    ]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_any_value_in_any_place_is_read_or_refused_with_a_problem(
    trial_request: MakeRequest, data: st.DataObject
) -> None:
    raw = json.loads(trial_request().to_json())
    key = data.draw(st.sampled_from(sorted(raw)))
    raw[key] = data.draw(anything)
    found = []
    try:
        read_trial_request(json.dumps(raw))
    except BenchError as refused:
        found = list(refused.problems)
    assert all(problem.rule == "SEA501" and problem.field.startswith(key) for problem in found)


def test_numbers_that_no_document_can_hold(trial_request: MakeRequest) -> None:
    """They come from a command line, and would end the trial when its result is written."""
    made = trial_request()
    load = replace(made.load, budget_s=math.inf, rates_per_s=(1.0, math.nan), arrival="poisson")
    request = replace(made, load=load, objectives=(replace(made.objectives[0], bound=math.nan),))
    with pytest.raises(BenchError) as caught:
        check_trial_request(request)
    assert [f"{problem.field}: {problem.message}" for problem in caught.value.problems] == [
        "load.budget_s: inf is not a finite number",
        "load.rates_per_s[1]: nan is not a finite number",
        "objectives[0].bound: nan is not a finite number",
        "load.rates_per_s: [1.0, nan] is not an ascending list of rates above 0",
    ]


def test_a_budget_in_money_needs_a_price(trial_request: MakeRequest) -> None:
    made = trial_request(usd_per_hour_per_copy=None)
    assert problems(replace(made, load=replace(made.load, budget_usd=2.5)).to_json()) == [
        "trial request: load.budget_usd: SEA501: a budget of 2.5 USD needs a price per hour"
    ]


@pytest.mark.parametrize("depth", [101, 5_000, 100_000])
def test_json_that_is_nested_too_deeply(depth: int) -> None:
    told = ["trial request: SEA501: not JSON: nested more than 100 deep"]
    assert problems("[" * depth + "]" * depth) == told
