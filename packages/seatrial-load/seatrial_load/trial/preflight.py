"""The beginning of a trial: a first request, which wakes a copy where none serves; the proof; the warm-up.

Facts of a component scaled to zero (AWS documentation, "Scale an endpoint to zero instances"; the runtime API's
errors): without copies it refuses requests with a validation error that speaks of capacity; each refusal counts in
`NoCapacityInvocationFailures`, whose alarm adds a copy by a step policy. That takes minutes: an instance starts, the
model loads.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_base.findings import Finding, Place
from seatrial_load.aws.clock_skew import probe_clock
from seatrial_load.aws.cloudwatch import unknown_overhead, users_load
from seatrial_load.aws.deployment_check import DENIED_PATIENCE_S, DENIED_POLL_S, asking, not_proven, prove_live
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.decode.exchange import Exchange, Inbox, limits_of
from seatrial_load.decode.failure import Failure, listed_models, masked, refused_fields
from seatrial_load.decode.response import NO_MODEL_HEADER, exchange_failure, record_of
from seatrial_load.decode.timed_answer import ANYTHING
from seatrial_load.documents.options import OPTIONS
from seatrial_load.documents.progress import TrialMessage, TrialProgress
from seatrial_load.documents.request_checks import check_trial_request
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.health.self_calibration import calibrate_client
from seatrial_load.metrics.counts import doubts_of, oddities_of, unmeasured_of
from seatrial_load.prompts.synthetic import BELOW_THE_LIMIT, FIRST_WORDS_PER_TOKEN, RawBody, calibrated, is_too_long
from seatrial_load.trial.budget import (
    VERIFICATION_REQUESTS,
    adds_load,
    beside_plan,
    budget_over,
    budget_s,
    levels_beside,
    room_per_copy,
)
from seatrial_load.trial.dependencies import go_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import DescribeInferenceComponentOutputTypeDef

    from seatrial_load.aws.clock_skew import Probed
    from seatrial_load.client.connection import Dial
    from seatrial_load.client.request_writer import RequestWriter
    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.decode.timed_answer import AnswerTerms
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import ClientCalibration, LiveProof, Occasion, Unmeasured, UsersLoad
    from seatrial_load.trial.dependencies import ShouldStop, Tools


POLL_S = 15.0
Knock: TypeAlias = "Callable[[], Failure | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """The outcome of waking a component.

    Attributes:
        slept: Whether no copy served at first.
        waited_s: Time until a copy served, or of the wait.
        reason: Why nothing is measured: no copy serves, that is unknown, or the component failed; None when one serves.
    """

    slept: bool
    waited_s: float
    because: str
    reason: StopReason | None = None

    @property
    def failure(self) -> Stop | None:
        """Why the trial measures nothing; None when a copy serves."""
        return None if self.reason is None else made_of(Stop, self)


def wake(
    component: str,
    *,
    sagemaker: SageMakerClient,
    knock: Knock,
    may_scale: bool,
    timeout_s: float,
    waited_s: float = 0.0,
    should_stop: Callable[[], Stop | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Woken:
    """Make sure that a copy of the component serves.

    It is asleep when the control plane counts no copy, or when a request is refused for lack of one. Requests go on
    knocking until one gets through: they are what the scaling alarm counts.

    Args:
        knock: Sends one small request; returns why it failed, None when it was answered.
        may_scale: Whether the number of copies may be set to one, which doesn't wait for the alarm; one that has copies
            already is left alone.
        waited_s: How much of `timeout_s` has passed before this call.
        should_stop: Returns why to wait no longer; called before each knock.
    """
    waking = _Waking(component, sagemaker, knock, should_stop, clock, sleep, clock() - waited_s)
    return waking.run(timeout_s, may_scale=may_scale)


@dataclass(slots=True)
class _Waking:
    component: str
    sagemaker: SageMakerClient
    knock: Knock
    should_stop: Callable[[], Stop | None]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    started_s: float
    refusal: str = ""

    def run(self, timeout_s: float, *, may_scale: bool) -> Woken:
        described, unknown = self._described()
        if described is None:
            return self._unknown(unknown, slept=False)
        copies = _copies(described)
        if copies and not self._refused():
            return Woken(slept=False, waited_s=0.0, because=f"{copies} copies are in service")
        if copies:
            return self._wait("", timeout_s)
        how = self._scale() if may_scale else "its requests trigger the scaling alarm"
        return self._wait(how, timeout_s)

    def _wait(self, how: str, timeout_s: float) -> Woken:
        while True:
            if (stop := self.should_stop()) is not None:
                return self._gave_up(stop.because)
            described, unknown = self._described()
            if described is None:
                return self._unknown(unknown, slept=True)
            if described["InferenceComponentStatus"] == "Failed":
                because = f"the component failed: {described.get('FailureReason', 'without a reason')}"
                return self._not_awake(StopReason.COMPONENT_FAILED, because)
            if not self._refused() and _copies(described):
                waited = f"{self._waited_s():.0f} s"
                because = f"it scaled from zero in {waited}: {how}" if how else f"its copies responded after {waited}"
                return Woken(slept=True, waited_s=self._waited_s(), because=because)
            if self._waited_s() + POLL_S > timeout_s:
                last = f"; last: {self.refusal}" if self.refusal else ""
                helped = f": {how}" if how else ""
                return self._gave_up(f"no copy was in service within {timeout_s:g} s{helped}{last}")
            self.sleep(POLL_S)

    def _refused(self) -> bool:
        # Only a refusal for lack of a copy means that none serves; any other failure shows in the trial.
        failure = self.knock()
        self.refusal = "" if failure is None else failure.detail
        return failure is not None and failure.error == "not_ready"

    def _scale(self) -> str:
        from botocore import exceptions  # noqa: PLC0415 (loaded already: the client is botocore's)

        wanted = {"CopyCount": 1}
        try:
            self.sagemaker.update_inference_component_runtime_config(
                InferenceComponentName=self.component,
                DesiredRuntimeConfig=wanted,  # type: ignore[arg-type]  # boto3-stubs wants its own TypedDict
            )
        except (exceptions.BotoCoreError, exceptions.ClientError) as refused:
            return f"it could not be scaled to one copy ({refused}); its requests trigger the scaling alarm"
        return "it was scaled to one copy"

    def _described(self) -> tuple[DescribeInferenceComponentOutputTypeDef | None, str]:
        from botocore import exceptions  # noqa: PLC0415 (likewise)

        try:
            return self.sagemaker.describe_inference_component(InferenceComponentName=self.component), ""
        except (exceptions.BotoCoreError, exceptions.ClientError) as refused:
            return None, f"{self.component} can't be described: {refused}"

    def _gave_up(self, why: str) -> Woken:
        return self._not_awake(StopReason.AT_ZERO, f"not verified: at zero: {why}")

    def _unknown(self, why: str, *, slept: bool) -> Woken:
        return self._not_awake(StopReason.UNKNOWN_STATE, f"not verified: {why}", slept=slept)

    def _not_awake(self, reason: StopReason, because: str, *, slept: bool = True) -> Woken:
        return Woken(slept=slept, waited_s=self._waited_s(), because=because, reason=reason)

    def _waited_s(self) -> float:
        return self.clock() - self.started_s


def _copies(described: DescribeInferenceComponentOutputTypeDef) -> int:
    return described.get("RuntimeConfig", {}).get("CurrentCopyCount", 0)


WAKE_SHARE = 0.5  # of the budget: the rest is for measuring
# Single requests at most that correct the length of the prompts, before the warm-up and after it.
MOST_CORRECTIONS = 4
NAMING = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)  # refusals that name a field
MOST_NAMED = 20  # models of a server, in a message
# Share by which the mean prompt of the warm-up may miss the workload's length.
LENGTH_TOLERANCE = 0.1


def open_trial(
    request: TrialRequest, tools: Tools, should_stop: ShouldStop = go_on, *, waited_s: float = 0.0
) -> TrialProgress:
    """Do everything that comes before the first level.

    One request shows whether the clock is right, and whether a copy serves. A component at zero is woken. Then the live
    configuration is proven, the client measured against a server that costs nothing, and the endpoint warmed up.
    Made-up prompts are made as long as the endpoint counts them: the first is short, and every answer and every refusal
    for the length corrects the next, until they have the requested length.

    A trial that spares users reads their load first. Where it is to add no load, a few single requests stand for
    warm-up and levels.

    Raises:
        BenchError: SEA501 impossible request, SEA502 the live endpoint isn't this deployment's, SEA503 no credentials,
            SEA504 the endpoint's URL can't be used, SEA535 a server refuses fields, SEA616 the embedded AWS has no
            OpenAI API, SEA509 or SEA510 a bad line of the prompts' file.
    """
    check_trial_request(request)
    return _Opening.of(request, tools, should_stop, waited_s).progress()


def with_model(request: TrialRequest, tools: Tools) -> TrialRequest:
    """Return the trial of a server with the model that it lists, where the request names none; as it is elsewhere.

    Raises:
        BenchError: SEA536 the server has several models, SEA537 it lists none; SEA503 or SEA504, as for its requests.
    """
    if request.target.kind != "openai" or request.target.model is not None:
        return request
    writer = tools.writer(request, started_at="")
    first = writer.prompts.content(0) if request.workload.source == "jsonl" else ""
    if isinstance(first, RawBody) and "model" in first.document:
        return request
    path = writer.address.path.removesuffix("/completions").removesuffix("/chat")
    headers = "".join(f"{name}: {value}\r\n" for name, value in writer.headers.items())
    wave = Wave.of(request.load, streams=1, requests=1, deadline_s=tools.clock() + request.load.request_timeout_s)
    written = f"GET {path}/models HTTP/1.1\r\n{headers}\r\n".encode()
    (exchange,) = run_wave(wave, lambda _: written, tools.dial_to(writer), clock=tools.clock).every
    names = listed_models(b"".join(data for _, data in exchange.inbox.body))
    if len(names) == 1:
        (model,) = names
        return replace(request, endpoint=model, target=replace(request.target, endpoint_name=model, model=model))
    place, hint = Place.at("trial request", "target.model"), "name the model: --model NAME"
    if names:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        message = f"the server has several models: {', '.join(names[:MOST_NAMED])}{more}"
        raise BenchError([Finding("SEA536", place, message, hint)])
    failure = exchange_failure(exchange)
    why = "" if failure is None else f": {masked(failure.detail, writer.secret)}"
    raise BenchError([Finding("SEA537", place, f"the server lists no model at {path}/models{why}", hint)])


@dataclass(slots=True)
class _Opening:
    request: TrialRequest
    tools: Tools
    should_stop: ShouldStop
    waited_s: float
    dial: Dial
    secret: str
    started_at: str
    began_s: float
    sent: int = 0
    clock_offset_s: float | None = None
    words_per_token: float | None = None
    written_with: float = FIRST_WORDS_PER_TOKEN
    most_words_per_token: float = math.inf
    is_length_off: bool = False
    engine_note: str = ""
    seen: tuple[Unmeasured, ...] = ()
    users: UsersLoad | None = None
    terms: Callable[[int], AnswerTerms] | None = None

    @classmethod
    def of(cls, request: TrialRequest, tools: Tools, should_stop: ShouldStop, waited_s: float) -> _Opening:
        started_at, began_s = tools.wall_clock().isoformat(timespec="seconds"), tools.clock()
        writer = tools.writer(request, started_at=started_at)
        return cls(request, tools, should_stop, waited_s, tools.dial_to(writer), writer.secret, started_at, began_s)

    def progress(self) -> TrialProgress:
        self.users = self._users_load()
        first = self._probe()
        woken = self._woken(first)
        if woken is not None and woken.failure is not None:
            unproven = replace(not_proven(), because=woken.because)
            return self._progress(unproven, stopped=self.should_stop() or woken.failure)
        live = self._proof()
        if not adds_load(self.request, self.users):
            return self._progress(live, stopped=self._verified() or self.should_stop())
        client = calibrate_client() if self.tools.calibrates else None
        self._warm_up()
        return self._progress(live, client=client, stopped=self.should_stop())

    def _users_load(self) -> UsersLoad | None:
        # Before a request of the trial is part of the users' load.
        if self.request.manner != "in_place":
            return None
        if not self.tools.asks_cloudwatch:
            return unknown_overhead()
        users = users_load(self.request.target, until=self.tools.wall_clock(), cloudwatch=self.tools.cloudwatch)
        self._say(users.because)
        return users

    def _progress(
        self, live: LiveProof, *, client: ClientCalibration | None = None, stopped: Stop | None = None
    ) -> TrialProgress:
        key = self.request.workload.max_tokens_key
        changes = {"elapsed_s": self._elapsed_s(), "unmeasured": self.seen, "max_tokens_key": key}
        return made_of(TrialProgress, self, live=live, client=client, stopped=stopped, **changes)

    def _probe(self) -> Exchange:
        probed = self._probed()
        probed = replace(probed, exchange=self._with_known_fields(probed.exchange))
        head = probed.exchange.inbox.head
        if head is not None and NO_MODEL_HEADER in head.headers:
            message = "this is the embedded AWS, which has no OpenAI API"
            hint = "run: seatrial bench SPEC --environment local"
            raise BenchError.of("SEA616", message, hint=hint, where="trial request", field="target.endpoint_url")
        record = self._record(probed.exchange)
        self._saw([record], "first_request")
        self._learn([record], self.sent - 1, tolerance=math.inf)
        if probed.offset_s is not None:
            self._say(
                f"this machine's clock is {-probed.offset_s:+.0f} s off; requests are signed with the service's time"
            )
        return probed.exchange

    def _with_known_fields(self, exchange: Exchange) -> Exchange:
        """Repeat a server's first request without what it refuses, so that one message lists all of that.

        Where it takes no `max_tokens`, `max_completion_tokens` limits the answers from now on.
        """
        refused: list[Finding] = []
        while self.request.target.kind == "openai" and (names := self._refused_fields(exchange)):
            for name in names:
                if name == "max_tokens":
                    workload = replace(self.request.workload, max_tokens_key="max_completion_tokens")
                    self._say("the server takes no max_tokens: max_completion_tokens limits the answers")
                else:
                    refused.append(self._refused(name, exchange))
                    if not (field := refused[-1].field):
                        raise BenchError(refused)
                    omitted: dict[str, Any] = {field.partition(".")[2]: True}
                    workload = replace(self.request.workload, **omitted)
                self.request = replace(self.request, workload=workload)
            exchange = self._one()
        if refused:
            raise BenchError(refused)
        return exchange

    def _refused_fields(self, exchange: Exchange) -> tuple[str, ...]:
        head, body = exchange.inbox.head, b"".join(data for _, data in exchange.inbox.body)
        if head is None or head.status not in NAMING or is_too_long(self._record(exchange)):
            return ()
        sent = json.loads(self._writer(exchange.index)(exchange.index).partition(b"\r\n\r\n")[2])
        return refused_fields(body, tuple(sent))

    def _refused(self, name: str, exchange: Exchange) -> Finding:
        flag, hint = next((row.flag for row in OPTIONS.values() if row.name == f"omits_{name}"), ""), ""
        if isinstance(self._writer(exchange.index).prompts.content(exchange.index), RawBody) and "stream" not in name:
            flag, hint = "", "the file of prompts has it"
        place = Place.at("trial request", f"workload.omits_{name}" if flag else "")
        hint = f"leave it out: {flag}" if flag else hint
        return Finding("SEA535", place, f"the server refuses {name}: {self._record(exchange).detail}", hint)

    def _probed(self) -> Probed:
        """Send the first request; where AWS denies a deployment's own, again for a minute: its right may be young.

        A condition on tags denies what was only just created, since tags arrive later (GitHub,
        hashicorp/terraform-provider-aws issues 6055 and 32966).
        """
        left_s = 0.0 if self.request.expected is None else DENIED_PATIENCE_S - self.waited_s
        while True:
            probed = probe_clock(self._send, self.tools.wall_clock)
            self.clock_offset_s = probed.offset_s
            record = self._record(probed.exchange)
            is_denied = record.error == "auth" and "AccessDenied" in record.detail
            if left_s < DENIED_POLL_S or not is_denied or self.should_stop() is not None:
                return probed
            self._say(f"AWS denies the request: repeated for {left_s:.0f} s at most")
            left_s -= DENIED_POLL_S
            self.tools.sleep(DENIED_POLL_S)

    def _send(self, offset_s: float) -> Exchange:
        self.clock_offset_s = offset_s or None
        return self._one()

    def _knock(self) -> Failure | None:
        record = self._record(self._one())
        return None if record.error is None else Failure(record.error, record.detail)

    def _woken(self, first: Exchange) -> Woken | None:
        component = self.request.target.inference_component
        if component is None or self._record(first).error != "not_ready":
            return None
        self._say(f"no copy of {component} is in service: scaling it up")
        sagemaker = self.tools.sagemaker
        if sagemaker is None:
            import boto3  # noqa: PLC0415 (costs more than a second; only needed where a component sleeps)

            with asking(f"endpoint {self.request.target.endpoint_name}"):
                sagemaker = boto3.client("sagemaker", region_name=self.request.target.region)
        return wake(
            component,
            sagemaker=sagemaker,
            knock=self._knock,
            may_scale=self.tools.may_scale,
            timeout_s=WAKE_SHARE * (self.waited_s + budget_s(self.request)),
            waited_s=self.waited_s,
            should_stop=self.should_stop,
            clock=self.tools.clock,
            sleep=self.tools.sleep,
        )

    def _proof(self) -> LiveProof:
        expected = self.request.expected
        if expected is None:
            return not_proven()
        live = prove_live(
            self.request.target,
            expected,
            sagemaker=self.tools.sagemaker,
            sleep=self.tools.sleep,
            patience_s=max(0.0, DENIED_PATIENCE_S - self.waited_s),
        )
        planned = self.request.copy_count
        return beside_plan(live, None if live.copy_count == planned else planned)

    def _verified(self) -> Stop | None:
        """Send single requests, one after another; return why the trial is over before they all were, else None."""
        self._correct_length()
        self._say(f"verification: {VERIFICATION_REQUESTS} requests, one after another")
        records: list[RequestRecord] = []
        stop = self.should_stop()
        while stop is None and len(records) < VERIFICATION_REQUESTS:
            record, stop = self._single()
            if stop is None:
                records.append(record)
        if records:
            odd = oddities_of([record for record in records if record.succeeded])
            self.seen += (unmeasured_of(records, "verification", doubts=doubts_of(odd)),)
        return stop

    def _single(self) -> tuple[RequestRecord, Stop | None]:
        """Send one request; again where it is too long or no copy took it. Return why the trial is over, else None."""
        for _ in range(MOST_CORRECTIONS):
            record, stop = self._sent_once()
            if stop is not None or not self._is_repeated(record):
                return record, stop
        return self._sent_once()

    def _is_repeated(self, record: RequestRecord) -> bool:
        # A request doesn't count whose prompt was too long, or that waited for a copy.
        waited = record.error == "not_ready" and self.request.target.inference_component is not None
        return waited or is_too_long(record)

    def _sent_once(self) -> tuple[RequestRecord, Stop | None]:
        first = self.sent
        exchange = self._one()
        record = self._record(exchange)
        self._learn([record], first)
        woken = self._woken(exchange)
        return record, self.should_stop() or (None if woken is None else woken.failure)

    def _warm_up(self) -> None:
        requested = self.request.load.warmup_requests
        if not requested:
            return
        self._correct_length()
        self._say(f"warm-up: {requested} requests")
        first = self.sent
        # At most one copy's at the gate, or of the first level.
        in_flight = self.request.gate_concurrency
        if self.request.manner != "load":
            in_flight = levels_beside(room_per_copy(self.request, self.users))[0]
        records = [self._record(exchange) for exchange in self._wave(min(requested, in_flight), requested)]
        self._saw(records, "warm_up")
        self._learn(records, first)
        self._correct_length()

    def _correct_length(self) -> None:
        """Send single requests until a made-up prompt has the requested length, at most four."""
        for _ in range(MOST_CORRECTIONS):
            if not self.is_length_off or self.should_stop() is not None:
                return
            first = self.sent
            record = self._record(self._one())
            self._saw([record], "warm_up")
            self._learn([record], first)

    def _learn(self, records: Sequence[RequestRecord], first: int, *, tolerance: float = LENGTH_TOLERANCE) -> None:
        """Correct the length of made-up prompts by requests that are over, the first of which has this number.

        Where the endpoint answers without a count, a word is taken for a token, as in the common vocabularies.
        """
        if self.request.workload.source == "jsonl":
            return
        learnt = calibrated(self.written_with, records, self._writer(first).prompts.input_tokens)
        if learnt is None:
            self.is_length_off = False
            if self.words_per_token is None and any(record.succeeded for record in records):
                self.written_with = 1.0
            return
        refused = any(is_too_long(record) for record in records)
        self.is_length_off = refused or abs(learnt / self.written_with - 1) > tolerance
        if refused:
            self.most_words_per_token = min(self.most_words_per_token, BELOW_THE_LIMIT * self.written_with)
        self.words_per_token = self.written_with = min(learnt, self.most_words_per_token)

    def _one(self) -> Exchange:
        """Send one request; where the budget or the trial ends before it does, that is its failure."""
        sent_s = self.tools.clock()
        ended = self._wave(1, 1)
        if ended and (ended[0].failure is None or ended[0].failure.error != "unanswered"):
            return ended[0]
        stop = self.should_stop()
        detail = f"{budget_over(self.request).because} before the first answer" if stop is None else stop.because
        over = Failure("timeout", detail)
        return replace(ended[0], failure=over) if ended else Exchange(sent_s, self.tools.clock(), Inbox(), over)

    def _wave(self, streams: int, requests: int) -> tuple[Exchange, ...]:
        first = self.sent
        self.sent += requests
        wave = Wave.of(
            self.request.load,
            streams=streams,
            requests=requests,
            deadline_s=self.began_s + budget_s(self.request),
            first_index=first,
            stop=self.should_stop,
            limits=limits_of(self.request.workload, requests),
        )
        writer = self._writer(first)
        self.terms = writer.terms
        return run_wave(wave, writer, self.dial, clock=self.tools.clock).every

    def _writer(self, first: int) -> RequestWriter:
        return self.tools.writer(
            self.request,
            started_at=self.started_at,
            words_per_token=self.written_with,
            clock_offset_s=self.clock_offset_s,
            first=first,
        )

    def _saw(self, records: Sequence[RequestRecord], occasion: Occasion) -> None:
        # Requests that were given up because the trial is to stop show nothing of the endpoint.
        if records and self.should_stop() is None:
            self.seen += (unmeasured_of(records, occasion),)

    def _record(self, exchange: Exchange) -> RequestRecord:
        terms = ANYTHING if self.terms is None else self.terms(exchange.index)
        record = record_of(exchange, stream=self.request.workload.stream, secret=self.secret, terms=terms)
        self.engine_note = self.engine_note or record.engine
        return record

    def _say(self, text: str) -> None:
        self.tools.watch(TrialMessage(text=text, elapsed_s=self._elapsed_s()))

    def _elapsed_s(self) -> float:
        return self.tools.clock() - self.began_s
