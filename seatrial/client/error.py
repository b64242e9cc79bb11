"""An invocation that failed, in the bench's classes of failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from seatrial.bench.failure import Failure, failure_of_type
from seatrial.errors import SeatrialError
from seatrial.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.bench.failure import ErrorClass
    from seatrial.payload.answer import Completion

INVOCATION_RULE = "SEA372"
UNKNOWN_END_RULE = "SEA373"
MAX_ANSWER_BYTES = 32 * MIB
"""More than SageMaker lets a model answer; an answer that has more is given up."""
_HINTS: Mapping[ErrorClass, str] = {
    "throttled": "send fewer requests at once, or scale out",
    "not_ready": "wait until a copy is up; an endpoint that scales from zero takes minutes",
}


class InvocationError(SeatrialError):
    """The endpoint did not answer, or answered with an error; `failure` has its class and the words."""

    failure: Failure

    @classmethod
    def because(cls, failure: Failure, *, where: str) -> Self:
        """Return the error for a failure."""
        message = f"{failure.error}: {failure.detail}"
        error = cls.of(INVOCATION_RULE, message, where=where, hint=_HINTS.get(failure.error, ""))
        error.failure = failure
        return error


def check_size(size_bytes: int, where: str) -> None:
    """Refuse an answer that would fill the memory.

    Raises:
        InvocationError: SEA372, it has more than 32 MiB.
    """
    if size_bytes > MAX_ANSWER_BYTES:
        endless = Failure("answer_too_large", f"the answer has more than {MAX_ANSWER_BYTES // MIB} MiB")
        raise InvocationError.because(endless, where=where)


def checked(completion: Completion, where: str) -> Completion:
    """Return the completion if it is whole and free of errors.

    Raises:
        InvocationError: SEA372, it isn't.
    """
    said = completion.failure
    if said is not None:
        raise InvocationError.because(failure_of_type(said.kind, said.message, code=said.code), where=where)
    if not completion.finished:
        broken = Failure("protocol", f"the answer broke off after {len(completion.text)} characters")
        raise InvocationError.because(broken, where=where)
    return completion
