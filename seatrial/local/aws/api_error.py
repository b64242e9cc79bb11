"""An error as an AWS service answers it."""

from __future__ import annotations

from http import HTTPStatus


class ApiError(Exception):
    """A refusal with its code, message and HTTP status."""

    def __init__(self, code: str, message: str, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = int(status)


def invalid(message: str) -> ApiError:
    """Return the ValidationException of a control plane."""
    return ApiError("ValidationException", message)


def absent(operation: str) -> ApiError:
    """Return the error of an operation that exists on AWS and not here."""
    return ApiError("InternalFailure", f"the embedded AWS has no {operation}", HTTPStatus.NOT_IMPLEMENTED)
