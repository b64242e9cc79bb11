"""Sends an endpoint prompts: those of an evaluation set greedily, with the same seed and log-probabilities.

Answers that are whole have 60 s on SageMaker, streamed ones 8 minutes.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import BenchError
from seatrial_load.aws.clock_skew import probe_clock, shifted
from seatrial_load.client.connection import dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.client.request_writer import SCHEMAS, request_writer
from seatrial_load.decode.exchange import Exchange, Inbox, limits_of
from seatrial_load.decode.failure import Failure
from seatrial_load.decode.response import record_of, whole_body
from seatrial_load.documents.request import Workload
from seatrial_load.documents.result import EvaluationAnswer
from seatrial_load.payload.answer import read_answer, was_cut
from seatrial_load.payload.json_text import AnswerError
from seatrial_load.payload.request import Options, request_body
from seatrial_load.prompts.synthetic import RawBody
from seatrial_load.quality.scores import judged_quality, prompt_content, unmeasured_quality

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_load.aws.credentials import CredentialSource
    from seatrial_load.client.connection import Dial
    from seatrial_load.client.request_writer import RequestWriter
    from seatrial_load.documents.request import Api, EvaluationPrompt, PayloadSchema, QualityFloor, TrialTarget
    from seatrial_load.documents.result import QualityResult
    from seatrial_load.payload.answer import Completion
    from seatrial_load.prompts.synthetic import Content
    from seatrial_load.trial.dependencies import ShouldStop


# The function that concludes a trial has 15 minutes, and proofs and CloudWatch need some of them.
LONGEST_ASKING_S: Final = 420.0

# Requests in flight: few, so that nothing queues and a loaded batch changes few answers.
MOST_AT_ONCE: Final = 4
TIMEOUT_S: Final = 60.0
STREAM_TIMEOUT_S: Final = 480.0
RETRIES: Final = 5
SEED: Final = 1  # TGI takes no 0
NO_LOG_PROBABILITY: Final = -9999.0  # vLLM's for a token whose log-probability is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityTools:
    """The dependencies of a collection of answers; each has a default.

    Attributes:
        credentials: Sign the requests; None is the process's own.
        dial: Starts a connection; None connects to the target's address.
        tell: Called every five seconds with the number of requests that ended.
    """

    clock: Callable[[], float] = time.perf_counter
    wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    credentials: CredentialSource | None = None
    dial: Dial | None = None
    should_stop: ShouldStop | None = None
    tell: Callable[[int], None] | None = None


EVERYDAY: Final = QualityTools()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Questions:
    """The bodies of the requests; `options` are each prompt's, in their order."""

    prompts: Sequence[EvaluationPrompt]
    schema: PayloadSchema
    options: Sequence[Options]

    def content(self, index: int, turn: int = 0) -> Content:  # noqa: ARG002 (prompts are sent one by one)
        place = index % len(self.prompts)
        content = prompt_content(self.prompts[place])
        return RawBody(json.loads(request_body(SCHEMAS[self.schema], content, self.options[place])))

    def output_tokens(self, index: int) -> int:
        return self.options[index % len(self.prompts)].max_tokens or 1

    def input_tokens(self, _index: int) -> int | None:
        return None

    def own_tokens(self, _index: int) -> int | None:
        return None


def collect_answers(
    target: TrialTarget,
    schema: PayloadSchema,
    prompts: Sequence[EvaluationPrompt],
    *,
    most_tokens: int,
    options: Sequence[Options] = (),
    stream: bool = False,
    api: Api = "invoke",
    streams: int = MOST_AT_ONCE,
    within_s: float,
    tools: QualityTools = EVERYDAY,
) -> tuple[EvaluationAnswer, ...]:
    """Send every prompt once; what fails is repeated where that helps, and then is an answer with a failure.

    Args:
        most_tokens: Tokens that an answer may have.
        options: Of each prompt, each with a limit on tokens up to `most_tokens`; none for an evaluation set's.
        stream: Whether answers are requested as they are made.

    Returns:
        One answer for each prompt, in their order.

    Raises:
        BenchError: SEA501, SEA503 or SEA504, as `request_writer` and `socket_addresses` do.
    """
    options = options or (_greedy(most_tokens),) * len(prompts)
    questions = _Questions(prompts=prompts, schema=schema, options=options)
    workload = Workload(input_tokens=1, output_tokens=most_tokens, schema=schema, stream=stream, api=api)
    return _Run(target, workload, questions, tools, tools.clock() + within_s).answers(streams)


