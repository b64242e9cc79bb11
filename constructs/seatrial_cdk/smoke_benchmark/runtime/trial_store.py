"""Where documents of trials lie.

trials/{endpoint}/{plan digest}/{request id}.json    each trial: its result, or `{"error": "…"}`
latest/{endpoint}/{plan digest}.json                 the last result of a plan
passed/{endpoint}/{plan digest}.json                 the last result of a plan that was a pass
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties

TRIALS, LATEST, PASSED = "trials", "latest", "passed"


class TrialStore(Protocol):
    """Texts by key."""

    def read(self, key: str) -> str | None:
        """Return a text; `None` when there is none."""

    def write(self, key: str, text: str) -> None:
        """Write a text, over what was there."""

    def uri(self, key: str) -> str:
        """Return the URI by which people find a text."""


@dataclass(frozen=True, slots=True)
class S3TrialStore:
    """Texts in the results bucket."""

    client: S3Client
    bucket: str

    def read(self, key: str) -> str | None:
        """Return a text; `None` when there is none."""
        try:
            return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()
        except self.client.exceptions.NoSuchKey:
            return None

    def write(self, key: str, text: str) -> None:
        """Write a text, over what was there."""
        self.client.put_object(Bucket=self.bucket, Key=key, Body=text.encode(), ContentType="application/json")

    def uri(self, key: str) -> str:
        """Return the S3 URI of a text."""
        return f"s3://{self.bucket}/{key}"


def results_bucket() -> S3TrialStore:
    """Return the store of this function's environment (`RESULTS_BUCKET`)."""
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    return S3TrialStore(boto3.client("s3"), os.environ["RESULTS_BUCKET"])


def trial_key(properties: TrialProperties, request_id: str) -> str:
    """Return the key of one trial's document."""
    return f"{TRIALS}/{properties.endpoint_name}/{properties.plan_digest}/{request_id}.json"


def latest_key(properties: TrialProperties) -> str:
    """Return the key of the last result of a plan."""
    return f"{LATEST}/{properties.endpoint_name}/{properties.plan_digest}.json"


def passed_key(properties: TrialProperties) -> str:
    """Return the key of the last result of a plan that was a pass."""
    return f"{PASSED}/{properties.endpoint_name}/{properties.plan_digest}.json"
