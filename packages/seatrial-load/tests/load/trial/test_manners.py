"""The manners of a trial that spare users: `verify` and `in_place`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.request import Load, TrialRequest, TrialTarget
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.documents.result import AnswerDoubt, LevelResult, TrialResult, Unmeasured, UsersLoad
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.search import NextLevel
from seatrial_load.slo.verdict import doubt_texts
from seatrial_load.trial.dependencies import Tools, go_on
from seatrial_load.trial.run import run_trial
from seatrial_load.trial.steps import begin_trial, conclude_trial, next_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_load.trial.dependencies import ShouldStop

    MakeRequest = Callable[..., TrialRequest]

CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "token")
NOW = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)
LOAD = Load(
    concurrency_levels=(1, 2, 4, 8, 16),
    requests_per_concurrency=3,
    warmup_requests=4,
    budget_s=20.0,
    request_timeout_s=2.0,
)


@dataclass
class Aws:
    """A control plane and a CloudWatch that say what they are told to say, in turn; the last stays."""

    copies: list[int]
    users: float | None = None
    alarm: str = "OK"
    config: list[str] = field(default_factory=lambda: ["config-2"])
    latency_us: float = 1.0

    def describe_endpoint(self, **name: str) -> dict[str, object]:
        config = self.config.pop(0) if len(self.config) > 1 else self.config[0]
        return {"EndpointName": name["EndpointName"], "EndpointConfigName": config, "EndpointStatus": "InService"}

    def describe_inference_component(self, **_name: str) -> dict[str, object]:
        copies = self.copies.pop(0) if len(self.copies) > 1 else self.copies[0]
        return {
            "EndpointName": self.endpoint_name,
            "InferenceComponentStatus": "InService",
            "Specification": {"ModelName": "model-2"},
            "RuntimeConfig": {"CurrentCopyCount": copies},
        }

    endpoint_name: str = "stream"

    def describe_alarms(
        self,
        *,
        AlarmNames: Sequence[str],  # noqa: N803 (boto3's names)
        AlarmTypes: Sequence[str],  # noqa: N803 (likewise)
        MaxRecords: int,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        del AlarmTypes, MaxRecords
        return {"MetricAlarms": [{"AlarmName": name, "StateValue": self.alarm} for name in AlarmNames]}

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        del StartTime, EndTime
        users = [] if self.users is None else [self.users]
        return {
            "MetricDataResults": [
                {"Id": f"{query['Id']}", "Values": users if query["Id"] == "users" else [self.latency_us]}
                for query in MetricDataQueries
            ]
        }


@dataclass
class World:
    """Runs trials against the fake runtime, with an AWS around it."""

    make: MakeRequest
    url: str
    slept: list[float] = field(default_factory=list)

    def request(self, manner: str, endpoint: str = "stream", **changes: object) -> TrialRequest:
        target = TrialTarget(
            endpoint_name=endpoint, inference_component="chat-copy", region="eu-west-1", endpoint_url=self.url
        )
        return self.make(**{"target": target, "load": LOAD, "manner": manner, "gate_concurrency": 16, **changes})

    def tools(self, aws: Aws) -> Tools:
        return Tools(
            credentials=CREDENTIALS,
            sagemaker=cast("SageMakerClient", aws),
            cloudwatch=cast("CloudWatchClient", aws),
            wall_clock=lambda: NOW,
            sleep=self.slept.append,
            calibrates=False,
        )

    def result(self, request: TrialRequest, aws: Aws, should_stop: ShouldStop = go_on) -> TrialResult:
        aws.endpoint_name = request.target.endpoint_name
        ended = run_trial(request, tools=self.tools(aws), should_stop=should_stop)
        assert isinstance(ended, TrialResult)
        assert TrialResult.from_json(ended.to_json()) == ended
        return ended


@pytest.fixture
def world(trial_request: MakeRequest, runtime_url: str) -> World:
    return World(trial_request, runtime_url)


def seen_at(result: TrialResult) -> list[tuple[str, int, int]]:
    return [(seen.occasion, seen.sent, seen.succeeded) for seen in result.unmeasured]


def test_a_verification_sends_five_requests_and_no_load(world: World) -> None:
    result = world.result(world.request("verify", copy_count=1), Aws([3]))
    assert seen_at(result) == [("first_request", 1, 1), ("verification", 5, 5)]
    assert (result.levels, result.knees, result.knee, result.client, result.users) == ((), (), None, None, None)
    assert result.stopped == Stop(reason=StopReason.VERIFIED, because="verified by 5 requests; no load")
    assert (result.verdict.status, result.verdict.because) == ("pass", "verified: 5 of 5 requests succeeded, no load")
    assert (result.target_concurrency_per_copy, result.target_detector) == (2.0, None)
    assert result.target_because == "fallback 2 per copy: no knee was sought"
    assert (result.live.proven, result.live.copy_count, result.live.planned_copy_count) == (True, 3, 1)
    assert result.live.because.endswith("in 3 copies; the plan has 1")


def test_a_request_that_fails_fails_the_verification(world: World) -> None:
    result = world.result(world.request("verify", "model-error"), Aws([1]))
    assert seen_at(result) == [("first_request", 1, 0), ("verification", 5, 0)]
    assert result.stopped.because == "0 of 5 requests succeeded; no load"
    assert result.verdict.status == "fail"
    assert "model_error: HTTP 424 ModelError: CUDA out of memory" in result.verdict.because


@pytest.mark.parametrize(("most", "status"), [(None, "fail"), (0.1, "fail"), (0.4, "pass")])
def test_the_gates_error_rate_holds_of_the_single_requests(world: World, most: float | None, status: str) -> None:
    gate = replace(world.make().gate, max_error_rate=most)
    result = world.result(world.request("verify", "every-third-fails", gate=gate), Aws([1]))
    (verified,) = [seen for seen in result.unmeasured if seen.occasion == "verification"]
    assert (verified.sent, verified.succeeded) in {(5, 3), (5, 4)}
    assert result.verdict.status == status


def concluded(world: World, seen: Unmeasured, stop: Stop) -> TrialResult:
    live = replace(not_proven(), copy_count=1)
    progress = TrialProgress(
        started_at=NOW.isoformat(), elapsed_s=1.0, sent=seen.sent, live=live, unmeasured=(seen,), stopped=stop
    )
    return conclude_trial(world.request("verify", expected=None), progress, Tools(asks_cloudwatch=False))


SINGLE = Unmeasured(occasion="verification", sent=5, succeeded=5, errors={}, first_errors=(), longest_wait_s=None)


@pytest.mark.parametrize("sent", [1, 4])
def test_fewer_requests_than_a_verification_has_prove_nothing(world: World, sent: int) -> None:
    over = Stop(reason=StopReason.BUDGET, because="the budget of 20 s ended")
    verdict = concluded(world, replace(SINGLE, sent=sent, succeeded=sent), over).verdict
    assert (verdict.status, verdict.because) == (
        "inconclusive", f"{sent} of 5 requests were sent: the budget of 20 s ended"
    )  # fmt: skip


def test_answers_that_ended_early_verify_nothing(world: World) -> None:
    doubt = AnswerDoubt(kind="ended_early", answers=5, of=5, because="5 of 5 answers are short")
    stop = Stop(reason=StopReason.VERIFIED, because="verified by 5 requests; no load")
    result = concluded(world, replace(SINGLE, doubts=(doubt,)), stop)
    assert (result.verdict.status, result.verdict.because) == (
        "inconclusive", "ended_early: 5 of 5 answers are short; no load"
    )  # fmt: skip
    assert list(doubt_texts(result)) == ["ended_early: 5 of 5 answers are short"]


@pytest.mark.parametrize("sent", [1, 5])
def test_answers_that_say_nothing_fail_a_verification(world: World, sent: int) -> None:
    doubt = AnswerDoubt(kind="repeated", answers=1, of=sent, because=f"1 of {sent} answers repeats one token")
    stop = Stop(reason=StopReason.VERIFIED, because="verified; no load")
    result = concluded(world, replace(SINGLE, sent=sent, succeeded=sent, doubts=(doubt,)), stop)
    assert (result.verdict.status, result.verdict.because) == (
        "fail",
        f"1 of {sent} answers at the verification say nothing, more than 1 % with 95 % confidence: repeated 1; no load",
    )


def test_a_request_without_a_copy_is_repeated_while_copies_come_up(world: World) -> None:
    aws = Aws([2])
    request = world.request("verify", "unready-at-first", load=replace(LOAD, budget_s=200.0))
    result = world.result(request, aws)
    assert seen_at(result) == [("first_request", 1, 0), ("verification", 5, 5)]
    assert (result.verdict.status, result.live.copy_count) == ("pass", 2)
    assert world.slept == [15.0]


def test_a_deployment_whose_right_is_young_is_asked_again(world: World) -> None:
    result = world.result(world.request("verify", "denied-at-first"), Aws([2]))
    assert (result.verdict.status, world.slept) == ("pass", [5.0, 5.0])


def test_a_deployment_that_is_denied_for_a_minute_fails(world: World) -> None:
    result = world.result(world.request("verify", "denied"), Aws([2]))
    assert (result.verdict.status, sum(world.slept)) == ("fail", 60.0)
    assert "AccessDeniedException" in result.verdict.because


def test_who_measures_no_deployment_of_its_own_is_told_at_once_what_is_denied(world: World) -> None:
    result = world.result(world.request("verify", "denied", expected=None), Aws([2]))
    assert world.slept == []
    assert "AccessDeniedException" in result.verdict.because


def test_copies_that_come_meanwhile_leave_a_verification_valid(world: World) -> None:
    result = world.result(world.request("verify", copy_count=3), Aws([3, 4]))
    assert result.verdict.status == "pass"
    assert result.live.because.endswith("; 3 and 4 copies ran before and after")


def test_another_deployment_is_no_verification(world: World) -> None:
    with pytest.raises(BenchError, match="SEA502: the live endpoint config is config-1"):
        world.result(world.request("verify"), Aws([1], config=["config-1"]))
    with pytest.raises(BenchError, match="SEA502: the live endpoint config is config-1"):
        world.result(world.request("verify"), Aws([1], config=["config-2", "config-1"]))


def test_copies_that_are_lost_fail_a_verification(world: World) -> None:
    result = world.result(world.request("verify"), Aws([1, 0]))
    assert (result.verdict.status, result.live.proven) == ("fail", False)


def test_a_verification_that_is_cancelled_proves_nothing(world: World) -> None:
    cancelled = Stop(reason=StopReason.CANCELLED, because="the stack is deleted")
    result = world.result(world.request("verify"), Aws([1]), lambda: cancelled)
    assert (result.verdict.status, result.stopped) == ("inconclusive", cancelled)
    assert result.verdict.because == "no request was sent: the stack is deleted"


def test_a_verification_compares_nothing_with_the_last_release(world: World) -> None:
    request = world.request("verify")
    tools = world.tools(Aws([1]))
    progress = begin_trial(request, tools)
    step = next_step(request, progress)
    assert isinstance(step, Stop)
    before = world.result(replace(request, manner="load", load=replace(LOAD, concurrency_levels=(1,))), Aws([1]))
    result = conclude_trial(request, replace(progress, stopped=step), tools, baseline=before, baseline_uri="s3://b/r")
    assert result.comparison is not None
    assert (result.comparison.status, result.comparison.because, result.comparison.changes) == (
        "incomparable", "the trial added no load", ()
    )  # fmt: skip
    assert result.comparison.baseline_uri == "s3://b/r"


def test_load_beside_users_goes_to_what_they_leave_of_the_gate(world: World) -> None:
    result = world.result(world.request("in_place", copy_count=1), Aws([2], users=9.5))
    assert [level.concurrency for level in result.levels] == [3, 6]  # floor(16 - 9.5) = 6
    assert [level.requests for level in result.levels] == [3 * 3 * 2, 6 * 3 * 2]
    assert result.stopped == Stop(
        reason=StopReason.NO_KNEE_SOUGHT,
        because="6 requests per copy alongside about 9.5 of users; no knee was sought",
    )
    assert [step.because for step in result.search] == [
        "3 of the 6 per copy that users with 9.5 per copy leave",
        "6 of the 6 per copy that users with 9.5 per copy leave",
    ]
    assert result.verdict.status == "pass"
    assert result.verdict.because.startswith(
        "6 requests per copy alongside about 9.5 of users; no knee was sought; objective met; "
    )
    assert (result.knees, result.knee, result.usd_per_million_output_tokens) == ((), None, None)
    assert result.target_because == "fallback 2 per copy: no knee was sought"
    assert result.users == UsersLoad(
        concurrency_per_copy=9.5,
        because="CloudWatch ConcurrentRequestsPerCopy: at most 9.5 per copy in the 300 s before the trial",
    )


@pytest.mark.parametrize(
    ("users", "room", "levels"), [(0.0, 16, [8, 16]), (14.2, 1, [1]), (15.0, 1, [1]), (13.0, 3, [1, 3])]
)
def test_the_room_is_what_users_leave_rounded_down(
    world: World, level: Callable[..., LevelResult], users: float, room: int, levels: list[int]
) -> None:
    request, steps = world.request("in_place"), []
    progress = TrialProgress(
        started_at=NOW.isoformat(), elapsed_s=0.0, sent=1, live=not_proven(),
        users=UsersLoad(concurrency_per_copy=users, because="counted"),
    )  # fmt: skip
    while isinstance(step := next_step(request, progress), NextLevel):
        steps.append(step.concurrency)
        progress = replace(progress, levels=(*progress.levels, level(step.concurrency)))
    assert (steps, max(steps)) == (levels, room)
    assert step.reason == StopReason.NO_KNEE_SOUGHT


@pytest.mark.parametrize(
    ("users", "told"),
    [
        (16.0, "users with 16 per copy leave nothing of the gate's concurrency 16 per copy"),
        (15.1, "users with 15.1 per copy leave nothing of the gate's concurrency 16 per copy"),
        (40.0, "users with 40 per copy leave nothing of the gate's concurrency 16 per copy"),
        (
            None,
            "the users' load is unknown: CloudWatch has no ConcurrentRequestsPerCopy datapoint of the 300 s before the "
            "trial",
        ),
    ],
)
def test_users_that_leave_nothing_get_a_verification_beside_them(world: World, users: float | None, told: str) -> None:
    result = world.result(world.request("in_place"), Aws([1], users=users))
    assert seen_at(result) == [("first_request", 1, 1), ("verification", 5, 5)]
    assert result.levels == ()
    assert result.stopped == Stop(reason=StopReason.VERIFIED, because=f"verified by 5 requests; no load: {told}")
    assert result.verdict.status == "pass"
    assert result.users is not None
    assert result.users.concurrency_per_copy == users


def test_an_open_loop_is_not_kept_within_what_users_leave(world: World) -> None:
    load = replace(LOAD, arrival="poisson", rates_per_s=(2.0,))
    result = world.result(world.request("in_place", load=load), Aws([1], users=1.0))
    assert (result.levels, result.stopped.reason) == ((), StopReason.VERIFIED)


def test_an_slo_that_is_missed_beside_users_fails(world: World) -> None:
    (objective,) = world.make().objectives
    result = world.result(
        world.request("in_place", objectives=(replace(objective, bound=0.001),)), Aws([1], users=12.0, latency_us=0.5)
    )
    assert [level.concurrency for level in result.levels] == [2, 4]
    assert result.verdict.status == "fail"


def test_an_alarm_fails_the_trial_before_it_adds_load(world: World) -> None:
    result = world.result(world.request("in_place", alarms=("errors",)), Aws([1], users=2.0, alarm="ALARM"))
    assert (result.levels, result.stopped.reason) == ((), StopReason.ALARM)
    assert result.verdict.status == "fail"
    assert result.verdict.because.startswith("the trial stopped: alarm errors is in ALARM; ")


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (StopReason.ALARM, "fail"),
        (StopReason.USERS_SLO, "fail"),
        (StopReason.UNWATCHED, "inconclusive"),
    ],
)
def test_a_level_that_the_watch_cuts_is_judged_by_why(world: World, reason: StopReason, status: str) -> None:
    """The second level is cut; the first had met the SLO."""
    request, tools = world.request("in_place"), world.tools(Aws([1], users=8.0))
    stop = Stop(reason=reason, because="it broke")
    levels: list[TrialProgress] = []
    ended = run_trial(
        request, tools=tools, on_progress=levels.append,
        should_stop=lambda: stop if levels and levels[-1].levels else None,
    )  # fmt: skip
    assert isinstance(ended, TrialResult)
    assert [level.concurrency for level in ended.levels] == [4]
    assert (ended.stopped, ended.verdict.status) == (stop, status)
    assert ended.verdict.because.startswith("the trial stopped: it broke; 4 requests per copy alongside about 8")


def test_copies_that_go_while_load_is_beside_users_prove_nothing(world: World) -> None:
    result = world.result(world.request("in_place", copy_count=3), Aws([3, 2], users=8.0))
    assert result.verdict.status == "inconclusive"
    assert result.live.because.endswith("; 3 and 2 copies ran before and after; the load was for 3")


def test_a_paused_trial_keeps_what_users_sent(world: World) -> None:
    progress = begin_trial(world.request("in_place"), world.tools(Aws([1], users=8.0)))
    assert progress.users is not None
    assert TrialProgress.from_json(progress.to_json()) == progress


def test_a_request_of_an_earlier_release_loads_as_before(world: World) -> None:
    request = world.request("load")
    old = request.to_json().replace(',"manner":"load","alarms":[]', "")
    assert "manner" not in old
    assert read_trial_request(old) == request
    with pytest.raises(BenchError, match="SEA501: expected one of load, in_place, verify"):
        read_trial_request(request.to_json().replace('"manner":"load"', '"manner":"hard"'))
