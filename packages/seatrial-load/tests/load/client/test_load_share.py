from __future__ import annotations

import selectors
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.client.connection import Address, Connection, SocketConnection, socket_addresses
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.request import Load, TrialTarget
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.documents.strict_json import read_document, write_document
from seatrial_load.metrics.aggregate import merge
from seatrial_load.search import NextLevel
from seatrial_load.trial.dependencies import Tools, go_on
from seatrial_load.trial.steps import LateStartError, ShareOrder, add_level, plan_shares, send_worker_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest

    MakeRequest = Callable[..., TrialRequest]

LOAD = Load(
    concurrency_levels=(6,),
    ramp_per_concurrency=1,
    requests_per_concurrency=3,
    warmup_requests=0,
    budget_s=20.0,
    request_timeout_s=5.0,
)
TOOLS = Tools(credentials=Credentials("AKIDEXAMPLE", "secret"), calibrates=False)
PROGRESS = TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=1.0, sent=10, live=not_proven())


@pytest.fixture
def request_of_six(trial_request: MakeRequest, runtime_url: str) -> TrialRequest:
    target = TrialTarget(endpoint_name="stream", inference_component=None, region="eu-west-1", endpoint_url=runtime_url)
    return trial_request(target=target, expected=None, load=LOAD, gate_concurrency=1)


DELETED = Stop(reason=StopReason.CANCELLED, because="the stack is deleted")


def test_every_request_and_stream_belongs_to_one_worker(request_of_six: TrialRequest) -> None:
    shares = plan_shares(request_of_six, PROGRESS, 6, 4, 1_000.0, barrier_s=5.0)
    assert [share.streams for share in shares] == [2, 2, 1, 1]
    assert [share.requests for share in shares] == [6, 6, 6, 6]
    assert [share.ramp for share in shares] == [2, 2, 1, 1]
    assert [share.first_index for share in shares] == [10, 11, 12, 13]
    assert {share.start_at_epoch_s for share in shares} == {1_005.0}
    assert {share.deadline_epoch_s for share in shares} == {1_024.0}


def test_no_worker_is_without_a_stream(request_of_six: TrialRequest) -> None:
    assert len(plan_shares(request_of_six, PROGRESS, 2, 40, 0.0)) == 2


def test_an_order_is_a_document(request_of_six: TrialRequest) -> None:
    (share, *_) = plan_shares(request_of_six, PROGRESS, 6, 4, 1_000.0)
    assert read_document(ShareOrder, write_document(share), where="share") == share


def test_shares_loaded_side_by_side_are_one_level(request_of_six: TrialRequest) -> None:
    shares = plan_shares(request_of_six, PROGRESS, 6, 3, time.time(), barrier_s=0.3)
    with ThreadPoolExecutor(3) as workers:
        tallies = list(
            workers.map(
                lambda share: send_worker_share(request_of_six, PROGRESS, share, should_stop=go_on, tools=TOOLS), shares
            )
        )
    step = NextLevel(concurrency=6, because="next listed level")
    (level,) = add_level(request_of_six, PROGRESS, step, merge(tallies)).levels
    assert (level.concurrency, level.requests, level.succeeded, level.ramp_requests) == (6, 18, 18, 6)
    assert level.client is not None
    assert (level.client.workers, level.client.streams) == (3, 6)
    assert level.e2e_latency_ms is not None
    assert level.e2e_latency_ms.count == 18


