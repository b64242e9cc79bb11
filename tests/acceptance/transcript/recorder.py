"""Writes a transcript while somebody asks AWS: calls of boto3 by its events, commands, events of stacks, answers.

Not seen: the calls of the CDK CLI, of CloudFormation's handlers, of SageMaker with an execution role, and of functions.
Of those the commands' output, the events of the stacks and the words of their errors tell.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from tests.acceptance.transcript.lines import AnswerLine, CallLine, Line, Refused, StackEventLine, ToolLine, written
from tests.acceptance.transcript.masks import masked, masked_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from botocore.hooks import BaseEventHooks
    from botocore.model import OperationModel

    from seatrial_base.printer import Json
    from tests.acceptance.transcript.lines import RunLine

_ASKED: Final = "seatrial.asked"
"""Where a call is kept until its answer comes, in botocore's own context of the call."""


@dataclass(frozen=True, slots=True)
class _Asked:
    began_s: float
    service: str
    operation: str
    request: Json


@dataclass(slots=True)
class Recorder:
    """Writes lines to one file; threads may share it, and several processes may append to one file.

    Attributes:
        file: The transcript; each line is written and flushed whole.
        hidden: Texts that are hidden wherever they stand, by what stands there instead.
        case: The test that asks at the moment.
    """

    file: Path
    hidden: Mapping[str, str] = field(default_factory=dict)
    case: str = ""
    _began_s: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last: dict[str, tuple[str, int]] = field(default_factory=dict)
    _events: set[str] = field(default_factory=set)

    def begin(self, run: RunLine) -> None:
        """Write what is run."""
        self._write(run)

    def watch(self, events: BaseEventHooks) -> None:
        """Record every call of the clients that have these events: a session's, before its clients are made."""
        events.register("before-parameter-build.*.*", self._ask)
        events.register("after-call.*.*", self._answered)
        events.register("after-call-error.*.*", self._failed)

    def tool(self, command: Sequence[object], began_s: float, exit_code: int, output: str) -> None:
        """Record a command that began at a reading of `time.monotonic` and has ended."""
        now_s = time.monotonic()
        self._write(
            ToolLine(
                case=self.case,
                at_s=self._since(began_s),
                took_s=round(now_s - began_s, 3),
                command=tuple(masked_text(f"{word}", self.hidden) for word in command),
                exit_code=exit_code,
                output=masked_text(output, self.hidden),
            )
        )

    def stack_events(self, events: Iterable[Mapping[str, object]]) -> None:
        """Record events of stacks, as `DescribeStackEvents` tells them, the latest first: each once, in their order."""
        fresh = [each for each in reversed([*events]) if f"{each.get('EventId')}" not in self._events]
        for event in sorted(fresh, key=lambda each: f"{_json(each.get('Timestamp'))}"):
            self._events.add(f"{event.get('EventId')}")
            self._write(
                StackEventLine(
                    case=self.case,
                    at=f"{_json(event.get('Timestamp'))}",
                    stack=f"{event.get('StackName')}",
                    logical_id=f"{event.get('LogicalResourceId')}",
                    type=f"{event.get('ResourceType')}",
                    status=f"{event.get('ResourceStatus')}",
                    reason=masked_text(f"{event.get('ResourceStatusReason') or ''}", self.hidden),
                )
            )

    def answer(self, question: str, asked: str, assumed: str, answer: Json) -> None:
        """Record the answer to a question."""
        told = masked(_json(answer), self.hidden)
        self._write(
            AnswerLine.model_validate(
                {"case": self.case, "question": question, "asked": asked, "assumed": assumed, "answer": told}
            )
        )

    def _ask(
        self, params: Mapping[str, object], model: OperationModel, context: dict[str, object], **_: object
    ) -> None:
        context[_ASKED] = _Asked(time.monotonic(), model.service_model.service_name, model.name, _json(params))

    def _answered(
        self, http_response: object, parsed: Mapping[str, object], context: Mapping[str, object], **_: object
    ) -> None:
        told = cast("dict[str, object]", parsed.get("ResponseMetadata", {}))
        status, retries = int(getattr(http_response, "status_code", 0)), int(cast("int", told.get("RetryAttempts", 0)))
        if error := cast("dict[str, object]", parsed.get("Error")):
            message = masked_text(f"{error.get('Message')}", self.hidden)
            self._told(context, retries, error=Refused(code=f"{error.get('Code')}", message=message, status=status))
        else:
            reply = {name: value for name, value in parsed.items() if name != "ResponseMetadata"}
            self._told(context, retries, reply=masked(_json(reply), self.hidden))

    def _failed(self, exception: Exception, context: Mapping[str, object], **_: object) -> None:
        message = masked_text(f"{exception}", self.hidden)
        self._told(context, 0, error=Refused(code=type(exception).__name__, message=message))

    def _told(
        self, context: Mapping[str, object], retries: int, *, reply: Json = None, error: Refused | None = None
    ) -> None:
        asked = context.get(_ASKED)
        if not isinstance(asked, _Asked):  # a call that began before it was watched
            return
        request = masked(asked.request, self.hidden)
        with self._lock:
            same = self._same_before(f"{self.case} {asked.service} {asked.operation} {request}", f"{reply} {error}")
        if same is None:
            return
        line = {
            "case": self.case,
            "at_s": self._since(asked.began_s),
            "took_s": round(time.monotonic() - asked.began_s, 3),
            "service": asked.service,
            "operation": asked.operation,
            "request": request,
            "reply": reply,
            "error": error,
            "retries": retries,
            "same_before": same,
        }
        self._write(CallLine.model_validate(line))

    def _same_before(self, call: str, outcome: str) -> int | None:
        """Return how many answers of a call were not written; `None` when this one is as the last and isn't either."""
        last, count = self._last.get(call, ("", 0))
        if last == outcome:
            self._last[call] = (last, count + 1)
            return None
        self._last[call] = (outcome, 0)
        return count

    def _since(self, reading_s: float) -> float:
        return round(reading_s - self._began_s, 3)

    def _write(self, line: Line) -> None:
        text = written(line)
        with self._lock, self.file.open("a", encoding="utf-8") as out:
            out.write(text)


def _json(value: object) -> Json:
    """Return what JSON can hold of a value of boto3's."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    if isinstance(value, dict):
        return {f"{name}": _json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_json(inner) for inner in value]
    return f"({type(value).__name__})"