@dataclass(frozen=True, slots=True)
class _Run:
    target: TrialTarget
    workload: Workload
    questions: _Questions
    tools: QualityTools
    deadline_s: float

    def answers(self, streams: int) -> tuple[EvaluationAnswer, ...]:
        """Send the first prompt alone, which shows whether the clock is right, then the others."""
        secret = self._writer(0.0).secret
        first = probe_clock(self._one, self.tools.wall_clock)
        rest = self._wave(first.offset_s or 0.0, streams, 1, len(self.questions.prompts) - 1)
        by_index = {exchange.index: exchange for exchange in (first.exchange, *rest)}
        return tuple(self._answer(index, by_index.get(index), secret) for index in range(len(self.questions.prompts)))

    def _one(self, offset_s: float) -> Exchange:
        ended = self._wave(offset_s, 1, 0, 1)
        now_s = self.tools.clock()
        return ended[0] if ended else Exchange(now_s, now_s, Inbox(), Failure("timeout", "the time was over"))

    def _wave(self, offset_s: float, streams: int, first: int, requests: int) -> tuple[Exchange, ...]:
        if requests < 1:
            return ()
        writer = self._writer(offset_s)
        dial = self.tools.dial or dialer(writer.address, socket_addresses(writer.address))
        tell = self.tools.tell
        wave = Wave(
            streams=min(streams, requests),
            requests=requests,
            timeout_s=STREAM_TIMEOUT_S if self.workload.stream else TIMEOUT_S,
            deadline_s=self.deadline_s,
            first_index=first,
            max_retries=RETRIES,
            stop=self.tools.should_stop,
            limits=limits_of(self.workload, requests),
            tell=tell,
        )
        return run_wave(wave, writer, dial, clock=self.tools.clock).every

    def _writer(self, offset_s: float) -> RequestWriter:
        now = shifted(self.tools.wall_clock, offset_s) if offset_s else self.tools.wall_clock
        return request_writer(self.target, self.workload, self.questions, now=now, credentials=self.tools.credentials)

    def _answer(self, index: int, exchange: Exchange | None, secret: str) -> EvaluationAnswer:
        name = self.questions.prompts[index].id
        if exchange is None:
            stop = self.tools.should_stop() if self.tools.should_stop else None
            because = "the time was over" if stop is None else stop.because
            return EvaluationAnswer(id=name, text="", failure=f"not sent: {because}")
        stream, retried = self.workload.stream, len(exchange.retried)
        record = record_of(exchange, stream=stream, secret=secret)
        failure, completion = f"{record.error}: {record.detail}" if record.error else "", None
        if not failure:
            try:
                completion = read_answer(SCHEMAS[self.questions.schema], whole_body(exchange.inbox))
            except AnswerError as malformed:
                failure = f"protocol: {malformed.problems[0].message}"
        if completion is None:
            return EvaluationAnswer(id=name, text="", failure=failure, retried=retried, engine=record.engine)
        cut = bool(was_cut(completion, self.questions.output_tokens(index)))
        return replace(evaluation_answer(name, completion), retried=retried, engine=record.engine, cut=cut)


def evaluation_body(schema: PayloadSchema, prompt: EvaluationPrompt, most_tokens: int) -> bytes:
    """Write the body of a prompt: greedy, with log-probabilities."""
    return request_body(SCHEMAS[schema], prompt_content(prompt), _greedy(most_tokens))


def _greedy(most_tokens: int) -> Options:
    return Options(max_tokens=most_tokens, temperature=0, seed=SEED, log_probabilities=True)


def evaluation_answer(name: str, completion: Completion) -> EvaluationAnswer:
    """Return what is kept of an answer that came in full: log-probabilities only where every token has one."""
    values = [token.log_probability for token in completion.tokens or ()]
    known = [value for value in values if value is not None and value > NO_LOG_PROBABILITY]
    return EvaluationAnswer(
        id=name,
        text=completion.text,
        tokens=None if completion.tokens is None else tuple(token.text for token in completion.tokens),
        log_probabilities=tuple(known) if known and len(known) == len(values) else None,
    )


def measure_quality(
    floor: QualityFloor,
    target: TrialTarget,
    schema: PayloadSchema,
    *,
    confidence: float,
    within_s: float,
    streams: int = MOST_AT_ONCE,
    tools: QualityTools,
) -> QualityResult:
    """Send the evaluation set and compare the answers with the bounds; what can't be sent is reported, not raised.

    Args:
        confidence: Of the proof: an objective is met or missed only when its one-sided interval proves it; 0 takes
            the measured value as it is.
    """
    if within_s <= 0:
        return unmeasured_quality(floor, "the budget was over")
    began_s = tools.clock()
    try:
        answers = collect_answers(
            target,
            schema,
            floor.prompts,
            most_tokens=floor.most_tokens,
            streams=streams,
            within_s=min(within_s, LONGEST_ASKING_S),
            tools=tools,
        )
    except BenchError as error:
        return unmeasured_quality(floor, error.problems[0].message)
    return replace(judged_quality(floor, answers, confidence), duration_s=tools.clock() - began_s)