def test_shares_carry_conversations_of_their_own(request_of_six: TrialRequest) -> None:
    """Six requests in flight, three turns: two rounds come before what is measured, three requests for each stream."""
    request = replace(request_of_six, workload=replace(request_of_six.workload, turns=3))
    shares = plan_shares(request, PROGRESS, 6, 3, time.time(), barrier_s=0.3)
    assert [(share.ramp, share.requests) for share in shares] == [(4, 10)] * 3
    with ThreadPoolExecutor(3) as workers:
        tallies = list(
            workers.map(
                lambda share: send_worker_share(request, PROGRESS, share, should_stop=go_on, tools=TOOLS), shares
            )
        )
    step = NextLevel(concurrency=6, because="next listed level")
    progress = add_level(request, PROGRESS, step, merge(tallies))
    (level,) = progress.levels
    assert (level.requests, level.succeeded, level.ramp_requests) == (18, 18, 12)
    assert 0 < level.conversations < level.requests
    assert progress.sent > PROGRESS.sent + 30  # as many conversations have numbers as requests


def test_a_worker_that_comes_too_late_loads_nothing(request_of_six: TrialRequest) -> None:
    (share, *_) = plan_shares(request_of_six, PROGRESS, 6, 2, time.time() - 60.0, barrier_s=1.0)
    with pytest.raises(BenchError, match=r"SEA507: worker 0 of 2 started \d+\.\d s late"):
        send_worker_share(request_of_six, PROGRESS, share, should_stop=go_on, tools=TOOLS)


def test_shares_that_the_budget_cuts_are_a_cut_level(request_of_six: TrialRequest) -> None:
    shares = plan_shares(request_of_six, PROGRESS, 6, 2, time.time(), barrier_s=0.2)
    longer = [replace(share, requests=5_000, deadline_epoch_s=share.start_at_epoch_s + 0.5) for share in shares]
    with ThreadPoolExecutor() as pool:
        loading = [
            pool.submit(send_worker_share, request_of_six, PROGRESS, share, should_stop=go_on, tools=TOOLS)
            for share in longer
        ]
        tally = merge([each.result() for each in loading])
    progress = add_level(request_of_six, PROGRESS, NextLevel(concurrency=6, because=""), tally)
    (level,) = progress.cut
    assert progress.levels == ()
    assert level.cut.startswith("the budget ended before worker 0 was done (")
    assert level.succeeded > 0
    assert level.output_tok_s is not None


def test_a_share_that_is_stopped_has_no_tally(request_of_six: TrialRequest) -> None:
    (share, *_) = plan_shares(request_of_six, PROGRESS, 6, 2, time.time(), barrier_s=0.2)
    longer = replace(share, requests=5_000)
    with pytest.raises(BenchError, match="SEA507: the stack is deleted"):
        send_worker_share(
            request_of_six,
            PROGRESS,
            longer,
            should_stop=lambda: DELETED,
            tools=TOOLS,
        )


def test_connections_that_open_after_the_common_start_spoil_the_share(
    request_of_six: TrialRequest, runtime_url: str
) -> None:
    """Its load would not lie beside the others', and their rates would be added all the same."""
    (share, *_) = plan_shares(request_of_six, PROGRESS, 6, 2, time.time(), barrier_s=0.4)
    address = Address(tls=False, host="127.0.0.1", port=int(runtime_url.rpartition(":")[2]), path="")
    (where, *_) = socket_addresses(address)
    opens_s = time.perf_counter() + 1.0

    class Late(SocketConnection):
        __slots__ = ()

        def open_step(self) -> int:
            return selectors.EVENT_WRITE if time.perf_counter() < opens_s else super().open_step()

    def late() -> Connection:
        return Late(where, address.host, None)

    with pytest.raises(LateStartError, match=r"SEA507: worker 0 of 2 started \d+\.\d s late"):
        send_worker_share(request_of_six, PROGRESS, share, should_stop=go_on, tools=replace(TOOLS, dial=late))


def test_shares_end_with_the_budget_that_ends_first(request_of_six: TrialRequest) -> None:
    load = replace(LOAD, budget_usd=0.01)  # ten seconds at 3.6 USD per hour, of which one is gone
    (share, *_) = plan_shares(replace(request_of_six, load=load), PROGRESS, 6, 1, 1_000.0, barrier_s=5.0)
    assert share.deadline_epoch_s == pytest.approx(1_014.0)
