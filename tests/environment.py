"""The process environment as one file of tests needs it; nothing of it is left for the next file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Take every AWS and CDK variable away and set these, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "CDK_"))]:
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps the credentials that it found first
        yield
