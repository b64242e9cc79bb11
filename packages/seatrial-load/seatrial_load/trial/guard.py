"""The guard of a trial alongside users' requests: it stops at an alarm, or at their latency past the SLO.

Facts (AWS documentation, "Amazon SageMaker AI metrics in Amazon CloudWatch"; "Metric name mapping: legacy to OTel"):
`ModelLatency` and `FirstChunkModelLatency` in microseconds, a datapoint a minute; percentiles are statistics (`p95`).
The second is published of variants alone: the first tokens of a component are those that its engines publish, where
they do (`hosting.metrics.detailed`). The trial's own requests are among them, so that it stops early rather than late.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MS_PER_S, tenths
from seatrial_load.aws.cloudwatch import (
    MICROSECONDS_PER_MS,
    cloudwatch_client,
    cloudwatch_errors,
    component_dimensions,
    metric_query,
)
from seatrial_load.aws.container_metrics import STEP_S, cloudwatch_promql, first_token_query, target_labels
from seatrial_load.aws.deployment_check import asking
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import datetime

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.literals import AlarmTypeType
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

    from seatrial_load.aws.container_metrics import PromQl
    from seatrial_load.documents.request import Metric, Objective, TrialRequest
    from seatrial_load.trial.dependencies import ShouldStop, Tools


# Seconds between two reads of CloudWatch, at least.
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
    """Observes the users' requests while a trial adds load."""

    def __init__(
        self,
        request: TrialRequest,
        *,
        cloudwatch: CloudWatchClient,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        every_s: float = LOOK_S,
        promql: PromQl | None = None,
    ) -> None:
        """Watch the alarms and the objectives of a request."""
        self._request = request
        self._cloudwatch = cloudwatch
        self._clock = clock
        self._now = now
        self._every_s = every_s
        self._promql = promql
        self._has_first_tokens = False
        self._component = request.target.inference_component
        self._again_s: float | None = None
        self._stopped: Stop | None = None

    @property
    def stopped(self) -> Stop | None:
        """Why the trial is to stop, as of the last read; reads nothing."""
        return self._stopped

    def check(self) -> Stop | None:
        """Read CloudWatch, unless that was done a moment ago, and return why the trial is to stop; a reason is final.

        Two failed reads in a row stop the trial too: the users can't be observed.
        """
        now_s = self._clock()
        if self._stopped is not None or (self._again_s is not None and now_s < self._again_s):
            return self._stopped
        self._again_s = now_s + self._every_s
        for may_fail in (True, False):
            try:
                self._stopped = self._alarm() or self._users() or self._first_tokens()
                break
            except cloudwatch_errors() as refused:
                self._stopped = None if may_fail else _unwatched(f"{refused}")
        return self._stopped

    @contextmanager
    def beside(self, should_stop: ShouldStop) -> Iterator[ShouldStop]:
        """Check in a thread while the block runs, since a call of CloudWatch inside a level would hold up its clock.

        Args:
            should_stop: Another reason to stop; it comes first.

        Yields:
            What returns either reason; it doesn't read CloudWatch itself.
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

    def _alarm(self) -> Stop | None:
        names = self._request.alarms
        states: dict[str, str] = {}
        for kind in ALARM_KINDS:
            unknown = [name for name in names if name not in states]
            for first in range(0, len(unknown), MOST_ALARMS):
                page = self._cloudwatch.describe_alarms(
                    AlarmNames=unknown[first : first + MOST_ALARMS], AlarmTypes=[kind], MaxRecords=MOST_ALARMS
                )
                alarms = (*page.get("MetricAlarms", []), *page.get("CompositeAlarms", []))
                states |= {alarm["AlarmName"]: alarm["StateValue"] for alarm in alarms}
        missing = [name for name in names if name not in states]
        if missing:
            return _unwatched(f"there is no alarm {', '.join(missing)}")
        ringing = [name for name in names if states[name] == "ALARM"]
        if not ringing:
            return None
        subject = f"alarm {ringing[0]} is" if len(ringing) == 1 else f"alarms {', '.join(ringing)} are"
        return Stop(reason=StopReason.ALARM, because=f"{subject} in ALARM")

    def _users(self) -> Stop | None:
        """Compare the users' latency of the last whole minute, and of the current one, with the objectives."""
        queries = self._queries()
        if not queries:
            return None
        until = self._now()
        response = self._cloudwatch.get_metric_data(
            MetricDataQueries=[query for _, query in queries.values()],
            StartTime=until.replace(second=0, microsecond=0) - timedelta(seconds=PERIOD_S),
            EndTime=until,
        )
        for result in response["MetricDataResults"]:
            objective, _ = queries[result["Id"]]
            if result.get("StatusCode") in UNREAD:
                return _unwatched(f"CloudWatch returned {result.get('StatusCode')} for {METRICS[objective.metric]}")
            if result["Values"] and max(result["Values"]) / MICROSECONDS_PER_MS > objective.bound:
                return _missed(objective, METRICS[objective.metric], max(result["Values"]) / MICROSECONDS_PER_MS)
        return None

    def _first_tokens(self) -> Stop | None:
        """Compare the users' time to first token with its objectives, where a component's engines publish it.

        A source that never had a value is none: not every region, engine or endpoint has one. Once it had, a failure is
        as that of CloudWatch.
        """
        if self._promql is None or self._component is None:
            return None
        until_s = self._now().timestamp()
        for objective in self._watched({"ttft_ms"}):
            query = first_token_query(target_labels(self._request.target), objective.statistic)
            try:
                series = self._promql(query, start_s=until_s, end_s=until_s, step_s=STEP_S)
            except (OSError, ValueError):
                if self._has_first_tokens:
                    raise
                continue
            # Without requests in its window the value is no number.
            values_s = [value for row in series for _, value in row.samples if not math.isnan(value)]
            self._has_first_tokens |= bool(values_s)
            if values_s and max(values_s) * MS_PER_S > objective.bound:
                return _missed(objective, "time to first token", max(values_s) * MS_PER_S)
        return None

    def _watched(self, metrics: Collection[Metric]) -> Iterator[Objective]:
        return (goal for goal in self._request.objectives if goal.metric in metrics and goal.sense == "at_most")

    def _queries(self) -> dict[str, tuple[Objective, MetricDataQueryTypeDef]]:
        dimensions = component_dimensions(self._request.target)
        watched = self._watched([name for name in METRICS if name != "ttft_ms" or self._component is None])
        queries: dict[str, tuple[Objective, MetricDataQueryTypeDef]] = {}
        for number, objective in enumerate(watched if dimensions is not None else ()):
            stat = "Average" if objective.statistic == "mean" else objective.statistic
            name, metric = f"users_{number}", METRICS[objective.metric]
            queries[name] = objective, metric_query(name, metric, stat, dimensions or [], period_s=PERIOD_S)
        return queries


def guard_of(request: TrialRequest, tools: Tools) -> Guard | None:
    """Return the guard of a trial alongside users' requests; None of any other trial.

    Raises:
        BenchError: The region of the target can't be read: SEA503, SEA504 or SEA512.
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
            promql=tools.promql
            if tools.promql is not None or tools.cloudwatch is not None
            else cloudwatch_promql(region, tools.credentials, now=tools.wall_clock),
        )


def _missed(objective: Objective, metric: str, measured_ms: float) -> Stop:
    statistic = objective.statistic
    because = (
        f"the users' {metric} {statistic} is {tenths(measured_ms)} ms; the objective {objective.metric} {statistic} is "
        f"at most {objective.bound:g} ms"
    )
    return Stop(reason=StopReason.USERS_SLO, because=because)


def _unwatched(because: str) -> Stop:
    return Stop(reason=StopReason.UNWATCHED, because=f"the users' requests could not be watched: {because}")
