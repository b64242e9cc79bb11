"""What a trial's document says of the deployment, and how CloudFormation gets it."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.operations.deployment_outcome import DeployResult, OutcomeKind, rollback_of
from seatrial_cdk.trials.runtime.answer import (
    MAX_REASON_CHARACTERS,
    PAUSES_S,
    allows_deployment,
    answer_of,
    final_answer,
    given_before,
    is_sent,
    note_sent,
    put_answer,
    respond_once,
    shortened_reason,
    unsent_answer,
)
from seatrial_cdk.trials.runtime.attributes import copies_attributes
from seatrial_cdk.trials.runtime.order import Answer, CarriedCopies, Order, write_copies
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.trials.conftest import LATEST, PASSED, TRIAL, URI, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_load.documents.result import TrialResult
    from tests.constructs.conftest import DictStore

REPORT = URI.replace(".json", ".md")
MISSED = "ttft_ms p95 2400.0 ms exceeds 2000.0 ms at concurrency 16 per copy"


@pytest.fixture
def order(create: CustomResourceEvent) -> Order:
    return Order(create, 1000.0)


def test_a_passed_trial_answers_with_its_attributes(
    order: Order, store: DictStore, passed: TrialResult, verified: dict[str, str]
) -> None:
    store.write(TRIAL, passed.to_json())
    assert answer_of(order, store) == Answer(data={**verified, "ResultUri": URI, "ReportUri": REPORT})


@pytest.mark.parametrize(("status", "heading"), [("fail", "failed"), ("inconclusive", "was inconclusive")])
def test_a_trial_not_passed_rolls_back_with_every_reason_and_names_its_result(
    order: Order,
    store: DictStore,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    status: Literal["fail", "inconclusive"],
    heading: str,
) -> None:
    """The result of a failed creation stays too: it lies in the environment's bucket, not in the stack's."""
    store.write(TRIAL, missed(status).to_json())
    reason = f"The sea trial of dev-chat {heading}: {MISSED} (result: {URI})"
    assert answer_of(order, store) == Answer(failed_because=reason)
    kind = OutcomeKind.TRIAL_FAILED if status == "fail" else OutcomeKind.TRIAL_INCONCLUSIVE
    assert rollback_of(reason, "") == DeployResult(kind, f"{MISSED}; rolled back", report=REPORT)


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_mode_report_goes_on_whatever_the_verdict(
    order: Order,
    store: DictStore,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verified: dict[str, str],
    status: Literal["fail", "inconclusive"],
) -> None:
    order.event["ResourceProperties"]["Mode"] = "report"
    store.write(TRIAL, missed(status).to_json())
    expected = {**verified, "Verdict": status, "Verified": "false", "ResultUri": URI, "ReportUri": REPORT}
    assert answer_of(order, store) == Answer(data=expected)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ('{"error": "SEA502: the live endpoint config is config-1"}', "SEA502: the live endpoint config is config-1"),
        ('{"schema_version": "0"}', "its result is from another release: trial result: "),
        (None, "it ended without a result (result: unknown)"),
    ],
)
def test_a_trial_that_was_not_made_rolls_back(order: Order, store: DictStore, document: str | None, why: str) -> None:
    if document:
        store.write(TRIAL, document)
    told = answer_of(order, store).failed_because
    assert told is not None
    assert told.startswith(f"The sea trial of dev-chat failed to run: {why}")


def test_mode_report_goes_on_without_a_measurement(order: Order, store: DictStore, unverified: dict[str, str]) -> None:
    order.event["ResourceProperties"]["Mode"] = "report"
    store.write(TRIAL, '{"error": "SEA504: unreachable"}')
    assert answer_of(order, store) == Answer(data={**unverified, "Verdict": "error", "ResultUri": URI})


@pytest.mark.parametrize(("status", "stays"), [("inconclusive", True), ("fail", False)])
def test_an_inconclusive_trial_may_be_allowed_to_stay_unverified_and_a_failed_one_never(
    order: Order,
    store: DictStore,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    status: Literal["fail", "inconclusive"],
    *,
    stays: bool,
) -> None:
    result = missed(status)
    lenient = replace(result.request, gate=replace(result.request.gate, on_inconclusive="pass"))
    store.write(TRIAL, replace(result, request=lenient).to_json())
    told = answer_of(order, store)
    assert (told.failed_because is None) is stays
    assert not stays or (told.data is not None and told.data["Verified"] == "false")


class TestBeforeTheComponentIsUpdated:
    """The answer carries copies, and fails in any mode where none are known."""

    @pytest.fixture
    def candidate(self, order: Order) -> Order:
        order.event["ResourceProperties"]["Phase"] = "candidate"
        return replace(order, manner="candidate")

    def test_a_pass_carries_the_copies_that_were_told(
        self, candidate: Order, store: DictStore, passed: TrialResult
    ) -> None:
        store.write(TRIAL, passed.to_json())
        write_copies(store, "dev-chat", CarriedCopies(copies=3, is_new=False, previous=1, request_id="request-1"))
        assert answer_of(candidate, store) == Answer(data=copies_attributes(3, "pass", URI))
        assert final_answer(candidate, store) == answer_of(candidate, store)

    def test_where_none_were_told_the_planned_ones_are_carried(
        self, candidate: Order, store: DictStore, passed: TrialResult
    ) -> None:
        candidate.event["ResourceProperties"]["CopyCount"] = "2"
        store.write(TRIAL, passed.to_json())
        assert answer_of(candidate, store) == Answer(data=copies_attributes(2, "pass", URI))

    def test_what_loads_nothing_says_so(self, candidate: Order, store: DictStore) -> None:
        write_copies(store, "dev-chat", CarriedCopies(copies=3, is_new=False, previous=1))
        store.write(TRIAL, '{"untried": true}')
        assert answer_of(replace(candidate, manner="carry"), store) == Answer(data=copies_attributes(3, "not tried"))

    @pytest.mark.parametrize("mode", ["rollback", "report"])
    def test_a_failed_trial_of_a_candidate_fails_in_one_mode_alone_and_changed_nothing(
        self,
        candidate: Order,
        store: DictStore,
        missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
        mode: str,
    ) -> None:
        candidate.event["ResourceProperties"]["Mode"] = mode
        store.write(TRIAL, missed("fail").to_json())
        told = answer_of(candidate, store)
        assert (told.failed_because is None) is (mode == "report") is allows_deployment(candidate, store)
        if mode == "rollback":
            because = f"The sea trial of dev-chat failed: {MISSED}; what serves was not changed (result: {URI})"
            assert told.failed_because == because
            assert final_answer(candidate, store) == told
        else:
            assert told.data == copies_attributes(1, "fail", URI)

    def test_in_mode_report_a_trial_that_was_not_made_carries_the_copies_unverified(
        self, candidate: Order, store: DictStore
    ) -> None:
        candidate.event["ResourceProperties"]["Mode"] = "report"
        write_copies(store, "dev-chat", CarriedCopies(copies=3, is_new=False, previous=1, request_id="request-1"))
        store.write(TRIAL, '{"error": "SEA504: unreachable"}')
        assert answer_of(candidate, store) == Answer(data=copies_attributes(3, "error", URI))

    @pytest.mark.parametrize("told", [None, "request-0"])
    def test_copies_that_were_not_read_for_it_are_not_carried(
        self, candidate: Order, store: DictStore, passed: TrialResult, told: str | None
    ) -> None:
        store.write(TRIAL, passed.to_json())
        if told is not None:
            write_copies(store, "dev-chat", CarriedCopies(copies=1, is_new=False, previous=1, request_id=told))
        assert final_answer(candidate, store) == Answer(
            failed_because=f"The update of dev-chat was stopped: the live copies could not be read (result: {URI})"
        )


def test_after_the_update_no_copies_are_asked_for(order: Order, store: DictStore, passed: TrialResult) -> None:
    store.write(TRIAL, passed.to_json())
    assert final_answer(order, store) == answer_of(order, store)
    assert allows_deployment(order, store)


@pytest.mark.parametrize(("kept", "folder"), [((PASSED, LATEST), "passed"), ((LATEST,), "latest"), ((), "trials")])
def test_what_was_verified_answers_with_what_was_measured_of_it_before(
    order: Order, store: DictStore, passed: TrialResult, kept: tuple[str, ...], folder: str
) -> None:
    verified = replace(passed, target_concurrency_per_copy=1.0)
    store.write(TRIAL, verified.to_json())
    for key in kept:
        store.write(key, passed.to_json())
    told = answer_of(replace(order, manner="verify"), store)
    assert told.data is not None
    assert told.data["ResultUri"].startswith(f"s3://results/{folder}/")
    assert told.data["TargetConcurrencyPerCopy"] == ("1" if folder == "trials" else "12.8")
    loaded = answer_of(replace(order, manner="load"), store)
    assert loaded.data is not None
    assert loaded.data["ResultUri"] == URI


def test_a_pass_of_another_release_is_left_for_the_last_result(
    order: Order, store: DictStore, passed: TrialResult
) -> None:
    for key, text in ((TRIAL, passed.to_json()), (PASSED, '{"schema_version": "0"}'), (LATEST, passed.to_json())):
        store.write(key, text)
    told = answer_of(replace(order, manner="verify"), store)
    assert told.data is not None
    assert told.data["ResultUri"] == f"s3://results/{LATEST}"


def test_an_answer_is_written_down_before_it_is_given_and_the_first_one_counts(store: DictStore) -> None:
    first, second = Answer(failed_because="it failed"), Answer(data={"Verdict": "pass"})
    assert given_before(store, "dev-chat", "request-1") is None
    assert unsent_answer(store, "dev-chat", "request-1", first) == first
    assert unsent_answer(store, "dev-chat", "request-1", second) == first
    assert given_before(store, "dev-chat", "request-1") == first
    assert not is_sent(store, "dev-chat", "request-1")
    note_sent(store, "dev-chat", "request-1")
    assert is_sent(store, "dev-chat", "request-1")
    assert unsent_answer(store, "dev-chat", "request-1", first) is None
    assert not is_sent(store, "dev-chat", "request-2")


def test_an_answer_that_nobody_could_note_as_sent_is_given_again(
    store: DictStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "create", refuse)
    note_sent(store, "dev-chat", "request-1")
    assert not is_sent(store, "dev-chat", "request-1")


def test_a_request_never_gets_two_different_answers(order: Order, store: DictStore) -> None:
    given: list[dict[str, object]] = []
    for answer in (Answer(failed_because="it failed"), Answer(data={"Verdict": "pass"})):
        respond_once(
            order.event, "dev-chat", answer, store, lambda _, body: given.append(json.loads(body)), bucket="results"
        )
    assert [each["Status"] for each in given] == ["FAILED"]


def test_a_long_reason_is_cut_and_never_the_result_behind_it() -> None:
    short, long = (shortened_reason(f"{'x' * length} (result: {URI})") for length in (100, 2000))
    assert short == f"{'x' * 100} (result: {URI})"
    assert len(long) == MAX_REASON_CHARACTERS
    assert long.endswith(f"x… (result: {URI})")


@pytest.fixture
def waits() -> list[float]:
    return []


class Cloud(BaseHTTPRequestHandler):
    """Takes an answer after it refused some."""

    refusals = 0
    taken: list[tuple[str, str | None, bytes]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).taken.append((self.path, self.headers["Content-Type"], body))
        refused = len(type(self).taken) <= type(self).refusals
        self.send_response(503 if refused else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in http.server)
        del format, args


@pytest.fixture
def cloud() -> Iterator[str]:
    Cloud.taken, Cloud.refusals = [], 0
    with HTTPServer(("127.0.0.1", 0), Cloud) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/answer?signature=x%2F1"
        server.shutdown()
        thread.join()


def test_an_answer_is_put_as_its_url_was_signed(cloud: str, waits: list[float]) -> None:
    put_answer(cloud, b'{"Status": "SUCCESS"}', sleep=waits.append)
    assert Cloud.taken == [("/answer?signature=x%2F1", "", b'{"Status": "SUCCESS"}')]
    assert waits == []


def test_an_answer_that_is_not_taken_is_put_again(cloud: str, waits: list[float]) -> None:
    Cloud.refusals = 2
    put_answer(cloud, b"{}", sleep=waits.append)
    assert (len(Cloud.taken), waits) == (3, [1.0, 2.0])


def test_an_answer_that_is_never_taken_is_told(cloud: str, waits: list[float]) -> None:
    Cloud.refusals = 99
    with pytest.raises(UnavailableError, match="answering CloudFormation: HTTP 503"):
        put_answer(cloud, b"{}", sleep=waits.append)
    assert waits == list(PAUSES_S)


def test_a_place_that_nobody_listens_at_is_told(waits: list[float]) -> None:
    with pytest.raises(UnavailableError, match="answering CloudFormation: ConnectionRefusedError"):
        put_answer("http://127.0.0.1:1/answer", b"{}", sleep=waits.append)
