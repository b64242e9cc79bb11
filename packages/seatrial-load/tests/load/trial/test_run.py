from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial_base.errors import BenchError
from seatrial_cdk.trials.runtime.report import evidence, short_report
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.cli.show import result_lines
from seatrial_load.documents.progress import LevelEnded, TrialProgress, unwatched
from seatrial_load.documents.request import Load, TrialTarget
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.budget import budget_s, live_request
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_load.documents.progress import TrialEvent, Watch
    from seatrial_load.documents.request import TrialRequest

    MakeRequest = Callable[..., TrialRequest]

CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "token")
LOAD = Load(
    concurrency_levels=(1, 2, 4),
    requests_per_concurrency=3,
    warmup_requests=2,
    budget_s=20.0,
    request_timeout_s=2.0,
    search="every_level",
)


@pytest.fixture
def trial(trial_request: MakeRequest, runtime_url: str) -> Callable[..., TrialResult]:
    def run(manner: str, watch: Watch = unwatched, **changes: object) -> TrialResult:
        target = TrialTarget(
            endpoint_name=manner, inference_component=None, region="eu-west-1", endpoint_url=runtime_url
        )
        request = trial_request(**{"target": target, "expected": None, "load": LOAD, **changes})
        now = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)
        tools = Tools(credentials=CREDENTIALS, wall_clock=lambda: now, watch=watch, calibrates=False)
        return whole(run_trial(request, tools=tools))

    return run


def whole(ended: TrialResult | TrialProgress) -> TrialResult:
    assert isinstance(ended, TrialResult)
    return ended


def test_a_trial_from_start_to_end(trial: Callable[..., TrialResult]) -> None:
    seen: list[TrialEvent] = []
    result = trial("stream", seen.append)
    assert [level.concurrency for level in result.levels] == [1, 2, 4]
    assert [event.level.concurrency for event in seen if isinstance(event, LevelEnded)] == [1, 2, 4]
    assert [(level.requests, level.succeeded) for level in result.levels] == [(3, 3), (6, 6), (12, 12)]
    assert result.levels[0].output_tokens_mean == 4.0
    assert result.verdict.status == "pass"
    assert result.target_concurrency_per_copy == 4.0  # the gate: no load misses the SLO
    assert result.stopped.because == "every level was measured"
    assert result.started_at == "2026-11-21T01:02:03+00:00"
    assert result.engine_note == "fake runtime of the tests"
    assert not result.live.proven
    assert result.usd_per_million_output_tokens is None  # a simulated engine's speed says nothing of a GPU's cost
    assert TrialResult.from_json(result.to_json()) == result


def test_a_level_opens_its_concurrency_for_every_copy(trial: Callable[..., TrialResult]) -> None:
    result = trial("stream", copy_count=2)
    assert [(level.concurrency, level.requests) for level in result.levels] == [(1, 6), (2, 12), (4, 24)]


def test_a_dead_endpoint_stops_the_trial_and_fails(trial: Callable[..., TrialResult]) -> None:
    result = trial("model-error")
    assert len(result.levels) == 1
    assert result.stopped.because == "no request succeeded at concurrency 1 per copy"
    assert result.verdict.status == "fail"
    assert re.fullmatch(  # a busy machine may have cut the level short: then the whole trial is told
        r"concurrency 4 per copy was not measured; (whole trial: )?0 of \d requests succeeded.*: "
        r"model_error \d \(model_error: HTTP 424 ModelError: CUDA out of memory\)",
        result.verdict.because,
    )
    assert (result.target_concurrency_per_copy, result.usd_per_million_output_tokens) == (1.0, None)


def test_an_endpoint_that_does_not_answer_within_the_budget_is_not_loaded(trial: Callable[..., TrialResult]) -> None:
    result = trial("stall", load=replace(LOAD, warmup_requests=0, budget_s=0.3))
    assert result.levels == ()
    assert result.stopped.because == "the budget of 0.3 s ended"
    assert result.verdict.status == "fail"
    assert result.verdict.because == (
        "concurrency 4 per copy was not measured; whole trial: 0 of 1 requests succeeded, 1 failed within 0.3 "
        "s: timeout 1 (timeout: the budget of 0.3 s ended before the first answer (after 1 token events))"
    )


