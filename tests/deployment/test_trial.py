from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import pstdev
from typing import TYPE_CHECKING, Literal, get_args, get_type_hints

import pytest

from seatrial.deployment.trial import request_template, trial_api, trial_request, trial_schema
from seatrial.engines.render import render_plan
from seatrial.engines.rendered import RenderedConfig
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.planner.calibration import measured_copy
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.request_simulation import simulate_closed
from seatrial.planner.predict.simulation import TRIAL
from seatrial.specs.endpoint import TrialSpec, WorkloadSpec
from seatrial.specs.load import load_spec
from seatrial_base.errors import BenchError, SpecError
from seatrial_load.cli.requests import Mistakes, request_of_server
from seatrial_load.documents.request import Gate, Load, PredictedLevel, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.measure.lengths import BLOCK, lengths_of
from seatrial_load.metrics.level import level_size
from seatrial_load.prompts.choose import prompts_of
from seatrial_load.slo.evaluate import requests_needed

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan

ROOT = Path(__file__).parents[2]
NOWHERE = TrialTarget(endpoint_name="", inference_component=None, region="us-east-1")


@pytest.fixture(scope="module")
def planned() -> tuple[Plan, TrialRequest]:
    loaded = load_spec(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan = make_plan(loaded)
    return plan, trial_request(loaded, plan, render_plan(loaded, plan), NOWHERE, None)


def test_the_prior_is_the_plans_curve_of_one_copy(planned: tuple[Plan, TrialRequest]) -> None:
    plan, request = planned
    assert [level.concurrency for level in request.prior.levels] == list(plan.concurrency_levels.value)
    first = plan.curve[0]
    assert request.prior.levels[0] == PredictedLevel(
        concurrency=1,
        output_tok_s=first.output_tok_s,
        ttft_p95_ms=first.ttft_p95_ms,
        e2e_mean_ms=first.e2e_latency_ms,
    )


@pytest.mark.parametrize(
    ("engine", "asked", "api", "schema"),
    [
        ("vllm", None, "openai", "openai_chat"),
        ("sglang", None, "openai", "openai_chat"),
        ("vllm", "invoke", "invoke", "openai_chat"),
        ("lmi", None, "invoke", "lmi"),
        ("tgi", None, "invoke", "tgi"),
        ("lmi", "openai", "openai", "openai_chat"),
    ],
)
def test_a_trial_takes_the_path_that_the_engine_serves_best(
    engine: Literal["lmi", "tgi", "vllm", "sglang"], asked: str | None, api: str, schema: str
) -> None:
    loaded = load_spec(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    endpoint = loaded.endpoint
    workload, serving = (
        endpoint.workload.model_copy(update={"api": asked}),
        endpoint.serving.model_copy(update={"engine": engine}),
    )
    changed = replace(loaded, endpoint=endpoint.model_copy(update={"workload": workload, "serving": serving}))
    rendered = RenderedConfig(
        engine=engine,
        engine_version="1",
        image="an/image:1",
        payload_schema={"lmi": "lmi", "tgi": "tgi"}.get(engine, "openai_chat"),
        files={},
        container_env={},
        secret_env={},
        weights_s3_uri=None,
        isolated=False,
    )
    assert (trial_api(changed, engine), trial_schema(changed, rendered)) == (api, schema)


def test_the_batch_limit_is_the_lesser_of_engine_and_kv_room(planned: tuple[Plan, TrialRequest]) -> None:
    plan, request = planned
    assert request.prior.batch_limit == min(plan.max_num_seqs.value, plan.memory.kv_limited_batch)


def test_what_the_deployed_trial_would_refuse_is_refused_before() -> None:
    loaded = load_spec(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan = make_plan(loaded)
    trial = loaded.endpoint.trial.model_copy(update={"budget_usd": 5.0})
    asked = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"trial": trial}))
    unpriced = plan.model_copy(update={"cost": plan.cost.model_copy(update={"usd_per_hour_per_copy": None})})
    with pytest.raises(BenchError) as caught:
        request_template(asked, unpriced, render_plan(loaded, plan))
    assert str(caught.value) == ("trial request: load.budget_usd: SEA501: a budget of 5 USD needs a price per hour")


