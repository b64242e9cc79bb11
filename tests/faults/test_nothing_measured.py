"""No request succeeds, or none can be sent: no number is made from nothing."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial_base.errors import BenchError
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial
from tests.faults.order import Order
from tests.faults.trials import CREDENTIALS, miss_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mypy_boto3_cloudwatch import CloudWatchClient

    from tests.faults.trials import Trials

MEASURED = (
    "output_tok_s",
    "ttft_ms",
    "tpot_ms",
    "itl_ms",
    "ms_per_token",
    "e2e_latency_ms",
    "input_tokens_mean",
    "output_tokens_mean",
    "total_tok_s",
    "output_tok_s_interval",
    "parts_per_token",
    "queue_share",
)
NO_SUCCESS = (
    "concurrency 4 per copy was not measured; 0 of 10 requests succeeded at concurrency 1 per copy: throttled 10 "
    "(throttled: HTTP 429 ThrottlingException: Rate exceeded)"
)


@pytest.fixture
def nothing(trials: Trials) -> TrialResult:
    trials.proxy.obey(Order(fault="throttle"))
    return trials.run_as_it_is()


def test_zero_successful_requests_have_no_latency_and_no_throughput(nothing: TrialResult) -> None:
    (level,) = nothing.levels
    assert (level.concurrency, level.requests, level.succeeded, level.error_rate) == (1, 10, 0, 1.0)
    assert {name: getattr(level, name) for name in MEASURED} == dict.fromkeys(MEASURED)
    assert not level.meets_slo
    assert nothing.stopped.because == "no request succeeded at concurrency 1 per copy"


def test_zero_successful_requests_have_no_knee_no_cost_and_fail(nothing: TrialResult) -> None:
    assert [(knee.detector, knee.concurrency) for knee in nothing.knees if knee.concurrency is not None] == []
    assert (nothing.target_concurrency_per_copy, nothing.target_detector) == (1.0, None)
    because = "1 per copy, the lowest load that misses the SLO, less than the fallback of 2: "
    assert nothing.target_because.startswith(because)
    assert (nothing.usd_per_million_output_tokens, nothing.blended_usd_per_million_tokens) == (None, None)
    assert miss_of(nothing) == NO_SUCCESS
    assert nothing.engine_note == ""


def test_a_result_without_a_number_is_written_read_and_reported(nothing: TrialResult) -> None:
    assert TrialResult.from_json(nothing.to_json()) == nothing
    page, text = render_html(nothing, None), render_markdown(nothing, None)
    page = re.sub(r"<script>.*?</script>|href=\"data:[^\"]*\"", "", page, flags=re.DOTALL)
    for rendered in (page, text):
        assert "ThrottlingException: Rate exceeded" in rendered
        assert "NaN" not in rendered
        assert "inf" not in rendered.replace("inference", "").replace("information", "")


def test_cloudwatch_is_not_waited_for_where_nothing_was_measured(trials: Trials) -> None:
    """Its datapoints come 70 s late, to be held against latencies that there are none of."""
    waits: list[float] = []
    trials.proxy.obey(Order(fault="throttle"))
    tools = Tools(
        credentials=CREDENTIALS, calibrates=False, cloudwatch=cast("CloudWatchClient", NoMetrics()), sleep=waits.append
    )
    result = run_trial(trials.request(), tools=tools)
    assert isinstance(result, TrialResult)
    assert (waits, result.overhead) == ([], None)


def test_a_name_that_does_not_resolve_is_told_before_anything_is_sent(trials: Trials) -> None:
    """The resolver's own words stand in the message: they differ from machine to machine."""
    with pytest.raises(socket.gaierror) as unresolved:
        socket.getaddrinfo("nothing.invalid", 8080)
    target = replace(trials.target(), endpoint_url="http://nothing.invalid:8080")
    with pytest.raises(BenchError) as refused:
        trials.run_as_it_is(request=trials.request(target=target))
    assert str(refused.value) == (
        "target.endpoint_url: SEA504: the endpoint nothing.invalid:8080 can't be used: the host name nothing.invalid "
        f"does not resolve: {unresolved.value.strerror}\n"
        "  hint: check the region and the host's spelling; inside a VPC without a route to the internet, the runtime "
        "API needs an interface endpoint (com.amazonaws.REGION.sagemaker.runtime) with private DNS"
    )
    assert trials.proxy.obey().seen == 0


def test_a_port_where_nobody_listens_is_data(trials: Trials) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        target = replace(trials.target(), endpoint_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        result = trials.run_as_it_is(request=trials.request(target=target))
    (level,) = result.levels
    assert (level.succeeded, dict(level.errors)) == (0, {"connection": 10})
    assert level.first_errors == ("connection: Connection refused",)
    assert miss_of(result).endswith(": connection 10 (connection: Connection refused)")


class NoMetrics:
    """A CloudWatch that nobody has written to."""

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        del MetricDataQueries, StartTime, EndTime
        return {"MetricDataResults": []}