def test_a_level_that_the_budget_cuts_keeps_its_numbers(trial: Callable[..., TrialResult]) -> None:
    seen: list[TrialEvent] = []
    load = replace(LOAD, requests=100_000, budget_s=0.5)
    result = trial("stream", seen.append, load=load, gate_concurrency=1)
    (level,) = result.levels
    assert (level.mark, level.succeeded) == ("cut", level.requests)
    assert re.fullmatch(r"the budget of 0\.5 s ended \([1-9]\d* of 100000 requests had ended\)", level.cut)
    assert level.ttft_ms is not None
    assert level.ttft_ms.count == level.requests
    assert level.output_tok_s is not None
    assert [event.level for event in seen if isinstance(event, LevelEnded)] == [replace(level, queue_share=None)]
    assert result.verdict.status == "inconclusive"
    assert [check.measured for check in result.verdict.checks] == [level.ttft_ms.p95]
    assert TrialResult.from_json(result.to_json()) == result
    shown = [*result_lines(result), *evidence(result), short_report(result, "s3://results/1.json")]
    shown += [render_markdown(result, None), render_html(result, None)]
    assert all("cut" in text and f"{level.requests}" in text for text in ("\n".join(shown[:-3]), *shown[-3:]))
    cut = r"the budget of 0\.5 s ended at concurrency 1 per copy \([1-9]\d* of 100000 requests had ended\)"
    assert re.fullmatch(cut, result.stopped.because)


def test_a_ramp_is_sent_and_not_measured(trial: Callable[..., TrialResult]) -> None:
    result = trial("stream", load=replace(LOAD, ramp_per_concurrency=1))
    assert [(level.requests, level.ramp_requests) for level in result.levels] == [(3, 1), (6, 2), (12, 4)]
    assert [level.window for level in result.levels] == ["steady"] * 3


def test_a_level_goes_on_until_its_median_is_known(trial: Callable[..., TrialResult]) -> None:
    load = replace(LOAD, requests_per_concurrency=3, max_requests_per_concurrency=400, precision=0.3)
    result = trial("stream", load=load)
    assert all(level.requests > 3 * level.concurrency for level in result.levels[:1])
    assert result.levels[0].requests < 400
    assert result.levels[0].enough_because.startswith("the median end-to-end latency is known to ±")


def test_an_open_loop_offers_rates(trial: Callable[..., TrialResult]) -> None:
    load = replace(LOAD, arrival="constant", rates_per_s=(20.0, 40.0), level_s=0.5)
    result = trial("stream", load=load)
    assert [level.offered_requests_per_s for level in result.levels] == [20.0, 40.0]
    assert [level.requests for level in result.levels] == [10, 20]
    assert [step.because for step in result.search] == [
        "next listed rate, 20 requests/s",
        "next listed rate, 40 requests/s",
    ]


def test_an_answer_that_does_not_stream_leaves_a_ttft_objective_open(
    trial: Callable[..., TrialResult], trial_request: MakeRequest
) -> None:
    result = trial("whole", workload=replace(trial_request().workload, stream=False))
    assert result.levels[-1].ttft_ms is None
    assert result.levels[-1].e2e_latency_ms is not None
    assert result.verdict.status == "inconclusive"


def test_an_impossible_request_is_refused_before_anything_is_sent(trial: Callable[..., TrialResult]) -> None:
    with pytest.raises(BenchError, match="copy_count: SEA501: 0 is not above 0"):
        trial("stream", copy_count=0)


