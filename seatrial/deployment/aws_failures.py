"""What stops a call to AWS before AWS answers, as an error that says how to mend it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def aws_failures(where: str) -> Iterator[None]:
    """Turn what botocore raises within into an error with a rule; `where` names what was asked for.

    Raises:
        BenchError: SEA503 when the credentials or the profile are missing, SEA504 when AWS can't be reached, SEA501
            when the name that is asked for can't be one.
    """
    from botocore import exceptions  # noqa: PLC0415 (heavy, and only commands that call AWS need it)

    try:
        yield
    except exceptions.ProfileNotFound as error:
        hint = "set AWS_PROFILE to one of `aws configure list-profiles`"
        raise BenchError.of("SEA503", f"{error}", where=where, hint=hint) from error
    except (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.SSOError,
        exceptions.TokenRetrievalError,
    ) as error:
        hint = "log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise BenchError.of("SEA503", f"there are no AWS credentials: {error}", where=where, hint=hint) from error
    except exceptions.ParamValidationError as error:
        raise BenchError.of("SEA501", f"{error}".replace("\n", " "), where=where) from error
    except exceptions.BotoCoreError as error:
        hint = "check the connection, the region and AWS_ENDPOINT_URL"
        raise BenchError.of("SEA504", f"AWS can't be reached: {error}", where=where, hint=hint) from error
