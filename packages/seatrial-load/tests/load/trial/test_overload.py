"""Load beyond the knee: servers that refuse at once, late or never, and those that don't recover."""

from __future__ import annotations

import heapq
import json
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.cli.load_command import run_load_command
from seatrial_load.decode.response import RequestRecord
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.request import Objective
from seatrial_load.documents.result import OverloadResult, Verdict
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.health import client_health
from seatrial_load.trial import finalize, preflight
from seatrial_load.trial.budget import left_s
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.overload import (
    BOUNDS,
    OverloadBounds,
    burst_of,
    judged_overload,
    measure_overload,
    with_overload,
)
from tests.load.conftest import make_record, make_request
from tests.load.slots import Slots

if TYPE_CHECKING:
    from typing import Literal

    from seatrial_load.trial.overload import Burst

SLO = (
    Objective(metric="ttft_ms", statistic="p95", bound=900.0, sense="at_most"),
    Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most"),
)
KNEE = 16
SERVICE_S = 1.08  # of a request on a full server of 16 slots, whose knee's rate is 15 requests/s


@dataclass(frozen=True, slots=True)
class Server:
    """Serves 16 requests at once, lets `queue` wait and refuses the rest; in virtual time."""

    queue: float = 6
    refuses_after_s: float = 0.004
    status_code: int = 503
    stuck_s: float = 0.0

    def records(self, burst: Burst, first: int) -> list[RequestRecord]:
        """Take a burst and its probes; once over, nothing is begun for `stuck_s` seconds."""
        slots, starts, records = [0.0] * KNEE, list[float](), list[RequestRecord]()
        for number, due_s in enumerate((*burst.due_s, *burst.probes_s)):
            waiting = sum(start_s > due_s for start_s in starts)
            at = {"sent_s": due_s, "due_s": due_s, "index": first + number}
            if waiting >= self.queue:
                none = dict.fromkeys(("first_token_s", "last_token_s", "output_tokens", "output_tokens_from"))
                refused = {"ended_s": due_s + self.refuses_after_s, "error": "throttled", "token_times_s": (), **none}
                records.append(make_record(**at, **refused, status=self.status_code, detail="full"))
                continue
            start_s = max(due_s, heapq.heappop(slots))
            if start_s > burst.seconds:
                start_s = max(start_s, burst.seconds + self.stuck_s)
            starts.append(start_s)
            first_s, last_s = start_s + 0.05, start_s + SERVICE_S
            heapq.heappush(slots, last_s)
            came = {"token_times_s": (first_s, last_s), "last_token_s": last_s, "ended_s": last_s, "output_tokens": 100}
            records.append(make_record(**at, **came, first_token_s=first_s))
        return records


def burst(objectives: tuple[Objective, ...] = SLO) -> Burst:
    levels = [Slots(KNEE).measure(concurrency, objectives) for concurrency in (4, KNEE)]
    made = burst_of(replace(make_request(), objectives=objectives), levels, None)
    assert made is not None
    return made


def judged(server: Server, objectives: tuple[Objective, ...] = SLO) -> OverloadResult:
    planned = burst(objectives)
    return judged_overload(planned, server.records(planned, 40), 40, objectives)


def test_the_burst_is_twice_the_knee_s_rate_and_long_enough_for_a_queue_to_show() -> None:
    planned = burst()

    assert planned.rate_per_s == pytest.approx(2 * (Slots(KNEE).measure(KNEE, SLO).requests_per_s or 0.0))
    assert len(planned.due_s) == pytest.approx(planned.rate_per_s * planned.seconds, rel=0.2)
    assert (planned.seconds, planned.limit_ms) == (BOUNDS.least_s, 900.0)
    assert planned.probes_s[0] > planned.due_s[-1]
    assert any(at_s <= planned.seconds + BOUNDS.recovery_s for at_s in planned.probes_s)
    slow = burst((replace(SLO[0], bound=8_000.0),))
    assert slow.seconds > 16  # twice what may wait


def test_a_bounded_queue_is_proved_with_its_numbers() -> None:
    seen = judged(Server())

    assert (seen.status, list(seen.refusals), seen.recovery_s) == ("proved", ["HTTP 503"], 0.5)
    assert 0.3 < seen.refused_share < 0.6
    assert seen.admitted + sum(seen.refusals.values()) == seen.sent
    assert seen.refusal_p95_ms == pytest.approx(4.0, abs=0.01)
    assert 500 < (seen.wait_p95_ms or 0.0) < 900
    assert "were refused (HTTP 503 " in seen.because


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (Server(queue=float("inf")), "was refused (TTFT p95"),
        (Server(queue=60), "admitted: "),
        (Server(refuses_after_s=0.3), "refused only after 300 ms (p95), not within 100 ms"),
        (Server(stuck_s=6.0), "5 s after the burst requests still wait longer than by the SLO"),
        (Server(queue=-1), "every request was refused"),
    ],
)
def test_what_is_no_overload_by_design_is_refuted(server: Server, reason: str) -> None:
    seen = judged(server)

    assert seen.status == "refuted"
    assert reason in seen.because


@pytest.mark.parametrize(("status", "name"), [(429, "HTTP 429"), (424, "ModelError"), (200, "in the stream")])
def test_each_kind_of_refusal_counts_and_is_named(status: int, name: str) -> None:
    seen = judged(Server(status_code=status))

    assert (seen.status, list(seen.refusals)) == ("proved", [name])