@pytest.fixture(scope="module")
def sagemaker() -> SageMakerClient:
    return boto3.client("sagemaker", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")


def description(config: str, copies: int) -> tuple[dict[str, object], dict[str, object]]:
    """Write what the control plane says of the endpoint and of its component."""
    times = {"CreationTime": datetime(2026, 11, 21, tzinfo=UTC), "LastModifiedTime": datetime(2026, 11, 21, tzinfo=UTC)}
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/stream"
    endpoint = {"EndpointName": "stream", "EndpointArn": arn, "EndpointStatus": "InService", **times}
    component = {"InferenceComponentName": "copy", "InferenceComponentArn": arn, "EndpointName": "stream", **times}
    return {**endpoint, "EndpointConfigName": config}, {
        **component,
        "EndpointArn": arn,
        "InferenceComponentStatus": "InService",
        "Specification": {"ModelName": "model-2"},
        "RuntimeConfig": {"DesiredCopyCount": copies, "CurrentCopyCount": copies},
    }


@pytest.fixture
def proven_trial(
    trial_request: MakeRequest, runtime_url: str, sagemaker: SageMakerClient
) -> Callable[..., TrialResult]:
    def run(
        *descriptions: tuple[dict[str, object], dict[str, object]],
        baseline: TrialResult | None = None,
        refused_after: str = "",
        manner: str = "stream",
        **changes: object,
    ) -> TrialResult:
        target = TrialTarget(
            endpoint_name=manner, inference_component="copy", region="eu-west-1", endpoint_url=runtime_url
        )
        with Stubber(sagemaker) as stub:
            for endpoint, component in descriptions:
                stub.add_response("describe_endpoint", endpoint | {"EndpointName": manner})
                stub.add_response("describe_inference_component", component | {"EndpointName": manner})
            for _ in range(13 if refused_after == "AccessDeniedException" else 1 if refused_after else 0):
                stub.add_client_error("describe_endpoint", refused_after, "in its words")
            tools = Tools(credentials=CREDENTIALS, sagemaker=sagemaker, calibrates=False, sleep=lambda _seconds: None)
            request = trial_request(**{"target": target, "load": LOAD, **changes})
            result = whole(run_trial(request, tools=tools, baseline=baseline, baseline_uri="s3://bucket/released"))
            stub.assert_no_pending_responses()
        return result

    return run


def test_the_deployment_is_proven_before_and_after(proven_trial: Callable[..., TrialResult]) -> None:
    result = proven_trial(description("config-2", 1), description("config-2", 1))
    assert result.live.proven
    assert result.live.because == (
        "the endpoint is InService with config config-2, its component is InService and runs model model-2 in 1 copies"
    )


def test_copies_that_are_not_those_loaded_are_told(proven_trial: Callable[..., TrialResult]) -> None:
    result = proven_trial(description("config-2", 1), description("config-2", 3))
    assert result.live.because == (
        "the endpoint is InService with config config-2, its component is InService and runs model model-2 in 3 "
        "copies; "
        "1 and 3 copies ran before and after; the load was for 1"
    )


def test_the_load_is_for_the_copies_that_are_live(proven_trial: Callable[..., TrialResult]) -> None:
    planned = proven_trial(description("config-2", 2), description("config-2", 2), copy_count=2)
    scaled = proven_trial(description("config-2", 6), description("config-2", 6), copy_count=2)
    for result in (planned, scaled):  # a busy machine measures fewer levels: the budget is of time
        per_level = [(level.concurrency, level.requests) for level in result.levels]
        assert per_level == [(n, 3 * n * result.request.copy_count) for n in (1, 2, 4)][: len(per_level)] != []
    assert (planned.request.copy_count, planned.live.planned_copy_count) == (2, None)
    assert (scaled.request.copy_count, scaled.live.planned_copy_count) == (6, 2)
    assert planned.knee is not None
    assert scaled.knee is not None
    assert scaled.knee.concurrency is not None
    assert 1.0 <= scaled.knee.concurrency <= 4.0, "per copy; where it lies is for the machine to say"
    assert scaled.live.because.endswith("runs model model-2 in 6 copies; the plan has 2")
    assert (scaled.verdict.status, scaled.target_concurrency_per_copy) == ("pass", scaled.knee.concurrency)


def test_the_budget_in_money_pays_for_the_live_copies(trial_request: MakeRequest) -> None:
    load = replace(LOAD, budget_usd=0.012)  # 3.6 USD per hour and copy: 12 s of one copy
    request = trial_request(load=load, copy_count=2)
    progress = TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=0.0, sent=0, live=replace(
        not_proven(), proven=True, copy_count=6))  # fmt: skip
    assert budget_s(request) == pytest.approx(6.0)
    assert budget_s(live_request(request, progress)) == pytest.approx(2.0)


