"""Connections that break: every one is counted, and nothing that it carried is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.faults.order import Order, five_percent
from tests.faults.trials import LOAD, miss_of, verdict_of

if TYPE_CHECKING:
    from tests.faults.trials import Trials


def test_the_harmless_proxy_changes_nothing(trials: Trials) -> None:
    result = trials.run(Order(fault="pass_on"))
    assert [(level.requests, level.succeeded, dict(level.errors)) for level in result.levels] == [
        (10, 10, {}),
        (40, 40, {}),
    ]
    assert [tally.seen for tally in trials.tallies[1:]] == [40]
    assert (verdict_of(result).status, result.clock_offset_s) == ("pass", None)


def test_of_connections_that_are_reset_in_the_middle_of_the_answer_nothing_is_measured(trials: Trials) -> None:
    result = trials.run(five_percent("reset"))
    level = result.levels[-1]
    assert (trials.hit, level.requests, level.succeeded) == (2, 40, 38)
    assert dict(level.errors) == {"connection": 2}
    assert level.first_errors == ("connection: Connection reset by peer (after 2 token events)",)
    assert level.error_rate == 0.05
    measured = (level.ttft_ms, level.ms_per_token, level.e2e_latency_ms)
    assert [None if values is None else values.count for values in measured] == [38, 38, 38]
    assert level.tpot_ms is None or level.tpot_ms.count == 38, "on a busy machine half of the answers arrive at once"
    assert level.itl_ms is not None
    assert level.itl_ms.count == 38 * 7
    assert level.output_tokens_mean == 8.0
    assert miss_of(result) == "error_rate 5.00 % exceeds 1.00 % at concurrency 4 per copy"


def test_failures_are_counted_over_all_processes_that_load(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, workers=2))
    level = trials.run(five_percent("reset"), request=request).levels[-1]
    assert level.client is not None
    assert (level.client.workers, trials.hit, level.requests, level.succeeded) == (2, 2, 40, 38)
    assert dict(level.errors) == {"connection": 2}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("close", "the connection was closed in the middle of the response (after 2 token events)"),
        ("close_after_head", "the connection was closed in the middle of the response"),
    ],
)
def test_a_polite_early_close_is_a_failure_as_well(trials: Trials, fault: str, said: str) -> None:
    level = trials.run(five_percent(fault)).levels[-1]
    assert (trials.hit, dict(level.errors), level.first_errors) == (2, {"connection": 2}, (f"connection: {said}",))


def test_a_request_that_was_taken_and_dropped_without_a_word_is_never_hidden(trials: Trials) -> None:
    """Every request of the level goes over a kept-alive connection.

    One that breaks in silence may be repeated, since a server may close an idle connection in the same moment; but the
    result tells.
    """
    level = trials.run(five_percent("reset_at_once")).levels[-1]
    told = level.errors.get("connection", 0) + level.retried.get("connection", 0)
    assert (trials.hit, told) == (2, 2)
    assert level.succeeded == 40 - level.errors.get("connection", 0)
