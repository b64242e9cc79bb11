"""How AWS is asked: by service and operation, and what came of a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, cast

from seatrial.deployment.aws_failures import aws_failures
from seatrial.operations.preflight.check import rows, text_at
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from botocore.exceptions import ClientError

MOST_PAGES = 50
"""Pages of a list that are read; what is behind them is told as not asked."""
_ABSENT = frozenset({"ResourceNotFoundException", "ResourceNotFound", "NoSuchEntity", "ObjectNotFoundException"})
_ABSENT_WORDS = ("could not find", "does not exist", "cannot find", "was not found")


class AwsCalls(Protocol):
    """Operations of AWS by the names that boto3 gives them."""

    def __call__(self, service: str, operation: str, /, **asked: object) -> Mapping[str, object]:
        """Call an operation of a service (`sagemaker`, `describe_endpoint`) and return its answer."""


@dataclass(slots=True)
class Boto3Calls:
    """The operations of a region, by boto3; a client is made when its service is first called.

    Attributes:
        region: The region.
    """

    region: str
    _clients: dict[str, object] = field(default_factory=dict)

    def __call__(self, service: str, operation: str, /, **asked: object) -> Mapping[str, object]:
        """Call an operation and return its answer."""
        import boto3  # noqa: PLC0415 (heavy, and tests need no client)

        if service not in self._clients:
            session = boto3.session.Session(region_name=self.region)
            make = cast("Callable[[str], object]", session.client)
            self._clients[service] = make(service)
        call = cast("Callable[..., Mapping[str, object]]", getattr(self._clients[service], operation))
        return call(**asked)


@dataclass(frozen=True, slots=True)
class AwsAnswer:
    """What came of a question.

    Attributes:
        state: `found`, `absent` where AWS knows no such thing, or `not asked` where it could not be asked.
        document: The answer; empty unless it was found.
    """

    state: Literal["found", "absent", "not asked"]
    document: Mapping[str, object] = field(default_factory=dict)


def is_absence(error: ClientError) -> bool:
    """Tell whether AWS says that it knows no such thing."""
    told = error.response.get("Error", {})
    code, message = told.get("Code", ""), told.get("Message", "").lower()
    if code in _ABSENT:
        return True
    return code in {"ValidationException", "ValidationError"} and any(word in message for word in _ABSENT_WORDS)


def said(error: ClientError) -> str:
    """Return what AWS answered, in a sentence."""
    told = error.response.get("Error", {})
    return f"AWS answered {error.operation_name} with {told.get('Code')}: {told.get('Message')}"


@dataclass(slots=True)
class Asker:
    """Asks, and notes what could not be asked.

    Attributes:
        calls: The operations.
        not_asked: What could not be asked, each with the reason.
    """

    calls: AwsCalls
    not_asked: list[str] = field(default_factory=list)

    def ask(self, what: str, service: str, operation: str, /, **asked: object) -> AwsAnswer:
        """Ask once; `what` names it where it could not be asked."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

        try:
            with aws_failures(what):
                return AwsAnswer("found", self.calls(service, operation, **asked))
        except BenchError as error:
            return self._unasked(what, error.problems[0].message)
        except ClientError as error:
            return AwsAnswer("absent") if is_absence(error) else self._unasked(what, said(error))

    def rows(
        self, what: str, service: str, operation: str, name: str, /, **asked: object
    ) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a list, page by page; none where it is absent or could not be asked."""
        token: dict[str, object] = {}
        for _ in range(MOST_PAGES):
            page = self.ask(what, service, operation, **asked, **token).document
            yield from rows(page, name)
            following = text_at(page, "NextToken")
            if not following:
                return
            token = {"NextToken": following}
        self._unasked(what, f"there are more than {MOST_PAGES} pages")

    def _unasked(self, what: str, because: str) -> AwsAnswer:
        line = f"{what}: {because}"
        if line not in self.not_asked:
            self.not_asked.append(line)
        return AwsAnswer("not asked")