@pytest.mark.parametrize(("proven", "copies"), [(False, 6), (True, None), (True, 0), (True, 2)])
def test_a_count_that_is_not_proven_leaves_the_plans(
    trial_request: MakeRequest, *, proven: bool, copies: int | None
) -> None:
    request = trial_request(copy_count=2)
    live = replace(not_proven(), proven=proven, copy_count=copies)
    progress = TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=0.0, sent=0, live=live)
    assert live_request(request, progress) is request


def test_copies_that_come_or_go_meanwhile_prove_nothing(proven_trial: Callable[..., TrialResult]) -> None:
    result = proven_trial(description("config-2", 1), description("config-2", 3))
    changed = "copies changed from 1 to 3 during the trial"
    assert result.verdict.status == "inconclusive"
    assert result.verdict.because.startswith(f"{changed}; objective met; ")
    assert (result.target_concurrency_per_copy, result.target_detector) == (2.0, None)
    assert result.target_because == f"fallback 2 per copy: {changed}"
    assert len(result.levels) == 3


def test_numbers_of_copies_that_came_or_went_are_not_compared(proven_trial: Callable[..., TrialResult]) -> None:
    released = proven_trial(description("config-2", 1), description("config-2", 1))
    comparison = proven_trial(description("config-2", 1), description("config-2", 3), baseline=released).comparison
    assert comparison is not None
    assert (comparison.status, comparison.because) == (
        "incomparable", "copies changed from 1 to 3 during the trial"
    )  # fmt: skip
    assert (comparison.changes, comparison.baseline_uri) == ((), "s3://bucket/released")


def test_a_rollback_during_the_trial_voids_it(proven_trial: Callable[..., TrialResult]) -> None:
    with pytest.raises(
        BenchError, match="SEA502: the live endpoint config is config-1, not config-2 of this deployment"
    ):
        proven_trial(description("config-2", 1), description("config-1", 1))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("ExpiredTokenException", "the AWS credentials have expired (ExpiredTokenException: in its words)"),
        ("AccessDeniedException", "access is denied: DescribeEndpoint (AccessDeniedException: in its words)"),
        ("ServiceUnavailable", "AWS could not carry out DescribeEndpoint (ServiceUnavailable: in its words)"),
    ],
)
def test_a_proof_that_nobody_can_ask_for_afterwards_keeps_what_was_measured(
    proven_trial: Callable[..., TrialResult], code: str, told: str
) -> None:
    result = proven_trial(description("config-2", 1), refused_after=code)
    because = f"the deployment could not be checked after the trial: {told}"
    assert (result.verdict.status, result.live.proven, result.live.because) == ("inconclusive", False, because)
    assert result.verdict.because.startswith(f"{because}; objective met; ")
    assert [level.concurrency for level in result.levels] == [1, 2, 4]
    assert result.target_because == f"fallback 2 per copy: {because}"


def test_no_success_fails_though_copies_came_or_went(proven_trial: Callable[..., TrialResult]) -> None:
    result = proven_trial(description("config-2", 1), description("config-2", 3), manner="model-error")
    assert result.verdict.status == "fail"
    assert result.verdict.because.startswith(
        "copies changed from 1 to 3 during the trial; concurrency 4 per copy was not measured; 0 of 3 requests "
    )


def test_answers_that_say_nothing_fail_though_copies_came_or_went(proven_trial: Callable[..., TrialResult]) -> None:
    result = proven_trial(description("config-2", 1), description("config-2", 3), manner="garbled")
    assert result.verdict.status == "fail"
    assert result.verdict.because.startswith(
        "copies changed from 1 to 3 during the trial; 3 of 3 answers at concurrency 1 per copy say nothing"
    )


def test_importing_the_trial_imports_nothing_heavy() -> None:
    heavy = {"boto3", "botocore", "pydantic", "asyncio"}
    code = f"import sys, seatrial_load.trial.run; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
