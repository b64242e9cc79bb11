"""The lines of a transcript: one JSON object each, in the order in which they were written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from seatrial_base.errors import SpecError
from seatrial_base.frozen_model import FrozenModel

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Literal[1] = 1
Target = Literal["embedded", "account"]


class RunLine(FrozenModel):
    """What was run: the first line, and again when another process goes on with the same file.

    Attributes:
        schema_version: Version of the lines.
        target: What was asked.
        environment: Name of the environment, which begins the names of its endpoints.
        region: Region.
        at: When, in UTC.
        versions: Of what asked: Seatrial, boto3, the CDK CLI.
        note: What else is to be known, as the expected price.
    """

    kind: Literal["run"] = "run"
    schema_version: Literal[1] = SCHEMA
    target: Target
    environment: str
    region: str
    at: str
    versions: dict[str, str] = Field(default_factory=dict)
    note: str = ""


class Refused(FrozenModel):
    """An error of the API.

    Attributes:
        code: Its code.
        message: Its words.
        status: HTTP status; 0 where no answer came.
    """

    code: str
    message: str
    status: int = 0


class CallLine(FrozenModel):
    """One call of an API; further calls that got the same answer are counted by the next line of the same call.

    Attributes:
        case: The test that made it.
        at_s: When, in seconds since the beginning.
        took_s: Seconds until the answer, with the retries of boto3.
        service: The service, as boto3 names it.
        operation: The operation.
        request: Its parameters.
        reply: Its answer; None with an error.
        error: The error; None without one.
        retries: How often boto3 asked again.
        same_before: How many calls before had the answer of the line before.
    """

    kind: Literal["call"] = "call"
    case: str
    at_s: float
    took_s: float
    service: str
    operation: str
    request: JsonValue
    reply: JsonValue = None
    error: Refused | None = None
    retries: int = 0
    same_before: int = 0


class ToolLine(FrozenModel):
    """One run of a command: the CDK CLI or `seatrial`.

    Attributes:
        case: The test that ran it.
        at_s: When it began, in seconds since the beginning.
        took_s: How long it ran.
        command: Its words.
        exit_code: Its exit code.
        output: What it wrote.
    """

    kind: Literal["tool"] = "tool"
    case: str
    at_s: float
    took_s: float
    command: tuple[str, ...]
    exit_code: int
    output: str


class StackEventLine(FrozenModel):
    """One event of a stack: what CloudFormation did, and why it failed.

    Attributes:
        case: The test that deployed.
        at: When, in UTC.
        stack: Name of the stack.
        logical_id: The resource in the template.
        type: Its type.
        status: Its status.
        reason: Why; empty without a reason.
    """

    kind: Literal["stack_event"] = "stack_event"
    case: str
    at: str
    stack: str
    logical_id: str
    type: str
    status: str
    reason: str = ""


class AnswerLine(FrozenModel):
    """The answer to a question that only an account can answer.

    Attributes:
        case: The test that asked.
        question: Its name.
        asked: The question, in words.
        assumed: What Seatrial and the embedded AWS take for the answer.
        answer: The answer, word for word.
    """

    kind: Literal["answer"] = "answer"
    case: str
    question: str
    asked: str
    assumed: str
    answer: JsonValue


Line = RunLine | CallLine | ToolLine | StackEventLine | AnswerLine
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


def written(line: Line) -> str:
    """Return a line as it stands in the file."""
    return f"{json.dumps(line.model_dump(mode='json'), ensure_ascii=False, separators=(',', ':'))}\n"


def read_transcript(file: Path) -> tuple[Line, ...]:
    """Read a transcript; a last line that was cut by a kill is left out.

    Raises:
        SpecError: SEA628, it can't be read, a line is none of a transcript, or the first tells no run.
    """
    try:
        texts = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SpecError.of("SEA628", f"{reason}", where=f"{file}") from error
    *whole, cut = texts  # what stands behind the last line break was not written to its end
    del cut
    lines = tuple(_read(text, f"{file}:{number}") for number, text in enumerate(whole, 1) if text)
    if not lines or not isinstance(lines[0], RunLine):
        hint = "a transcript is written by make test-aws"
        raise SpecError.of("SEA628", "its first line tells no run", where=f"{file}", hint=hint)
    return lines


def _read(text: str, where: str) -> Line:
    try:
        return _LINE.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise SpecError.of(
            "SEA628", f"no line of a transcript: {path or 'the line'}: {first['msg']}", where=where
        ) from error
