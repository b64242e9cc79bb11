"""What stops a trial beside users' requests: an alarm, or their latency past the SLO.

Facts (AWS documentation, "Amazon SageMaker AI metrics in Amazon CloudWatch"): `ModelLatency` and
`FirstChunkModelLatency` in microseconds, a datapoint a minute; percentiles are asked for as statistics (`p95`). The
trial's own requests are among them, so that it stops early rather than late.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from seatrial_base.units import tenths
from seatrial_load.aws.cloudwatch import (
    MICROSECONDS_PER_MS,
    cloudwatch_client,
    cloudwatch_errors,
    component_dimensions,
    metric_query,
)
from seatrial_load.aws.deployment_check import asking
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.literals import AlarmTypeType
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

    from seatrial_load.documents.request import Metric, Objective, TrialRequest
    from seatrial_load.trial.dependencies import ShouldStop, Tools


# Seconds between two looks at CloudWatch, at least.
LOOK_S = 10.0
TICK_S = 1.0
PERIOD_S = 60
# Composite alarms are described with a right to `*` alone (CloudWatch user guide, permissions reference), which the
# trial service lacks: one request for both kinds would be denied, so they are requested for names of no metric alarm.
ALARM_KINDS: Final[tuple[AlarmTypeType, ...]] = ("MetricAlarm", "CompositeAlarm")
MOST_ALARMS = 100
METRICS: Mapping[Metric, str] = {"e2e_latency_ms": "ModelLatency", "ttft_ms": "FirstChunkModelLatency"}
UNREAD = ("InternalError", "Forbidden")


class Guard:
    """Watches how users fare while a trial adds load beside their requests."""

    def __init__(
        self,
        request: TrialRequest,
        *,
        cloudwatch: CloudWatchClient,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        every_s: float = LOOK_S,
    ) -> None:
        """Watch the alarms and the objectives of a request.

        Args:
            every_s: Seconds between two looks, at least.
        """
        self._request = request
        self._cloudwatch = cloudwatch
        self._clock = clock
        self._now = now
        self._every_s = every_s
        self._again_s: float | None = None
        self._stopped: Stop | None = None

    @property
    def stopped(self) -> Stop | None:
        """Why the trial is to stop, as far as the last look told; asks nothing."""
        return self._stopped

    def check(self) -> Stop | None:
        """Look, unless that was done a moment ago, and say why the trial is to stop; once said, it stays said.

        What can't be asked for twice in a row can't be watched, which stops the trial too.
        """
        now_s = self._clock()
        if self._stopped is not None or (self._again_s is not None and now_s < self._again_s):
            return self._stopped
        self._again_s = now_s + self._every_s
        try:
            self._stopped = self._looked()
        except cloudwatch_errors():
            self._stopped = self._looked_again()
        return self._stopped

    @contextmanager
    def beside(self, should_stop: ShouldStop) -> Iterator[ShouldStop]:
        """Look in a thread while the block runs, since a call of CloudWatch inside a level would hold up its clock.

        Args:
            should_stop: Says why the trial is to stop for another reason; it comes first.

        Yields:
            What tells either; it asks nothing of CloudWatch itself.
        """
        self.check()
        ended = Event()

        def repeat() -> None:
            try:
                while not ended.wait(TICK_S):
                    self.check()
            finally:
                self._stopped = self._stopped or (None if ended.is_set() else _unwatched("the watch failed"))

        thread = Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield lambda: should_stop() or self._stopped
        finally:
            ended.set()
            thread.join()

    def _looked_again(self) -> Stop | None:
        try:
            return self._looked()
        except cloudwatch_errors() as refused:
            return _unwatched(f"{refused}")

    def _looked(self) -> Stop | None:
        return self._alarm() or self._users()

    def _alarm(self) -> Stop | None:
        names = self._request.alarms
        states: dict[str, str] = {}
        for kind in ALARM_KINDS:
            unknown = [name for name in names if name not in states]
            for first in range(0, len(unknown), MOST_ALARMS):
                states |= self._states(unknown[first : first + MOST_ALARMS], kind)
        missing = [name for name in names if name not in states]
        if missing:
            return _unwatched(f"there is no alarm {', '.join(missing)}")
        ringing = [name for name in names if states[name] == "ALARM"]
        if not ringing:
            return None
        subject = f"alarm {ringing[0]} is" if len(ringing) == 1 else f"alarms {', '.join(ringing)} are"
        return Stop(reason=StopReason.ALARM, because=f"{subject} in ALARM")

    def _states(self, names: Sequence[str], kind: AlarmTypeType) -> dict[str, str]:
        answer = self._cloudwatch.describe_alarms(AlarmNames=names, AlarmTypes=[kind], MaxRecords=MOST_ALARMS)
        every = (*answer.get("MetricAlarms", []), *answer.get("CompositeAlarms", []))
        return {alarm["AlarmName"]: alarm["StateValue"] for alarm in every}

    def _users(self) -> Stop | None:
        """Hold the users' latency of the last whole minute, and of the one that runs, against the objectives."""
        queries = self._queries()
        if not queries:
            return None
        until = self._now()
        answer = self._cloudwatch.get_metric_data(
            MetricDataQueries=[query for _, query in queries.values()],
            StartTime=until.replace(second=0, microsecond=0) - timedelta(seconds=PERIOD_S),
            EndTime=until,
        )
        for result in answer["MetricDataResults"]:
            objective, _ = queries[result["Id"]]
            if result.get("StatusCode") in UNREAD:
                return _unwatched(f"CloudWatch answered {result.get('StatusCode')} for {METRICS[objective.metric]}")
            if result["Values"] and max(result["Values"]) / MICROSECONDS_PER_MS > objective.bound:
                return _missed(objective, max(result["Values"]) / MICROSECONDS_PER_MS)
        return None

    def _queries(self) -> dict[str, tuple[Objective, MetricDataQueryTypeDef]]:
        dimensions = component_dimensions(self._request.target)
        watched = [one for one in self._request.objectives if one.metric in METRICS and one.sense == "at_most"]
        if dimensions is None:
            return {}
        return {
            f"users_{number}": (
                one,
                metric_query(
                    f"users_{number}",
                    METRICS[one.metric],
                    "Average" if one.statistic == "mean" else one.statistic,
                    dimensions,
                    period_s=PERIOD_S,
                ),
            )
            for number, one in enumerate(watched)
        }


def guard_of(request: TrialRequest, tools: Tools) -> Guard | None:
    """Return what watches users during a trial beside their requests; None of any other trial.

    Raises:
        BenchError: The region of the target can't be asked: SEA503, SEA504 or SEA512.
    """
    if request.manner != "in_place" or request.target.kind != "sagemaker" or not tools.asks_cloudwatch:
        return None
    region = request.target.region
    with asking(f"CloudWatch in {region}"):
        return Guard(
            request,
            cloudwatch=cloudwatch_client(region) if tools.cloudwatch is None else tools.cloudwatch,
            clock=tools.clock,
            now=tools.wall_clock,
        )


def _missed(objective: Objective, measured_ms: float) -> Stop:
    metric = f"{METRICS[objective.metric]} {objective.statistic}"
    because = (
        f"the users' {metric} is {tenths(measured_ms)} ms; the objective {objective.metric} {objective.statistic} is "
        f"at most {objective.bound:g} ms"
    )
    return Stop(reason=StopReason.USERS_SLO, because=because)


def _unwatched(because: str) -> Stop:
    return Stop(reason=StopReason.UNWATCHED, because=f"the users' requests could not be watched: {because}")
