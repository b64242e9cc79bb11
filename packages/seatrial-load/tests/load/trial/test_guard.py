from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from seatrial_load.aws.container_metrics import MetricSeries
from seatrial_load.documents.request import Objective, TrialTarget
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.trial.dependencies import Tools, go_on
from seatrial_load.trial.guard import Guard, guard_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient

    from seatrial_load.documents.request import TrialRequest

    MakeRequest = Callable[..., TrialRequest]
    MakeGuard = Callable[..., tuple["Guard", "Watched", "Time"]]

NOW = datetime(2026, 11, 21, 1, 2, 33, tzinfo=UTC)
OBJECTIVES = (
    Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most"),
    Objective(metric="tpot_ms", statistic="p95", bound=50.0, sense="at_most"),
    Objective(metric="e2e_latency_ms", statistic="mean", bound=4000.0, sense="at_most"),
)
DENIED = ClientError({"Error": {"Code": "Throttling", "Message": "slow down"}}, "DescribeAlarms")


@dataclass
class Watched:
    """A CloudWatch with alarms, and the users' latency by metric in µs."""

    states: dict[str, str] = field(default_factory=dict)
    latency_us: dict[str, list[float]] = field(default_factory=dict)
    failures: int = 0
    status: str = "Complete"
    looks: int = 0
    queries: list[Mapping[str, object]] = field(default_factory=list)
    window: tuple[datetime, datetime] | None = None
    composite: frozenset[str] = frozenset()
    denies_composites: bool = False
    first_token_s: list[object] = field(default_factory=list)

    def promql(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        assert '"aws.sagemaker.inference_component.name"="chat-copy"' in query
        assert "histogram_quantile(0.95, sum(rate({" in query
        assert (start_s <= end_s, end_s, step_s > 0) == (True, NOW.timestamp(), True)
        value = self.first_token_s.pop(0) if self.first_token_s else ()
        if isinstance(value, Exception):
            raise value
        samples = ((end_s, value),) if isinstance(value, float) else ()
        return (MetricSeries({}, samples),)

    def describe_alarms(
        self,
        *,
        AlarmNames: Sequence[str],  # noqa: N803 (boto3's names)
        AlarmTypes: Sequence[str],  # noqa: N803 (likewise)
        MaxRecords: int,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        (kind,) = AlarmTypes  # both kinds in one request need a right to every alarm
        assert len(AlarmNames) <= MaxRecords == 100
        self.looks += 1
        if self.failures:
            self.failures -= 1
            raise DENIED
        known = [{"AlarmName": name, "StateValue": self.states[name]} for name in AlarmNames if name in self.states]
        is_composite = kind == "CompositeAlarm"
        if is_composite and self.denies_composites:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, "DescribeAlarms")
        return {f"{kind}s": [alarm for alarm in known if (alarm["AlarmName"] in self.composite) is is_composite]}

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        self.queries, self.window = list(MetricDataQueries), (StartTime, EndTime)
        return {
            "MetricDataResults": [
                {
                    "Id": f"{query['Id']}",
                    "Values": self.latency_us.get(metric_of(query), []),
                    "StatusCode": self.status,
                }
                for query in MetricDataQueries
            ]
        }


def metric_of(query: Mapping[str, object]) -> str:
    stat = query["MetricStat"]
    assert isinstance(stat, dict)
    return f"{stat['Metric']['MetricName']} {stat['Stat']}"


@dataclass
class Time:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def guard(trial_request: MakeRequest) -> Callable[..., tuple[Guard, Watched, Time]]:
    def make(*alarms: str, **world: object) -> tuple[Guard, Watched, Time]:
        watched, time = Watched(**world), Time()  # type: ignore[arg-type]  # a maker for tests: keywords of any type
        request = trial_request(manner="in_place", alarms=alarms, objectives=OBJECTIVES)
        cloudwatch = cast("CloudWatchClient", watched)
        made = Guard(request, cloudwatch=cloudwatch, clock=time, now=lambda: NOW, promql=watched.promql)
        return made, watched, time

    return make


def test_nothing_stops_a_trial_whose_users_fare_well(guard: MakeGuard) -> None:
    made, watched, _ = guard(
        "errors", "latency", states={"errors": "OK", "latency": "INSUFFICIENT_DATA"},
        latency_us={"ModelLatency Average": [3_999_000.0]}, first_token_s=[0.5],
    )  # fmt: skip
    assert made.check() is None
    assert [metric_of(query) for query in watched.queries] == ["ModelLatency Average"]
    assert watched.window == (NOW.replace(second=0) - timedelta(minutes=1), NOW)


def test_an_alarm_stops_the_trial(guard: MakeGuard) -> None:
    made, _, _ = guard("errors", "latency", states={"errors": "OK", "latency": "ALARM"})
    assert made.check() == Stop(reason=StopReason.ALARM, because="alarm latency is in ALARM")


def test_metric_alarms_are_read_without_the_right_to_every_alarm(guard: MakeGuard) -> None:
    made, watched, _ = guard("errors", states={"errors": "OK"}, denies_composites=True)
    assert (made.check(), watched.looks) == (None, 1)


def test_a_composite_alarm_that_may_not_be_read_is_not_watched(guard: MakeGuard) -> None:
    made, _, _ = guard("errors", "all", states={"errors": "OK", "all": "OK"}, composite=frozenset({"all"}),
                       denies_composites=True)  # fmt: skip
    stopped = made.check()
    assert stopped is not None
    assert (stopped.reason, "AccessDenied" in stopped.because) == (StopReason.UNWATCHED, True)


def test_composite_alarms_are_alarms(guard: MakeGuard) -> None:
    made, _, _ = guard("all", states={"all": "ALARM"}, composite=frozenset({"all"}))
    assert made.check() == Stop(reason=StopReason.ALARM, because="alarm all is in ALARM")


def test_more_alarms_than_one_call_takes_are_all_watched(guard: MakeGuard) -> None:
    names = [f"alarm-{number}" for number in range(101)]
    made, watched, _ = guard(*names, states={**dict.fromkeys(names, "OK"), "alarm-100": "ALARM"})
    assert made.check() == Stop(reason=StopReason.ALARM, because="alarm alarm-100 is in ALARM")
    assert watched.looks == 2


@pytest.mark.parametrize(
    ("world", "told"),
    [
        (
            {"first_token_s": [0.5001]},
            "the users' time to first token p95 is 500.1 ms; the objective ttft_ms p95 is at most 500 ms",
        ),
        (
            {"latency_us": {"ModelLatency Average": [1.0, 4_000_100.0]}},
            "the users' ModelLatency mean is 4000.1 ms; the objective e2e_latency_ms mean is at most 4000 ms",
        ),
    ],
)
def test_the_users_slo_stops_the_trial(guard: MakeGuard, world: dict[str, object], told: str) -> None:
    made, _, _ = guard(**world)
    assert made.check() == Stop(reason=StopReason.USERS_SLO, because=told)


def test_first_tokens_of_a_component_are_not_read_of_a_series_that_aws_does_not_publish(guard: MakeGuard) -> None:
    made, _, _ = guard(latency_us={"FirstChunkModelLatency p95": [9_000_000.0]}, first_token_s=[ValueError("HTTP 400")])
    assert made.check() is None


def test_first_tokens_of_a_variant_are_sagemakers(trial_request: MakeRequest) -> None:
    target = TrialTarget(endpoint_name="x", inference_component=None, region="eu-west-1", target_variant="blue")
    request = trial_request(manner="in_place", objectives=OBJECTIVES, target=target)
    watched = Watched(latency_us={"FirstChunkModelLatency p95": [500_100.0]})
    made = Guard(request, cloudwatch=cast("CloudWatchClient", watched), clock=Time(), now=lambda: NOW)
    stop = made.check()
    assert stop is not None
    assert "FirstChunkModelLatency p95 is 500.1 ms" in stop.because


def test_first_tokens_that_are_read_no_more_stop_the_trial(guard: MakeGuard) -> None:
    made, _, time = guard(first_token_s=[0.1, float("nan"), OSError("gone"), OSError("gone")])
    for _ in range(2):
        assert made.check() is None
        time.now_s += 10
    stop = made.check()
    assert stop is not None
    assert stop.reason == StopReason.UNWATCHED


def test_cloudwatch_is_asked_every_ten_seconds_at_most(guard: MakeGuard) -> None:
    made, watched, time = guard("errors", states={"errors": "OK"})
    made.check()
    watched.states["errors"] = "ALARM"
    time.now_s += 9.9
    assert (made.check(), watched.looks) == (None, 1)
    time.now_s += 0.1
    assert made.check() is made.stopped is not None
    time.now_s += 60
    watched.states["errors"] = "OK"
    assert made.check() is made.stopped is not None
    assert watched.looks == 2


def test_one_failure_of_cloudwatch_is_borne(guard: MakeGuard) -> None:
    made, watched, _ = guard("errors", states={"errors": "OK"}, failures=1)
    assert (made.check(), watched.looks) == (None, 2)


def test_users_that_cannot_be_watched_stop_the_trial(guard: MakeGuard) -> None:
    made, watched, _ = guard("errors", states={"errors": "OK"}, failures=2)
    stop = made.check()
    assert stop is not None
    assert (stop.reason, watched.looks) == (StopReason.UNWATCHED, 2)
    assert stop.because.startswith("the users' requests could not be watched: ")


def test_an_alarm_that_does_not_exist_watches_nobody(guard: MakeGuard) -> None:
    made, _, _ = guard("errors", "gone", states={"errors": "OK"})
    because = "the users' requests could not be watched: there is no alarm gone"
    assert made.check() == Stop(reason=StopReason.UNWATCHED, because=because)


def test_a_metric_that_may_not_be_read_watches_nobody(guard: MakeGuard) -> None:
    made, _, _ = guard(status="Forbidden")
    stop = made.check()
    assert stop is not None
    assert stop.reason == StopReason.UNWATCHED


def test_beside_a_block_both_reasons_are_told(guard: MakeGuard) -> None:
    made, _, _ = guard("errors", states={"errors": "ALARM"})
    cancelled = Stop(reason=StopReason.CANCELLED, because="the stack is deleted")
    with made.beside(go_on) as told:
        assert told() == made.stopped
    with made.beside(lambda: cancelled) as told:
        assert told() == cancelled


def test_only_a_trial_beside_users_is_watched(trial_request: MakeRequest) -> None:
    tools = Tools(cloudwatch=cast("CloudWatchClient", Watched()))
    assert guard_of(trial_request(manner="in_place"), tools) is not None
    assert guard_of(trial_request(), tools) is None
    assert guard_of(trial_request(manner="verify"), tools) is None
    server = TrialTarget(endpoint_name="x", inference_component=None, region="eu-west-1", kind="openai")
    assert guard_of(trial_request(manner="in_place", target=server), tools) is None
    assert guard_of(trial_request(manner="in_place"), Tools(asks_cloudwatch=False)) is None