def test_without_an_slo_the_wait_is_held_against_that_at_the_knee() -> None:
    assert judged(Server(), ()).status == "proved"
    assert "was refused" in judged(Server(queue=float("inf")), ()).because


def test_a_server_that_answers_twice_the_knee_was_not_overloaded() -> None:
    planned = burst()
    light = replace(planned, due_s=planned.due_s[::4])
    seen = judged_overload(light, Server(queue=float("inf")).records(light, 0), 0, SLO)

    assert (seen.status, "that is no overload" in seen.because) == ("unmeasured", True)


@pytest.mark.parametrize(
    ("status", "required", "before", "after"),
    [
        ("proved", True, "pass", "pass"),
        ("refuted", True, "pass", "fail"),
        ("refuted", False, "pass", "pass"),
        ("unmeasured", True, "pass", "inconclusive"),
        ("unmeasured", True, "fail", "fail"),
        ("unmeasured", False, "pass", "pass"),
    ],
)
def test_the_verdict_depends_on_the_proof_only_where_it_is_required(
    status: Literal["proved", "refuted", "unmeasured"],
    before: Literal["pass", "fail"],
    after: str,
    *,
    required: bool,
) -> None:
    verdict = Verdict(status=before, because="the levels", checks=())
    judged_verdict = with_overload(verdict, OverloadResult(status=status, because="so"), is_required=required)
    assert judged_verdict.status == after
    assert ("overload" in judged_verdict.because) is required


def progress(*, elapsed_s: float = 0.0, over: bool = True) -> TrialProgress:
    stopped = Stop(reason=StopReason.ALL_MEASURED, because="every level was measured") if over else None
    return TrialProgress(started_at="2026-11-27", elapsed_s=elapsed_s, sent=0, live=not_proven(), stopped=stopped)


def test_the_levels_leave_the_proof_a_part_of_the_budget() -> None:
    tried = make_request(overload="prove")  # of a budget of 30 s
    assert left_s(tried, progress(elapsed_s=10, over=False)) == 12.5
    assert left_s(tried, progress(elapsed_s=10)) == left_s(make_request(), progress(elapsed_s=10, over=False)) == 20


@pytest.mark.parametrize(
    ("elapsed_s", "concurrencies", "doubt", "because"),
    [
        (25.0, (4, KNEE), "", "19 s, and 5 s of the budget are left"),
        (0.0, (), "", "no level was measured whose rate could be doubled"),
        (0.0, (4, KNEE), "copies changed", "copies changed"),
    ],
)
def test_what_is_not_sent_is_unmeasured_with_its_reason(
    elapsed_s: float, concurrencies: tuple[int, ...], doubt: str, because: str
) -> None:
    levels = [Slots(KNEE).measure(each, SLO) for each in concurrencies]
    seen = measure_overload(make_request(), progress(elapsed_s=elapsed_s), levels, None, Tools(), doubt=doubt)
    assert (seen.status, because in seen.because, seen.sent) == ("unmeasured", True, 0)


def answering(queue: int) -> ThreadingHTTPServer:
    """A server that answers four requests at once, each in 0.1 s, lets so many wait, and refuses the rest."""
    slots, gate, held = threading.Semaphore(4), threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with gate:
                admits = held[0] < 4 + queue
                held[0] += admits
            if not admits:
                self._answer(503, "application/json", b'{"error": {"message": "full", "type": "overloaded"}}')
                return
            with slots:
                time.sleep(0.1)
                self._answer(200, "text/event-stream", b"".join(EVENTS))
            with gate:
                held[0] -= 1

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

        def log_message(self, *_args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256  # all connections open at once

    return Server(("127.0.0.1", 0), Handler)


def event(**document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


ENDS = (None, None, "length")
EVENTS = [
    *(event(choices=[{"index": 0, "delta": {"content": " a"}, "finish_reason": end}]) for end in ENDS),
    event(choices=[], usage={"prompt_tokens": 8, "completion_tokens": 3}),
    b"data: [DONE]\n\n",
]


@pytest.mark.parametrize(("queue", "status", "code"), [(2, "proved", 0), (10_000, "refuted", 1)])
def test_any_server_is_proved_or_refuted_in_one_line_and_by_the_exit_code(
    queue: int, status: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A machine whose cores are busy refuses later: the bound of 100 ms is held in virtual time.
    bounds = OverloadBounds(least_s=0.8, most_s=0.8, refusal_ms=1_000, recovery_s=0.5)
    monkeypatch.setattr(finalize, "measure_overload", partial(measure_overload, bounds=bounds))
    monkeypatch.setattr(preflight, "calibrate_client", lambda: None)
    monkeypatch.setattr(client_health, "HARMLESS_MS", 1_000.0)  # so is the client's own lateness
    with answering(queue) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        words = [
            "--url",
            url,
            "--model",
            "tiny",
            "--levels",
            "4",
            "--requests",
            "8",
            "--output-tokens",
            "3",
            "--slo",
            "ttft_ms.p50=300",
        ]
        # Retries of the client must not hide what is refused.
        exit_code = run_load_command([*words, "--retries", "3", "--overload"])
        server.shutdown()
        thread.join()
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("overload: "))
    assert line.startswith(f"overload: {status}: ")
    assert exit_code == code