def described(folder: Path, workload: str, rest: str = "") -> tuple[Plan, TrialRequest]:
    (folder / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    text = f"name: chat\nmodel: {{hub_id: meta-llama/Llama-2-7b-chat-hf}}\nworkload: {{{workload}}}\n{rest}\n"
    (folder / "chat.yaml").write_text(text)
    loaded = load_spec(folder / "chat.yaml", "dev", environments=folder)
    plan = make_plan(loaded)
    serving = render_plan(loaded, plan)
    return plan, read_trial_request(trial_request(loaded, plan, serving, NOWHERE, None).to_json())


def test_a_trial_sends_what_the_plan_was_made_for(tmp_path: Path) -> None:
    """A distribution that arrives at random: three rates up to the planned one, then higher ones."""
    plan, request = described(
        tmp_path,
        "input_tokens: 550, output_tokens: 150, input_tokens_stddev: 150, output_tokens_stddev: 50, "
        "shared_prefix_tokens: 200, prefix_groups: 4, requests_per_second: 4, arrivals: gamma, arrival_smoothness: 0.5",
    )
    sent, load = request.workload, request.load
    assert (sent.input_tokens_stddev, sent.output_tokens_stddev) == (150.0, 50.0)
    assert (sent.shared_prefix_tokens, sent.prefix_groups) == (200, 4)
    assert (load.arrival, load.arrival_smoothness, load.gate_rate_per_s) == ("gamma", 0.5, 4.0)
    assert load.rates_per_s == pytest.approx((2.0, 3.0, 4.0, 5.0, 6.4, 8.0, 10.0, 12.6, 16.0))
    assert load.rates_for_copies == plan.copy_count.value
    assert plan.max_model_len.value >= 1_299
    assert tuple(point.requests_per_second for point in plan.rates) == load.rates_per_s[:3]
    assert [told for told in plan.warnings if "Prompts share 200 tokens" in told]


def test_lengths_are_drawn_alike_in_every_path(tmp_path: Path) -> None:
    """By `bench --url`, by the trial's function that reads the request of a spec, and in the plan's simulation."""
    told = {"input_tokens": 550, "output_tokens": 150, "input_tokens_stddev": 150.0, "output_tokens_stddev": 50.0}
    spec = ", ".join(f"{name}: {value:g}" for name, value in told.items())
    plan, request = described(tmp_path, f"{spec}, concurrency: 4")
    flags = {f"--{name.replace('_', '-')}": value for name, value in told.items()}
    written = {"--url": "http://127.0.0.1:1", **flags}
    bench = request_of_server(written, Mistakes(given=frozenset(written)))
    loaded = load_spec(tmp_path / "chat.yaml", "dev", environments=tmp_path)
    rows = range(2 * BLOCK)
    copy = measured_copy(loaded, plan)
    assert copy.lengths is not None
    drawn = [copy.lengths.of(row) for row in rows]
    for asked, first in ((request, 0), (request, 40), (bench, 0)):
        prompts = prompts_of(asked.workload, seed="a seed", first=first)
        sent = [(prompts.input_tokens(first + row), prompts.output_tokens(first + row)) for row in rows]
        assert sent == drawn
    answers = [answer for _, answer in drawn]
    assert pstdev(answers) == pytest.approx(50, rel=0.1)
    served = simulate_closed(copy, TRIAL.starts_s(copy, 4), len(rows), round_trip_s=0.02, rest_share=0.02)
    assert sorted(each.output for each in served) == sorted(answers)


RARE = "input_tokens: 200, output_tokens: 20, requests_per_second: 0.25, arrivals: poisson"


def test_a_level_of_an_open_loop_lasts_until_the_slo_can_be_proven(tmp_path: Path) -> None:
    """45 requests bound a p95 at confidence 0.9; half as many more come at 0.25 requests/s in 270 s."""
    slo = "slo: {ttft_ms: {p95: 20000}}\ntrial: {budget_minutes: 20}"
    _, request = described(tmp_path, RARE, slo)
    assert requests_needed(request.objectives, 0.9) == 45
    assert request.load.level_s == math.ceil(1.5 * 45 / 0.25)


def test_an_open_loop_of_too_few_requests_is_refused_before_it_is_deployed(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        described(tmp_path, RARE, "slo: {ttft_ms: {p95: 20000}}")
    (problem,) = refused.value.problems
    assert (problem.rule, problem.field) == ("SEA108", "workload.arrivals")
    assert problem.message == (
        "one copy gets 0.25 requests/s: 45 requests, which prove the SLO, take 270 s in each of 3 levels; 160 s are "
        "left for one"
    )


def test_a_trial_of_a_dataset_sends_its_lengths_and_nothing_that_users_wrote(tmp_path: Path) -> None:
    lines = (
        '{"prompt": "my secret", "input_tokens": 100, "output_tokens": 10}\n{"input_tokens": 300, "output_tokens": 30}'
    )
    (tmp_path / "requests.jsonl").write_text(lines)
    _, request = described(tmp_path, "input_tokens: 200, output_tokens: 20, concurrency: 4, dataset: requests.jsonl")
    assert request.workload.lengths == ((100, 10), (300, 30))
    assert (request.workload.source, request.load.arrival) == ("synthetic", "closed")
    assert "my secret" not in request.to_json()


def test_a_trial_of_a_recording_sends_it_at_its_times_and_at_the_planned_rates(tmp_path: Path) -> None:
    """Three requests in 2 s, at four a second in place of one: four times as fast."""
    rows = ((0, 100), (500, 300), (2000, 200))
    lines = (f'{{"timestamp": {at}, "input_length": {tokens}, "output_length": 20}}\n' for at, tokens in rows)
    (tmp_path / "requests.jsonl").write_text("".join(lines))
    asked = "input_tokens: 200, output_tokens: 20, requests_per_second: 4, dataset: requests.jsonl, arrivals: recorded"
    plan, request = described(tmp_path, asked)
    assert (request.load.arrival, request.load.rates_per_s[:3]) == ("recorded", (2.0, 3.0, 4.0))
    assert request.workload.times_s == (0.0, 0.5, 2.0)
    lengths = lengths_of(request.workload)
    assert [lengths.of(row)[0] for row in range(4)] == [100, 300, 200, 100]
    assert "3 requests of the dataset come 4 times as fast as they were recorded." in plan.warnings


TURNS = "input_tokens: 100, output_tokens: 20, concurrency: 4, turns: 4"


def test_a_trial_of_conversations_sends_what_the_plan_was_made_for(tmp_path: Path) -> None:
    """Prompts of 100, 220, 340 and 460 tokens: 280 on average."""
    plan, request = described(tmp_path, f"{TURNS}, turn_delay_s: 2")
    sent = request.workload
    assert (sent.input_tokens, sent.turns, sent.turn_delay_s, sent.sends_prefix_id) == (100, 4, 2.0, False)
    assert plan.max_model_len.value >= 480
    single, _ = described(tmp_path, "input_tokens: 280, output_tokens: 20, concurrency: 4")
    assert plan.curve[0].output_tok_s == pytest.approx(single.curve[0].output_tok_s, rel=0.02)
    told = "64% of the prompt tokens are of earlier turns and are counted as computed."
    assert [warning for warning in plan.warnings if warning.startswith(told)]


def test_cached_turns_make_a_plan_faster_and_say_what_they_assume(tmp_path: Path) -> None:
    computed, _ = described(tmp_path, TURNS)
    cached, _ = described(tmp_path, TURNS, "optimization: [prefix_cache]")
    assert cached.curve[0].ttft_p95_ms < computed.curve[0].ttft_p95_ms
    assert [warning for warning in cached.warnings if "counted as cached, as on one instance" in warning]
    routing = "hosting: {routing: {strategy: prefix_aware, prefix_length: 1024, concurrency_threshold: 8}}"
    _, request = described(tmp_path, TURNS, f"optimization: [prefix_cache]\n{routing}")
    assert request.workload.sends_prefix_id


def test_a_level_of_conversations_begins_with_unmeasured_ones(tmp_path: Path) -> None:
    """Three rounds until all turns are carried at once; with think time as many more as users think."""
    _, request = described(tmp_path, TURNS)
    size = level_size(request, 4)
    assert (size.ramp, size.warming) == (3 * size.streams, size.streams)
    _, thinking = described(tmp_path, f"{TURNS}, turn_delay_s: 10")
    level = next(level for level in thinking.prior.levels if level.concurrency == 4)
    share = 1 + 10 / (level.e2e_mean_ms / 1000)
    assert level_size(thinking, 4).warming == math.ceil(size.streams * share)


def test_a_request_with_a_prior_is_read_as_it_was_written(planned: tuple[Plan, TrialRequest]) -> None:
    request = planned[1]
    assert read_trial_request(request.to_json()) == request


NOT_TAKEN = {
    "workload": {
        "dataset": "its lengths and times are",
        "max_model_len": "the plan's",
        "prefix_hit_rate": "what the plan counts as cached",
        "concurrency": "the plan's levels are made for it",
        "requests_per_second": "its shares are the rates",
        "arrivals": "`arrival` of an open loop",
        "api": "the engine decides it where it is left out",
    },
    "trial": {
        "mode": "of the request itself",
        "target": "`target_knee` of the request itself",
        "overload": "of the request itself",
        "update": "the stack decides the manner by it",
        "concurrency_levels": "the plan's",
        "max_requests_per_concurrency": "left out, twice the fewest",
        "shared_prefix_tokens": "the older spelling, where the workload has none",
        "prefix_groups": "likewise",
        "budget_minutes": "`budget_s`",
    },
}
"""Fields of a spec that no field of the trial takes by its name, and why."""
TAKEN = [
    (part, name)
    for part, kind in (("workload", WorkloadSpec), ("trial", TrialSpec))
    for name in kind.model_fields
    if name not in NOT_TAKEN[part]
]


@pytest.mark.parametrize(("part", "name"), TAKEN)
def test_a_trial_takes_each_field_of_a_spec_by_its_name(part: str, name: str) -> None:
    loaded = load_spec(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    spec = getattr(loaded.endpoint, part)
    hint, old = get_type_hints(type(spec))[name], getattr(spec, name)
    other = next(value for value in (*get_args(hint), 7, 7.5) if value != old and not isinstance(value, type))
    shared = {"shared_prefix_tokens": 10} if part == "workload" else {}  # without one, the trial's older spelling holds
    endpoint = loaded.endpoint.model_copy(update={part: spec.model_copy(update={**shared, name: other})})
    plan = read_locked_plan(loaded)
    request = trial_request(replace(loaded, endpoint=endpoint), plan, render_plan(loaded, plan), NOWHERE, None)
    twins = (getattr(each, name, None) for each in (request.workload, request.load, request.gate))
    assert [value for value in twins if value is not None] == [other]


def test_what_is_not_taken_is_a_field_of_the_spec() -> None:
    assert NOT_TAKEN["workload"].keys() <= WorkloadSpec.model_fields.keys()
    assert NOT_TAKEN["trial"].keys() <= TrialSpec.model_fields.keys()


@pytest.mark.parametrize(
    ("spec", "twin"), [(WorkloadSpec, Workload), (WorkloadSpec, Load), (TrialSpec, Load), (TrialSpec, Gate)]
)
def test_a_field_and_its_twin_have_one_type(spec: type, twin: type) -> None:
    """`same_as` names a field by a text, which no type checker reads."""
    ours, theirs = get_type_hints(spec), get_type_hints(twin)
    other = {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    assert other <= NOT_TAKEN["workload"].keys() | NOT_TAKEN["trial"].keys()


def test_an_option_of_a_trial_is_named_where_it_is_told_and_where_it_acts() -> None:
    """Command lines, checks, digests, the copy into a trial, reports and tables read it off its field."""
    folders = ("seatrial", "constructs", "stacks", "packages")
    files = (file.relative_to(ROOT).as_posix() for folder in folders for file in (ROOT / folder).rglob("*.py"))
    sources = [file for file in files if "/tests/" not in file]
    naming = {
        name: [file for file in sources if name in (ROOT / file).read_text("utf-8")]
        for name in ("turn_delay_s", "stall_timeout_s")
    }
    told = ["packages/seatrial-load/seatrial_load/documents/request.py", "seatrial/specs/endpoint.py"]
    assert sorted(naming["turn_delay_s"]) == sorted(
        [*told, "packages/seatrial-load/seatrial_load/measure/lengths.py", "seatrial/specs/local_values.py"]
    )
    assert sorted(naming["stall_timeout_s"]) == sorted(
        [*told, "packages/seatrial-load/seatrial_load/client/event_loop.py"]
    )
