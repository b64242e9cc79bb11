"""Where documents of trials lie.

trials/{endpoint}/{plan digest}/{request id}.json            each trial: its result, or `{"error": "…"}`
trials/{endpoint}/{plan digest}/{request id}.scaling.json    what scaling was before it; `null` when restored
latest/{endpoint}/{plan digest}/{config}/{model}.json        the last result of a deployed configuration
passed/{endpoint}/{plan digest}/{config}/{model}.json        the last result of it that was a pass

One plan may be rendered anew by another release; so a configuration is told by its endpoint config and model too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial_cdk.smoke_benchmark.runtime.unavailable import calling

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

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

    def clear(self, endpoint_name: str) -> None:
        """Remove every text of an endpoint."""


@dataclass(frozen=True, slots=True)
class S3TrialStore:
    """Texts in the results bucket."""

    client: S3Client
    bucket: str

    def read(self, key: str) -> str | None:
        """Return a text; `None` when there is none.

        Raises:
            UnavailableError: It can't be told whether there is one.
        """
        with calling(f"reading {self.uri(key)}"):
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

    def clear(self, endpoint_name: str) -> None:
        """Remove every text of an endpoint.

        Raises:
            UnavailableError: Some may be left.
        """
        with calling(f"emptying s3://{self.bucket} of {endpoint_name}"):
            pages = self.client.get_paginator("list_objects_v2")
            for folder in (TRIALS, LATEST, PASSED):
                for page in pages.paginate(Bucket=self.bucket, Prefix=f"{folder}/{endpoint_name}/"):
                    keys: list[ObjectIdentifierTypeDef] = [{"Key": entry["Key"]} for entry in page.get("Contents", ())]
                    if keys:
                        self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": keys, "Quiet": True})


def results_bucket() -> S3TrialStore:
    """Return the store of this function's environment (`RESULTS_BUCKET`)."""
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    return S3TrialStore(boto3.client("s3"), os.environ["RESULTS_BUCKET"])


def trial_key(properties: TrialProperties, request_id: str) -> str:
    """Return the key of one trial's document."""
    return f"{TRIALS}/{properties.endpoint_name}/{properties.plan_digest}/{request_id}.json"


def pause_key(properties: TrialProperties, request_id: str) -> str:
    """Return the key of what scaling was before one trial."""
    return f"{TRIALS}/{properties.endpoint_name}/{properties.plan_digest}/{request_id}.scaling.json"


def latest_key(properties: TrialProperties) -> str:
    """Return the key of the last result of a configuration."""
    return f"{LATEST}/{_configuration(properties)}.json"


def passed_key(properties: TrialProperties) -> str:
    """Return the key of the last result of a configuration that was a pass."""
    return f"{PASSED}/{_configuration(properties)}.json"


def _configuration(properties: TrialProperties) -> str:
    names = (properties.endpoint_name, properties.plan_digest, properties.endpoint_config_name, properties.model_name)
    return "/".join(names)
