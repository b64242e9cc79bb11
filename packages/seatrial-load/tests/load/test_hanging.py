"""Servers that take requests and do not answer them: the result says what was seen, and never lets it pass."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial_cdk.trials.runtime.report import evidence, short_report
from seatrial_load.documents.request import Gate, Load, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_load.documents.request import TrialRequest

    MakeRequest = Callable[..., TrialRequest]
    Manner = Callable[[socket.socket, threading.Event], None]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000000\r\n\r\n"
LOAD = Load(
    concurrency_levels=(1, 2), requests_per_concurrency=2, warmup_requests=2, budget_s=20.0, request_timeout_s=0.2
)


def silent(_connection: socket.socket, over: threading.Event) -> None:
    over.wait(20)


def one_byte(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"H")
    over.wait(20)


def slow_loris(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(HEAD)
    while not over.wait(0.05):
        connection.sendall(b":")


@contextmanager
def serving(manner: Manner, *, well: int = 0) -> Iterator[str]:
    """Serve the first requests well, and then in a manner."""
    over, left = threading.Event(), [well]
    body = b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}'

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(65536):
                    left[0] -= 1
                    if left[0] < 0:
                        manner(connection, over)
                        return
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            except OSError:
                return  # the client went away, as clients do

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            over.set()


@pytest.fixture
def tried(trial_request: MakeRequest) -> Callable[..., TrialResult]:
    def run(manner: Manner, *, well: int = 0, **changes: object) -> TrialResult:
        with serving(manner, well=well) as url:
            target = TrialTarget(
                endpoint_name="mine", inference_component=None, region="", kind="openai", endpoint_url=url, model="m"
            )
            workload = Workload(input_tokens=8, output_tokens=3, schema="openai_chat", stream=False)
            fields: dict[str, object] = {
                "target": target,
                "workload": workload,
                "expected": None,
                "objectives": (),
                "load": LOAD,
                "gate_concurrency": 2,
                "gate": Gate(on_inconclusive="pass"),
                **changes,
            }
            request = trial_request(**fields)
            ended = run_trial(request, tools=Tools(calibrates=False))
        assert isinstance(ended, TrialResult)
        assert TrialResult.from_json(ended.to_json()) == ended
        return ended

    return run


TIMEOUT = "timeout: no complete answer within 0.2 s"


@pytest.mark.parametrize("manner", [silent, one_byte, slow_loris])
def test_a_server_that_never_answers_fails_and_its_timeouts_are_named(
    tried: Callable[..., TrialResult], manner: Manner
) -> None:
    result = tried(manner)
    first, warm_up = result.unmeasured
    assert (first.occasion, first.sent, first.succeeded, first.errors) == ("first_request", 1, 0, {"timeout": 1})
    assert (warm_up.occasion, warm_up.sent, warm_up.succeeded, warm_up.errors) == ("warm_up", 2, 0, {"timeout": 2})
    assert first.first_errors == warm_up.first_errors == (TIMEOUT,)
    assert first.longest_wait_s is not None
    assert first.longest_wait_s >= 0.2
    (level,) = result.levels
    assert (level.succeeded, level.errors) == (0, {"timeout": 2})
    assert result.verdict.status == "fail"
    assert "0 of " in result.verdict.because
    assert f"({TIMEOUT})" in result.verdict.because


@pytest.mark.parametrize("manner", [silent, one_byte, slow_loris])
def test_a_server_that_hangs_until_the_budget_ends_is_named(tried: Callable[..., TrialResult], manner: Manner) -> None:
    """No request comes to its own end: what was in flight is told all the same."""
    result = tried(manner, well=5, load=replace(LOAD, request_timeout_s=30.0, budget_s=1.0))
    (cut,) = [seen for seen in result.unmeasured if seen.occasion == "level"]
    assert (cut.concurrency, cut.sent, cut.succeeded, cut.errors) == (2, 2, 0, {"unanswered": 2})
    assert [level.concurrency for level in result.levels] == [1]
    assert result.verdict.status == "fail"
    assert result.verdict.because.startswith(
        "concurrency 2 per copy was not measured: the budget of 1 s ended; 0 of 2 requests succeeded, 2 failed "
    )
    assert result.verdict.because.endswith(": unanswered 2 (unanswered: no complete answer at the end of the level)")


def test_a_hang_from_the_first_request_on_is_named(tried: Callable[..., TrialResult]) -> None:
    result = tried(silent, load=replace(LOAD, request_timeout_s=30.0, budget_s=0.4))
    (first,) = result.unmeasured
    assert (first.occasion, first.sent, first.errors) == ("first_request", 1, {"timeout": 1})
    assert result.verdict.status == "fail"
    assert "timeout: the budget of 0.4 s ended before the first answer" in result.verdict.because


def test_a_hang_that_loaders_in_several_processes_see_is_told_once(tried: Callable[..., TrialResult]) -> None:
    result = tried(silent, well=5, load=replace(LOAD, request_timeout_s=30.0, budget_s=1.5, workers=2))
    (cut,) = [seen for seen in result.unmeasured if seen.occasion == "level"]
    assert (cut.concurrency, cut.sent, cut.errors) == (2, 2, {"unanswered": 2})


def test_reports_show_what_was_seen_outside_of_the_measured_levels(tried: Callable[..., TrialResult]) -> None:
    result = tried(silent, well=5, load=replace(LOAD, request_timeout_s=30.0, budget_s=1.0))
    page, text = render_html(result, None), render_markdown(result, None)
    assert all("no complete answer at the end of the level" in rendered for rendered in (page, text))
    assert "| concurrency 2 per copy | unanswered | 2 | 2 | " in text
    told = [line for line in evidence(result) if line.startswith("not measured: ")]
    assert [line.partition(" requests succeeded")[0] for line in told] == [
        "not measured: concurrency 2 per copy: 0 of 2"
    ]
    assert told[0].replace("not measured", "- not measured", 1) in short_report(result, "s3://results/1.json")
