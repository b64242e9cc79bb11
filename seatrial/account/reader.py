"""The one way to AWS: operations by name, their answers, what its errors mean, and what could not be read."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Protocol, cast

from seatrial_base.errors import BenchError
from seatrial_load.aws.errors import aws_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from botocore.exceptions import ClientError

    from seatrial_base.errors import SeatrialError

MOST_PAGES = 50
"""Pages of a list that are read; more than these is reported as not asked."""
_ABSENT = frozenset({"ResourceNotFoundException", "ResourceNotFound", "NoSuchEntity", "ObjectNotFoundException"})
_ABSENT_WORDS = ("could not find", "does not exist", "cannot find", "was not found")


@contextmanager
def aws_failures(where: str, refused: Callable[[ClientError], SeatrialError] | None = None) -> Iterator[None]:
    """Turn what boto3 raises within into an error with a rule; `where` names the request.

    A response about the resource itself, as that it is not there, is raised as `refused` makes it.

    Raises:
        BenchError: SEA503 when credentials are missing, have expired or are refused, SEA504 when AWS can't be reached,
            SEA511 when a permission is missing, SEA512 when a value of the AWS configuration can't be used, SEA501 when
            the name that is asked for can't be one.
        SeatrialError: Any other answer; the ClientError itself without `refused`.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (heavy, and not every command calls AWS)

    try:
        yield
    except (BotoCoreError, ClientError, OSError, ValueError) as error:
        problem = aws_problem(error, where=where)
        if problem is not None:
            raise BenchError([problem]) from error
        if refused is None or not isinstance(error, ClientError):
            raise
        raise refused(error) from error


class AwsCalls(Protocol):
    """Operations of AWS by the names that boto3 gives them."""

    def __call__(self, service: str, operation: str, /, **arguments: object) -> Mapping[str, object]:
        """Call an operation of a service (`sagemaker`, `describe_endpoint`) and return its answer."""


@dataclass(slots=True)
class Boto3Calls:
    """The operations of a region, by boto3; a client is made when its service is first called."""

    region: str
    _clients: dict[str, object] = field(default_factory=dict)

    def __call__(self, service: str, operation: str, /, **arguments: object) -> Mapping[str, object]:
        """Call an operation and return its answer."""
        import boto3  # noqa: PLC0415 (heavy, and tests need no client)

        if service not in self._clients:
            session = boto3.session.Session(region_name=self.region)
            make = cast("Callable[[str], object]", session.client)
            self._clients[service] = make(service)
        call = cast("Callable[..., Mapping[str, object]]", getattr(self._clients[service], operation))
        return call(**arguments)


@dataclass(frozen=True, slots=True)
class ClientCalls:
    """The operations of one client."""

    client: object

    def __call__(self, service: str, operation: str, /, **arguments: object) -> Mapping[str, object]:  # noqa: ARG002
        """Call an operation and return its answer."""
        call = cast("Callable[..., Mapping[str, object]]", getattr(self.client, operation))
        return call(**arguments)


@dataclass(frozen=True, slots=True)
class AwsAnswer:
    """What came of a question.

    Attributes:
        state: `found`, `absent` where AWS knows no such thing, or `not asked` where it could not be asked.
        document: The answer; empty unless it was found.
    """

    state: Literal["found", "absent", "not asked"]
    document: Mapping[str, object] = field(default_factory=dict)


def is_absent(error: ClientError) -> bool:
    """Return whether the response is that AWS knows no such thing."""
    detail = error.response.get("Error", {})
    code, message = detail.get("Code", ""), detail.get("Message", "").lower()
    if code in _ABSENT:
        return True
    return code in {"ValidationException", "ValidationError"} and any(word in message for word in _ABSENT_WORDS)


def error_code(error: ClientError) -> str:
    """Return the code of AWS's error."""
    return error.response.get("Error", {}).get("Code", "")


def error_sentence(error: ClientError) -> str:
    """Return AWS's error as a sentence."""
    message = error.response.get("Error", {}).get("Message")
    return f"AWS answered {error.operation_name} with {error_code(error)}: {message}"


@dataclass(slots=True)
class AwsReader:
    """Reads, and keeps what could not be read.

    Attributes:
        calls: The operations.
        is_strict: What can't be read is raised, as `aws_failures` does; what is absent is still a response.
        unreadable: What could not be read, each with the reason.
    """

    calls: AwsCalls
    is_strict: bool = False
    unreadable: list[str] = field(default_factory=list)

    def read(self, what: str, service: str, operation: str, /, **arguments: object) -> AwsAnswer:
        """Call once; `what` names it where it could not be read."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

        try:
            with aws_failures(what):
                return AwsAnswer("found", self.calls(service, operation, **arguments))
        except BenchError as error:
            if self.is_strict:
                raise
            return self._unasked(what, error.problems[0].message)
        except ClientError as error:
            if is_absent(error):
                return AwsAnswer("absent")
            if self.is_strict:
                raise
            return self._unasked(what, error_sentence(error))

    def rows(
        self, what: str, service: str, operation: str, name: str, /, **arguments: object
    ) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a list, page by page; none where it is absent or could not be read."""
        token: dict[str, object] = {}
        # A bound: a list without an end is reported as one that was not read.
        for _ in range(MOST_PAGES):
            page = self.read(what, service, operation, **arguments, **token).document
            yield from rows(page, name)
            following = text_at(page, "NextToken")
            if not following:
                return
            token = {"NextToken": following}
        self._unasked(what, f"there are more than {MOST_PAGES} pages")

    def _unasked(self, what: str, because: str) -> AwsAnswer:
        if self.is_strict:
            raise BenchError.of("SEA504", because, where=what)
        line = f"{what}: {because}"
        # The same question may be put for several resources; that it failed is reported once.
        if line not in self.unreadable:
            self.unreadable.append(line)
        return AwsAnswer("not asked")


def rows(answer: Mapping[str, object], name: str) -> Iterator[Mapping[str, object]]:
    """Yield the mappings of a list of an answer; none where there is no such list."""
    entries = answer.get(name)
    for row in entries if isinstance(entries, list) else ():
        if isinstance(row, dict):
            yield row


def text_at(row: Mapping[str, object], name: str) -> str:
    """Return a text of an answer; empty where there is none."""
    return f"{row.get(name) or ''}"


def count(row: Mapping[str, object], name: str) -> int:
    """Return a whole number of an answer; 0 where there is none."""
    value = row.get(name)
    return value if isinstance(value, int) else 0


def mapping(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a mapping of an answer; an empty one where there is none."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def number(row: Mapping[str, object], name: str) -> float | None:
    """Return a number of an answer; `None` where there is none."""
    value = row.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def moment(document: Mapping[str, object], name: str) -> datetime | None:
    """Return a time of an answer, in UTC where it has no zone; `None` where there is none."""
    value = document.get(name)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
