"""A trial in several runs, and a trial that is stopped."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_load.aws.credentials import Credentials
from seatrial_load.documents.progress import LevelEnded, TrialProgress
from seatrial_load.documents.request import Load, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from seatrial_load.aws.cloudwatch import MetricData
    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.progress import TrialEvent
    from seatrial_load.documents.request import TrialRequest

    MakeRequest = Callable[..., TrialRequest]

CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "token")
DELETED = Stop(reason=StopReason.CANCELLED, because="the stack is deleted")
LOAD = Load(
    concurrency_levels=(1, 2, 4),
    requests_per_concurrency=3,
    warmup_requests=2,
    budget_s=20.0,
    request_timeout_s=2.0,
    search="every_level",
)


def whole(ended: TrialResult | TrialProgress) -> TrialResult:
    assert isinstance(ended, TrialResult)
    return ended


def test_a_trial_stops_when_it_is_told(trial_request: MakeRequest, runtime_url: str) -> None:
    target = TrialTarget(endpoint_name="stream", inference_component=None, region="eu-west-1", endpoint_url=runtime_url)
    request = trial_request(target=target, expected=None, load=LOAD)
    tools = Tools(credentials=CREDENTIALS, calibrates=False)
    result = whole(run_trial(request, tools=tools, should_stop=lambda: DELETED))
    assert (result.levels, result.stopped.because) == ((), "the stack is deleted")
    assert result.verdict.status == "inconclusive"


def test_a_trial_that_pauses_goes_on_where_it_was(trial_request: MakeRequest, runtime_url: str) -> None:
    target = TrialTarget(endpoint_name="stream", inference_component=None, region="eu-west-1", endpoint_url=runtime_url)
    request = trial_request(target=target, expected=None, load=replace(LOAD, budget_s=1_000.0))
    over: list[LevelEnded] = []

    def watch(event: TrialEvent) -> None:
        if isinstance(event, LevelEnded):
            over.append(event)

    def clock() -> float:
        return time.perf_counter() + 100.0 * len(over)  # as if a level took so long

    tools = Tools(credentials=CREDENTIALS, calibrates=False, watch=watch, clock=clock)
    ended: TrialResult | TrialProgress | None = None
    runs = 0
    while not isinstance(ended, TrialResult):
        runs += 1
        ended = run_trial(request, tools=tools, resume=ended and TrialProgress.from_json(ended.to_json()),
                          pause_after_s=60.0)  # fmt: skip
    assert runs == 3
    assert 300.0 < ended.duration_s < 400.0
    assert [level.concurrency for level in ended.levels] == [1, 2, 4]
    assert [step.because for step in ended.search] == ["next listed level"] * 3
    assert ended.stopped.because == "every level was measured"


def test_a_level_that_a_run_is_too_short_for_is_sent_anew_with_other_prompts(
    trial_request: MakeRequest, runtime_url: str
) -> None:
    """The engine has the first prompts in its prefix cache: sent again, they would be answered too fast."""
    target = TrialTarget(endpoint_name="stream", inference_component=None, region="eu-west-1", endpoint_url=runtime_url)
    load = replace(LOAD, concurrency_levels=(1,), requests=300, warmup_requests=0, ramp_per_concurrency=1)
    request = trial_request(target=target, expected=None, load=load)
    sent: list[set[int]] = []

    def keep(records: Sequence[RequestRecord], *, concurrency: int, ramp: int) -> None:
        del concurrency, ramp
        sent.append({record.index for record in records})

    tools = Tools(credentials=CREDENTIALS, calibrates=False, keep=keep)
    paused = run_trial(request, tools=tools, pause_after_s=0.8)
    assert isinstance(paused, TrialProgress)
    result = whole(run_trial(request, tools=tools, resume=paused, pause_after_s=20.0))
    cut, measured = sent
    assert 0 < len(cut) < len(measured) == 301
    assert not cut & measured
    assert [level.requests for level in result.levels] == [300]


def test_a_level_that_no_run_is_long_enough_for_ends_the_trial(trial_request: MakeRequest, runtime_url: str) -> None:
    target = TrialTarget(endpoint_name="stream", inference_component=None, region="eu-west-1", endpoint_url=runtime_url)
    request = trial_request(target=target, expected=None, load=replace(LOAD, requests=100_000))
    tools = Tools(credentials=CREDENTIALS, calibrates=False)
    paused = run_trial(request, tools=tools, pause_after_s=0.3)
    assert isinstance(paused, TrialProgress)
    result = whole(run_trial(request, tools=tools, resume=paused, pause_after_s=0.3))
    why = r"one run of 0\.3 s is too short for concurrency 1 per copy \([1-9]\d* of 100000 requests had ended\)"
    assert re.fullmatch(why, result.stopped.because)


class NoMetrics:
    """A CloudWatch that nobody has written to."""

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> MetricData:
        del MetricDataQueries, StartTime, EndTime
        return {"MetricDataResults": []}


def test_a_trial_that_is_stopped_does_not_wait_for_cloudwatch(trial_request: MakeRequest, runtime_url: str) -> None:
    """Its datapoints come 70 s late, and whoever stops the trial waits for its end."""
    seen: list[TrialEvent] = []
    waits: list[float] = []
    target = TrialTarget(
        endpoint_name="whole", inference_component="copy", region="eu-west-1", endpoint_url=runtime_url
    )
    workload = Workload(input_tokens=16, output_tokens=4, schema="lmi", stream=False)
    tools = Tools(
        credentials=CREDENTIALS, calibrates=False, cloudwatch=NoMetrics(), sleep=waits.append, watch=seen.append
    )

    def should_stop() -> Stop | None:
        return DELETED if any(isinstance(event, LevelEnded) for event in seen) else None

    request = trial_request(target=target, workload=workload, expected=None, load=LOAD)
    result = whole(run_trial(request, tools=tools, should_stop=should_stop))
    assert ([level.concurrency for level in result.levels], result.stopped.because) == ([1], "the stack is deleted")
    assert waits == [0.0]
